"""A database server for the tests of exports."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgresql():
    """A server of our own on a socket in a folder, where PostgreSQL is installed."""
    # Debian keeps the programs of a server beside the path.
    path = os.pathsep.join([os.environ["PATH"], *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])
    programs = {name: shutil.which(name, path=path) for name in ("initdb", "pg_ctl", "psql")}
    if missing := [name for name, found in programs.items() if found is None]:
        pytest.skip(f"PostgreSQL is not installed: no {', '.join(missing)}")
    # A folder that the server's user can reach, with a path short enough for a socket.
    folder = Path(tempfile.mkdtemp(prefix="rankwise-pg-"))
    data = folder / "data"
    owner = {}
    if os.geteuid() == 0:  # a server refuses to run as root
        owner = {"user": "nobody"}
        shutil.chown(folder, "nobody")

    def call(*command, **options):
        command = list(map(str, command))
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, **owner, **options)  # noqa: PLW1510

    made = call(programs["initdb"], "-D", data, "-A", "trust", "-U", "tester", "-N", check=False)
    if made.returncode:
        shutil.rmtree(folder)
        pytest.skip(f"initdb: {made.stderr.strip()[-200:]}")
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    call(programs["pg_ctl"], "-D", data, "-w", "-l", folder / "log", "-o", options, "start", check=True)
    server = ("-h", folder, "-U", "tester", "-d", "postgres", "-qAt", "-v", "ON_ERROR_STOP=1")
    try:
        yield lambda script: call(programs["psql"], *server, input=script, check=True).stdout
    finally:
        call(programs["pg_ctl"], "-D", data, "-m", "immediate", "stop", check=True)
        shutil.rmtree(folder)
