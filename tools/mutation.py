"""Count the small changes of the code that the tests notice.

    python tools/mutation.py losses
    python tools/mutation.py solvers --sample 80 --seed 1
    python tools/mutation.py losses --only 1234

The changes are those of cosmic-ray (another operator, number or comparison, a loop that does not run, a condition that
is negated, ...), a random sample of all that a package allows. What changes an annotation alone is left out, for nobody
runs it.

No file is changed. A child of this process, which has imported what takes long, imports the changed source in the place
of the module, and runs the package's own tests until one fails: its folder, and files beside it that compare its
results with slow twins. Tests of the packages above, which meet its code too, are left out. A change under which the
tests take ten times as long as they do without counts as noticed.
"""

import argparse
import ast
import difflib
import importlib.abc
import importlib.machinery
import math
import os
import random
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

# Package: its tests.
PACKAGES: dict[str, tuple[str, ...]] = {
    "losses.py": ("tests/test_losses.py",),
    "pairs": ("tests/pairs", "tests/test_losses.py"),
    "objectives": (
        "tests/test_objectives.py",
        "tests/solvers/test_quadratic.py",
        "tests/test_losses.py",
        "tests/solvers/test_margins.py",
    ),
    "solvers": (
        "tests/solvers",
        "tests/test_restricted.py",
        "tests/estimators/test_kernel_products.py",
        "tests/estimators/test_rank_rls.py",
    ),
    "holdout": (
        "tests/holdout",
        "tests/estimators/test_linear_hold_out.py",
        "tests/estimators/test_leave_pair_out.py",
        "tests/estimators/test_kernel_pairs.py",
    ),
    "metrics": ("tests/metrics",),
    "persistence.py": ("tests/persistence",),
    "files.py": ("tests/test_files.py",),
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    number: int
    path: Path
    operator: str
    occurrence: int

    @property
    def code(self) -> str | None:
        """The changed source; None if nothing that runs is changed, or nothing runs."""
        source = self.path.read_text()
        code = mutate_code(source, cosmic_ray.plugins.get_operator(self.operator)(), self.occurrence)
        try:
            return None if code is None or _running(code) == _running(source) else code
        except SyntaxError:  # the star before arguments by name is taken for a product
            return None

    @property
    def module(self) -> str:
        """The name it is imported by."""
        parts = self.path.relative_to(SOURCE).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def describe(self) -> str:
        """Say what is changed."""
        before, after = self.path.read_text().splitlines(), (self.code or "").splitlines()
        lines = [
            line
            for line in difflib.unified_diff(before, after, lineterm="", n=0)
            if not line.startswith(("---", "+++"))
        ]
        return f"{self.number} {self.path.relative_to(SOURCE)}\n  " + "\n  ".join(lines)


class _Changed(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Finds one module with other source than its file has."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(mutant.path))
        self._source = mutant.code

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        places = [str(Path(self.path).parent)] if self.path.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=places
        )

    def get_code(self, _: str) -> object:
        return compile(self._source or "", self.path, "exec")


def _running(source: str) -> str:
    """Return what is run of some source, in a form that can be compared."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                setattr(node, name, ast.Constant(None))
    return ast.dump(tree)


def mutants_of(package: str) -> list[Mutant]:
    """List every change that a package allows."""
    place = SOURCE / "rankwise" / package
    found = []
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for name in sorted(cosmic_ray.plugins.operator_names()):
            operator_class = cosmic_ray.plugins.get_operator(name)
            if operator_class.arguments():
                continue
            operator = operator_class()
            positions = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            found += [(path, name, at) for at in range(positions)]
    return [Mutant(number, *one) for number, one in enumerate(found)]


def sampled(mutants: list[Mutant], size: int, seed: int) -> Iterator[Mutant]:
    """Yield some of the changes, by a seed; those that nobody runs do not count."""
    order = random.Random(seed).sample(mutants, len(mutants))  # noqa: S311 - a sample, no secret
    chosen = 0
    for mutant in order:
        if chosen == size:
            return
        if mutant.code is not None:
            chosen += 1
            yield mutant


def notice(mutant: Mutant | None, tests: tuple[str, ...], seconds: float) -> bool:
    """Run tests in a child, with a change or without; tell whether one failed, or all took too long."""
    child = os.fork()
    if child == 0:
        _run_tests(mutant, tests, seconds)
    deadline = time.monotonic() + 30 * seconds + 60  # for what waits for ever
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status != 0
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return True
        time.sleep(0.02)


def nearest_first(mutant: Mutant, tests: tuple[str, ...]) -> list[str]:
    """Return files of tests, those first that name the changed module: they notice it soonest, if any do."""
    files = [
        str(file)
        for place in map(Path, tests)
        for file in (sorted(place.rglob("test_*.py")) if place.is_dir() else [place])
    ]
    name = f"{mutant.path.parent.name}.{mutant.path.stem}"
    return sorted(files, key=lambda file: (name not in Path(file).read_text(), file))


def _run_tests(mutant: Mutant | None, tests: tuple[str, ...], seconds: float) -> None:
    import pytest  # noqa: PLC0415 - imported by the parent

    code = 1
    try:
        limit = math.ceil(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # a changed size may ask for all there is
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        if mutant is not None:
            sys.meta_path.insert(0, _Changed(mutant))
            tests = tuple(nearest_first(mutant, tests))
        options = ["-x", "-q", "-m", "not long", "-p", "no:cacheprovider", "-p", "no:xdist"]
        options += [
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
        ]  # of hypothesis, which the parent imported
        code = int(pytest.main([*options, *tests]))
    finally:
        os._exit(code)


def _import_what_takes_long() -> None:
    for name in (
        "hypothesis.extra.numpy",
        "pandas",
        "pyarrow",
        "pytest",
        "scipy.linalg",
        "scipy.optimize",
        "scipy.sparse.linalg",
        "scipy.spatial",
        "scipy.stats",
        "sklearn.compose",
        "sklearn.linear_model",
        "sklearn.model_selection",
        "sklearn.pipeline",
        "sklearn.preprocessing",
        "sklearn.utils.estimator_checks",
    ):
        importlib.import_module(name)
    assert not any(name.startswith("rankwise") for name in sys.modules)


def main() -> None:
    """Measure a package."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", choices=[*PACKAGES, "losses"])
    parser.add_argument("--sample", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one change, which is shown and tried")
    parser.add_argument("--tests", nargs="+", help="other tests than those of the package")
    options = parser.parse_args()
    package = options.package if options.package in PACKAGES else f"{options.package}.py"
    os.chdir(ROOT)
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    _import_what_takes_long()
    tests = tuple(options.tests or PACKAGES[package])
    before = os.times()
    if notice(None, tests, 3600.0):
        sys.exit(f"the tests fail without any change: {' '.join(tests)}")
    after = os.times()
    took = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{' '.join(tests)}: {took:.1f} s of processor time", flush=True)
    mutants = mutants_of(package)
    chosen = (
        [mutants[options.only]]
        if options.only is not None
        else sampled(mutants, options.sample, options.seed)
    )
    noticed = tried = 0
    for mutant in chosen:
        tried += 1
        if notice(mutant, tests, 10.0 * took + 5.0):
            noticed += 1
        else:
            print("survived:", mutant.describe(), flush=True)
    share = noticed / tried
    error = math.sqrt(share * (1.0 - share) / tried)
    print(
        f"{package}: {noticed} of {tried} noticed, {100 * share:.0f} % (standard error {100 * error:.0f} %), "
        f"of {len(mutants)} changes, seed {options.seed}"
    )


if __name__ == "__main__":
    main()
