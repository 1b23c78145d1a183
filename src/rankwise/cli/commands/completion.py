"""``rankwise completion``: scripts for bash, zsh and fish, made from the parsers themselves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from rankwise.cli.parser import COMMANDS, build_parser

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print the script of a shell."""
    sys.stdout.write({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]())
    return 0


def _options(command: str) -> Iterator[tuple[list[str], list[str], str]]:
    """Yield the names, the choices and the help of each option."""
    for action in build_parser(command)._actions:  # noqa: SLF001 - argparse has no other way to list them
        if action.option_strings:
            yield (
                list(action.option_strings),
                [str(choice) for choice in action.choices or []],
                action.help or "",
            )


def _bash() -> str:
    cases = ""
    for command in COMMANDS:
        flags = [flag for names, _, _ in _options(command) for flag in names]
        cases += f'    {command}) flags="{" ".join(flags)}" ;;\n'
    choices = "".join(
        f'    "{command} {flag}") COMPREPLY=($(compgen -W "{" ".join(values)}" -- "$word")); return ;;\n'
        for command in COMMANDS
        for names, values, _ in _options(command)
        if values
        for flag in names
    )
    return (
        "_rankwise() {\n"
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" flags\n'
        '  local command="${COMP_WORDS[1]}"\n'
        "  COMPREPLY=()\n"
        f'  local commands="{" ".join(COMMANDS)} --help --version"\n'
        '  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "$commands" -- "$word")); return; fi\n'
        f'  case "$command $before" in\n{choices}  esac\n'
        '  case "$command" in\n'
        f"{cases}  esac\n"
        '  if [ "$command" = completion ]; then COMPREPLY=($(compgen -W "bash zsh fish" -- "$word")); return; fi\n'
        '  case "$word" in -*) COMPREPLY=($(compgen -W "$flags" -- "$word")); return ;; esac\n'
        '  COMPREPLY=($(compgen -f -- "$word"))\n'
        "}\n"
        "complete -o filenames -F _rankwise rankwise\n"
    )


def _zsh() -> str:
    commands = "".join(f"    {_quote(f'{name}:{summary}')}\n" for name, (summary, _) in COMMANDS.items())
    cases = ""
    for command in COMMANDS:
        lines = ""
        for names, values, help_text in _options(command):
            words = help_text.replace("[", "(").replace("]", ")").replace(":", ";")
            ending = f":value:({' '.join(values)})" if values else ""
            lines += "".join(f" \\\n        {_quote(f'{flag}[{words}]{ending}')}" for flag in names)
        rest = "'1:shell:(bash zsh fish)'" if command == "completion" else "'*:file:_files'"
        cases += f"      {command}) _arguments{lines} \\\n        {rest} ;;\n"
    return (
        "#compdef rankwise\n_rankwise() {\n  local -a commands\n  commands=(\n"
        f"{commands}  )\n"
        "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
        "  local command=$words[2]\n  shift words; (( CURRENT-- ))\n"
        f"  case $command in\n{cases}  esac\n}}\n"
        'if [ "$funcstack[1]" = "_rankwise" ]; then _rankwise "$@"; else compdef _rankwise rankwise; fi\n'
    )


def _fish() -> str:
    lines = ["complete -c rankwise -n __fish_use_subcommand -f"]
    for name, (summary, _) in COMMANDS.items():
        lines.append(f"complete -c rankwise -n __fish_use_subcommand -f -a {name} -d {_quote(summary)}")
        for names, values, help_text in _options(name):
            flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in names)
            ending = f" -x -a {_quote(' '.join(values))}" if values else ""
            lines.append(
                f"complete -c rankwise -n '__fish_seen_subcommand_from {name}' {flags} -d {_quote(help_text)}{ending}"
            )
    lines.append("complete -c rankwise -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
