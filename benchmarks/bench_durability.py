"""What it costs to have a store on disk before the old one goes: writing one of 1 GB, with `durable` and without."""

import argparse
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np

from harness import interleave, print_table, write_json
from rankwise.data import open_store, save_store, save_svmlight
from rankwise.files import replacing


def write_text(path, megabytes):
    """Write text of which a store of about so many megabytes is made: 12 bytes a value."""
    rng = np.random.default_rng(0)
    rows, columns = 20_000, 50
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    with path.open("wb") as stream:
        for part in range(max(1, round(megabytes * 1e6 / (12 * rows * columns)))):
            save_svmlight(X, rng.integers(0, 5, size=rows), stream, qid=np.arange(rows) // 20 + part * rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--folder", type=Path, help="on the disk to measure; by default among the temporary files"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        text, target = folder / "rows.txt", folder / "rows.store"
        write_text(text, arguments.megabytes)

        waits = []  # seconds that the disk was waited for, of all that a durable write took

        def write(durable):
            waited, start, sync = 0.0, time.perf_counter(), replacing._sync  # noqa: SLF001 - what is measured

            def timed(path):
                nonlocal waited
                before = time.perf_counter()
                with patch.object(replacing, "_sync", sync):  # which calls itself for the files of a folder
                    sync(path)
                waited += time.perf_counter() - before

            with patch.object(replacing, "_sync", timed):
                save_store(str(text), target, durable=durable)
            if durable:
                waits.append(waited / (time.perf_counter() - start))

        contenders = {"as fast as it goes": lambda: write(False), "durable": lambda: write(True)}
        processor = interleave(contenders, repeats=1, clock=time.process_time)
        elapsed = interleave(contenders, repeats=arguments.rounds)
        size = open_store(target, verify=False).n_bytes / 1e9
    print_table(f"A store of {size:.2f} GB from text: seconds on the clock", elapsed)
    print_table("processor time of one more round", processor)
    print(
        f"waiting for the disk: {np.median(waits):.1%} of a durable write ({min(waits):.1%} to {max(waits):.1%})"
    )
    write_json("durability", {"elapsed": elapsed, "processor": processor}, gigabytes=size, waits=waits)


if __name__ == "__main__":
    main()
