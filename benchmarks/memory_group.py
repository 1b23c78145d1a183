"""Processes under a memory limit that counts mapped pages and page cache: a control group of version 1 or 2."""

import os
import subprocess
import sys
import threading
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
# Of each version: where groups of memory are made, the file of the limit, and that of the most that was used.
_VERSIONS = (
    (_ROOT / "memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    (_ROOT, "memory.max", "memory.peak"),
)


def run_limited(command, limit):
    """Run a command in a group of its own; return what it printed, and the group's peak in bytes.

    The peak is None, and there is no limit, where no group can be made; that is said on standard error.
    """
    group, most = _make_group(limit)
    if group is None:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout, None
    try:
        done = subprocess.run(
            command,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
        )
        return done.stdout, int((group / most).read_text())
    finally:
        group.rmdir()


def _make_group(limit):
    problems = []
    for parent, limit_name, most in _VERSIONS:
        group = parent / f"rankwise-bench-{os.getpid()}"
        try:
            if not (parent / "cgroup.procs").exists():
                continue
            group.mkdir()
            try:
                (group / limit_name).write_text(str(limit))
            except OSError:
                group.rmdir()
                raise
        except OSError as error:
            problems.append(str(error))
        else:
            return group, most
    print(f"no memory control group ({'; '.join(problems)}); running without a limit", file=sys.stderr)
    return None, None


class AnonymousPeak:
    """The most anonymous memory that this process had while a block ran, looked at a hundred times a second."""

    def __init__(self, every=0.01):
        self._every = every
        self._ended = threading.Event()
        self.before = self.most = 0

    def __enter__(self):
        self.before = self.most = _anonymous_bytes()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        self._thread.join()

    def _watch(self):
        while not self._ended.wait(self._every):
            self.most = max(self.most, _anonymous_bytes())


def _anonymous_bytes():
    with Path("/proc/self/status").open() as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
