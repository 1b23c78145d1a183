"""Coverage-guided fuzzing of `rankwise.load`: nothing but a model or a ModelFileError may come out of any bytes.

    python fuzz/model_files.py build/fuzz/models -runs=1000000
    python fuzz/model_files.py seed build/fuzz/models

`make fuzz-models` runs it with the sanitizers; `seed` writes whole models of all kinds to begin with. An input is a
model file without its checksum, which is put right before loading: else nothing would come past it. What loads is also
used, so that parts that do not fit together are seen by the compiled code. How inputs are changed stands in
`tests/model_changes.py`; `fuzz/mutations.py` makes many more of the same changes, without coverage to guide them.
"""

import random
import sys
from pathlib import Path

import atheris

from harness import instrument, load_core, run

load_core()
sys.path.append(str(Path(__file__).parents[1] / "tests"))

import model_changes  # noqa: E402
from model_checks import USES, check_input  # noqa: E402
from rankwise.persistence import container_reader, files, models, reader  # noqa: E402


def mutate(data, max_size, seed):
    rng = random.Random(seed)
    parts = None
    if rng.random() < 0.3:  # what the fuzzer keeps is mostly refused early
        data, parts = rng.choice(model_changes.whole())
    return model_changes.mutate(data, parts, rng, lambda part: atheris.Mutate(part, max(len(part) + 64, 64)))[
        :max_size
    ]


def one_input(data):
    which = len(data) // 64 % len(USES)  # all of them would take most of the time
    check_input(data, slice(which, which + 1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["seed"]:
        for name, data in model_changes.make_whole():
            Path(sys.argv[2], name).write_bytes(data)
        sys.exit()
    instrument(container_reader, files, models, reader)
    run(one_input, mutate)
