"""Commands as processes of their own, forked from one that has imported everything: a hundred faults take seconds.

As a program, it reads one request per line, runs it in a child, and answers with its number and then with how it ended.
"""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import rankwise
from rankwise.cli import main

HANGS = 120  # seconds after which a command that does not end is taken to hang


@dataclass
class Ended:
    """How a command ended.

    Attributes
    ----------
    code : int
        The exit code, or minus the number of the signal that ended it.
    said, printed : str
        On standard error, on standard output.
    """

    code: int
    said: str
    printed: str


class CommandsServer:
    """A process that commands are forked from; use it in a ``with`` block."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        (self.folder / "tmp").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(self.folder / "tmp"), "PYTHONWARNINGS": "default"},
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def run(
        self,
        arguments,
        *,
        number=None,
        after=0.0,
        fault=None,
        cwd=None,
        limits=(),
        cpus=None,
        group=None,
        code=None,
        stdin=None,
    ):
        """Run ``rankwise`` with arguments, or some code, and send it a signal after so many seconds.

        Parameters
        ----------
        fault : callable, optional
            What to do to the process instead, given its number.
        limits : sequence of (str, int)
            Such as ("RLIMIT_NOFILE", 20).
        group : path, optional
            The folder of a control group that the process joins.
        """
        files = [str(self.folder / name) for name in ("stdout", "stderr")]
        request = {
            "arguments": list(map(str, arguments)),
            "cwd": str(cwd or self.folder),
            "files": files,
            "limits": list(limits),
            "cpus": cpus,
            "group": None if group is None else str(group),
            "code": code,
            "stdin": None if stdin is None else str(stdin),
        }
        for name in files:
            Path(name).write_text("")
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        with suppress(ProcessLookupError):  # it has ended
            if fault is not None:
                fault(child)
            elif number is not None:
                time.sleep(after)
                os.kill(child, number)
        status = self._status(child)
        printed, said = (Path(name).read_text(errors="replace") for name in files)
        return Ended(status, said, printed)

    def left_over(self):
        """Return what commands left among the temporary files."""
        return sorted(path.name for path in (self.folder / "tmp").iterdir())

    def _status(self, child):
        if not select.select([self.process.stdout], [], [], HANGS)[0]:
            os.kill(child, signal.SIGKILL)
            self.process.stdout.readline()
            raise AssertionError(f"the command did not end in {HANGS} s")
        return int(self.process.stdout.readline())


def _serve():
    for module in walk_packages(rankwise.__path__, "rankwise."):  # so that children need not
        if not module.name.startswith(("rankwise.distributed", "rankwise.__main__")):
            import_module(module.name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(request)
        _say(sys.stdout, child)
        _say(sys.stdout, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _say(stream, text):
    stream.write(f"{text}\n")
    stream.flush()


def _confine(request):
    if request["group"]:
        Path(request["group"], "cgroup.procs").write_text(str(os.getpid()))
    if request["cpus"]:
        os.sched_setaffinity(0, request["cpus"])
    for name, value in request["limits"]:
        resource.setrlimit(getattr(resource, name), (value, value))


def _is_inside(error):
    """Tell whether the command let an interrupt through, which it should not."""
    return any("rankwise/cli" in frame.filename for frame in traceback.extract_tb(error.__traceback__))


def _run(request):
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, name in enumerate(request["files"], 1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        os.dup2(os.open(request["stdin"] or os.devnull, os.O_RDONLY), 0)
        os.closerange(3, 64)
        os.chdir(request["cwd"])
        _confine(request)
        if request["code"] is not None:
            exec(
                compile(request["code"], "<fault>", "exec"),
                {"__name__": "__main__", "arguments": request["arguments"]},
            )
            code = 0
        else:
            code = main(request["arguments"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except KeyboardInterrupt as error:
        if request["code"] is not None or _is_inside(error):  # else it came before the command, or after it
            _say(sys.stderr, f"KeyboardInterrupt: {error}")
        code = 130
    except BaseException:  # noqa: BLE001 - whatever it is, is told
        traceback.print_exc()
        code = 1
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one that comes now is after the command
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 120  # as Python does
        os._exit(code)


if __name__ == "__main__":
    _serve()
