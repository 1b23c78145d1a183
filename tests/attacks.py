"""Commands that write, what they are attacked with, and how one content is told from another."""

import hashlib
import shutil
import time

from rankwise.data import open_store

QUICK = ("--methods", "rls")
# What is written, and how; {name} is a or b, of which the old and the new content are made.
COMMANDS = {
    "convert to a store": ("out.store", "convert {rows}/{name}.txt -o out.store --force"),
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
        return open_store(path).y.tobytes()
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

    def settle(self):
        """Remove the temporary folders that a killed run left, and return the digest of the content.

        A kill between the two renames of a folder leaves the old one and the new one in the temporary folder.
        """
        for folder in self.folder.glob(f".{self.name}.*"):
            if not self.target.exists() and (folder / "new").is_dir():
                (folder / "old").rename(self.target)
            shutil.rmtree(folder)
        for path in (self.server.folder / "tmp").iterdir():
            assert path.name.startswith("rankwise-")
            shutil.rmtree(path)
        assert self.left_over() == []
        return digest(self.target)

    def left_over(self):
        return [path.name for path in self.folder.iterdir() if path != self.target] + self.server.left_over()
