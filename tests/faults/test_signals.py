"""SIGINT, SIGTERM, SIGHUP, SIGKILL at random moments of every command that writes: old or new, never half or none."""

import hashlib
import signal
import time
from pathlib import Path

import pytest

from rankwise.data import open_store

STOPPING = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SIGNALS = (*STOPPING, signal.SIGKILL)

QUICK = ("--method", "rls", "--scaling", "standard")
# What is written, and how; {name} is a or b, of which the old and the new content are made.
COMMANDS = {
    "convert to a store": ("out.store", "convert {rows}/{name}.txt -o out.store --force"),
    "regroup": ("out.store", "convert {rows}/{name}.txt -o out.store --regroup --force"),
    "convert to text": ("out.txt.gz", "convert {rows}/{name}.store -o out.txt.gz --force"),
    "convert to a table": ("out.parquet", "convert {rows}/{name}.store -o out.parquet --force"),
    "convert to a packed table": ("out.csv.gz", "convert {rows}/{name}.store -o out.csv.gz --force"),
    "fit": ("out.rw", "fit {rows}/{name}.txt " + " ".join(QUICK) + " -o out.rw --force"),
    "predict": ("out.scores", "predict {rows}/{name}.rw {rows}/test.txt -o out.scores --force"),
    "export": ("out.json", "export {rows}/{name}.rw -o out.json --force"),
    "evaluate": (
        "out.csv",
        "evaluate {rows}/{name}.rw {rows}/test.txt --metrics ndcg@10 --per-query out.csv --force",
    ),
    "report": ("out.html", "report {rows}/{name}.rw {rows}/test.txt -o out.html --force"),
}


def digest(path):
    """Return what tells one content from another; a store must be whole to be opened."""
    if path.is_dir():
        return open_store(path).header.checksum
    if not path.exists():
        return None
    content = path.read_bytes()
    if path.suffix == ".html":
        assert content.rstrip().endswith(b"</html>")
        return "whole"
    return hashlib.sha256(content).hexdigest()


class Attack:
    """One command, and what its target looks like."""

    def __init__(self, server, rows, folder, command):
        self.server, self.folder = server, folder
        self.name, line = COMMANDS[command]
        self.target = folder / self.name
        self.lines = {name: line.format(rows=rows, name=name).split() for name in "ab"}
        self.contents = {}
        self.duration = 0.0
        for name in "aba":  # the first run imports more than the others
            start = time.perf_counter()
            self.run(name)
            self.duration = time.perf_counter() - start
            self.contents[name] = digest(self.target)

    def run(self, name, **fault):
        done = self.server.run(self.lines[name], cwd=self.folder, **fault)
        assert "Traceback" not in done.said, done.said
        if not fault:
            assert done.code == 0, done.said
        return done

    def left_over(self):
        return [path.name for path in self.folder.iterdir() if path != self.target] + self.server.left_over()


def assault(attack, campaign, n):
    current = "a"
    for at in campaign.faults(n):
        number = SIGNALS[at % len(SIGNALS)]
        wanted = "ab"[int(campaign.rng.integers(2))]
        after = float(campaign.rng.uniform(0, 1.1 * attack.duration))
        done = attack.run(wanted, number=number, after=after)
        found = digest(attack.target)
        assert found in {attack.contents[current], attack.contents[wanted]}, (
            "neither the old nor the new content"
        )
        is_new = found == attack.contents[wanted] and wanted != current
        if number == signal.SIGKILL:
            assert done.code in {0, -signal.SIGKILL}
            outcome = "killed" if done.code else "done before it was killed"
            left = attack.left_over()
            if left:
                attack.run(wanted)
                found = attack.contents[wanted]
                assert [path for path in attack.left_over() if not path.startswith("rankwise-")] == []
                for path in (attack.server.folder / "tmp").iterdir():
                    assert path.name.startswith("rankwise-")
                    _remove(path)
                outcome += ", what it left removed by the next run"
        elif done.code == 0:
            assert found == attack.contents[wanted]
            outcome = "done before it was stopped"
        else:
            assert done.code in {STOPPING[number], -number}, (done.code, done.said)
            outcome = "stopped"
            if done.code < 0:  # before the command began, or when it had ended
                assert done.said == "" or found == attack.contents[wanted], done.said
            elif "no file was changed" in done.said:
                assert not is_new, done.said
            elif "had been written" in done.said:
                assert found == attack.contents[wanted], done.said
                outcome = "stopped after it had written, and said so"
            else:
                assert done.said == "", done.said  # stopped before anything of ours ran
            assert attack.left_over() == [], (number, done.said)
        campaign.count(outcome)
        current = next(name for name in (wanted, current) if attack.contents[name] == found)


def _remove(path):
    for child in Path(path).rglob("*"):
        if child.is_file():
            child.unlink()
    for child in sorted(Path(path).rglob("*"), reverse=True):
        child.rmdir()
    Path(path).rmdir()


@pytest.mark.parametrize("command", ["convert to a store", "fit"])
def test_signals_at_random_moments(command, server, rows, campaign, tmp_path):
    assault(Attack(server, rows, tmp_path, command), campaign, 12)


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_many_signals_at_random_moments(command, server, rows, campaign, tmp_path):
    assault(Attack(server, rows, tmp_path, command), campaign, 100)
