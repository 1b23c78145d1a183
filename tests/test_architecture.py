"""ARCHITECTURE.md draws the tree as it is."""

import ast
import inspect
import re
import sys
import tomllib
from collections import Counter
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

import rankwise
from rankwise.estimators.base import Ranker

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "rankwise"


def test_the_drawing_is_that_of_the_tree():
    """The script draws the layers of the import contract, and refuses a contract that does not name every package."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    assert not any("ignore_imports" in rules for rules in contract["contracts"])
    specification = spec_from_file_location("tree", ROOT / "tools" / "tree.py")
    script = module_from_spec(specification)
    specification.loader.exec_module(script)
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert script.with_drawing(page) == page, "run python tools/tree.py"


@cache
def modules():
    """Return every module of the library by its name: its syntax, node by node."""
    paths = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in SOURCE.rglob("*.py")}
    return {
        name: list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for name, path in sorted(paths.items())
    }


def test_packages_take_nothing_from_the_facade_but_the_version_and_the_compiled_module():
    """Names that it offers lie in packages; importing them by the facade would hide a cycle from the contract."""
    taken = []
    for name, nodes in modules().items():
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module == "rankwise":
                taken += [(name, alias.name) for alias in node.names if alias.name != "_core"]
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "rankwise"
            ):
                taken += [(name, node.attr)] * (node.attr != "__version__")
    assert taken == []


def test_the_facade_imports_nothing_of_the_library():
    imported = [node for node in modules()["__init__"] if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {node.module for node in imported} == {"__future__", "importlib", "importlib.util"}


def test_checkers_of_types_know_what_the_facade_offers():
    stub = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    homes = {
        alias.name: node.module
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {name: home for name, home in homes.items() if home != "rankwise"} == rankwise._HOMES
    assert {*rankwise._HOMES, "__version__"} == set(rankwise.__all__)


def test_storages_are_known_to_their_own_package_only():
    """Above `design/`, code asks a design for what it needs, and never which class it is or what it happens to have."""
    classes = {
        *("DenseDesign", "CsrDesign", "OperatorDesign", "ShiftedDesign"),
        *("AdditiveDesign", "KernelDesign", "DaskDesign"),
    }
    asked = []
    for name, nodes in modules().items():
        for node in nodes:
            is_test = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "isinstance"
            )
            if is_test and not name.startswith("design."):
                named = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                asked += [(name, node.lineno)] * bool(named & classes)
            is_probe = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in {"hasattr", "getattr"}
            )
            if is_probe and not name.startswith("design."):
                probed = node.args[0]
                called = probed.id if isinstance(probed, ast.Name) else getattr(probed, "attr", "")
                asked += [(name, node.lineno)] * ("design" in called)
            if isinstance(node, ast.Attribute) and node.attr == "kind":
                owner = node.value
                called = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                asked += [(name, node.lineno)] * ("design" in called)
    assert asked == []


ESTIMATORS = [name for name in sorted(rankwise._HOMES) if ".estimators." in rankwise._HOMES[name]]


def behind(name):
    return [kind for kind in getattr(rankwise, name).__mro__[1:] if kind.__module__.startswith("rankwise")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_has_one_base_and_mixins_that_others_share(name):
    mixins = [kind for kind in behind(name) if kind.__name__.endswith("Mixin")]
    assert [kind for kind in behind(name) if kind not in mixins] == [Ranker]
    for mixin in mixins:
        assert not [kind for kind in mixin.__mro__[1:] if kind.__module__.startswith("rankwise")]
        assert sum(mixin in behind(other) for other in ESTIMATORS) > 1
    with pytest.raises(TypeError, match="abstract"):  # which says what is missing
        Ranker()


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("with_eval_set", [False, True])
def test_a_fit_checks_what_it_gets_once(name, with_eval_set):
    """Parameters, rows, labels and ids pass the validation boundary once; those of an eval set once more."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 3)), np.arange(60) // 6
    y = rng.integers(0, 3, size=60)
    model = getattr(rankwise, name)()
    beside = (
        {"eval_set": (X, y, qid)}
        if with_eval_set and (hasattr(model, "cv") or name == "AdditiveRanker")
        else {}
    )
    calls = Counter()

    def note(frame, event, _):
        if event == "call":
            calls[frame.f_code.co_name] += 1

    sys.setprofile(note)
    try:
        model.fit(X, y, qid=qid, **beside)
    finally:
        sys.setprofile(None)
    assert calls["check_parameters"] == 1
    assert calls["check_labelled"] + calls["check_labelled_array"] == 1 + bool(beside)
    assert calls["check_qid"] == 1 + bool(beside)


@pytest.mark.parametrize(
    "name",
    sorted(name for name in rankwise.__all__ if name.startswith(("Rank", "Kernel", "Additive", "Auto"))),
)
def test_an_editor_knows_every_fitted_attribute(name):
    """What the docstring promises is annotated, so that completion and checkers of types find ``alpha_``."""
    kind = getattr(rankwise, name)
    section = inspect.getdoc(kind).split("Attributes\n----------\n")[1].split("\n\n")[0]
    promised = [
        attribute.strip()
        for line in section.splitlines()
        if line and not line.startswith(" ")
        for attribute in line.partition(" : ")[0].split(",")
    ]
    known = set()
    for base in kind.__mro__:
        known |= set(inspect.get_annotations(base))
        known |= {key for key, value in vars(base).items() if isinstance(value, property)}
    assert promised
    assert set(promised) <= known


@pytest.mark.parametrize("name", ESTIMATORS)
def test_help_describes_every_parameter_in_full(name):
    kind = getattr(rankwise, name)
    section = inspect.getdoc(kind).split("Parameters\n----------\n")[1].split("\n\n")[0]
    entries = re.findall(r"^(\w+) : (.*)\n    \S", section, flags=re.MULTILINE)
    parameters = inspect.signature(kind).parameters
    assert [parameter for parameter, _ in entries] == list(parameters)
    assert "As in `" not in inspect.getdoc(kind)
    for parameter, words in entries:
        default = parameters[parameter].default
        if isinstance(default, str | float | int | None) and "default=" in words:
            shown = f'"{default}"' if isinstance(default, str) else default
            assert words.endswith(f"default={shown}") or float(words.partition("default=")[2]) == default


def test_estimators_with_many_parameters_have_a_written_reason():
    counts = {name: len(inspect.signature(getattr(rankwise, name)).parameters) for name in rankwise._HOMES}
    page = (ROOT / "docs" / "decisions" / "names.md").read_text(encoding="utf-8")
    reasons = page.partition("**At most 16 parameters")[2]
    for name, count in counts.items():
        if name[0].isupper() and count > 16:
            assert re.search(rf"`{name}`[^.]* {count}\b", reasons), (name, count)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_tools_that_read_types_can_read_a_signature(name):
    """Fields of mixins have types that the module of the class may not import."""
    init = getattr(rankwise, name).__init__
    assert get_type_hints(init) == {}
    assert inspect.signature(init, eval_str=True) == inspect.signature(init)


@pytest.mark.long
def test_checkers_of_types_find_wrong_arguments(tmp_path):
    """Under a base class without types they would accept any."""
    api = pytest.importorskip("mypy.api")
    (tmp_path / "user.py").write_text(
        "from rankwise import KernelRankRLS, RankRLS\n"
        "RankRLS(alpha=1.0, solver='cg').fit([[1.0], [2.0]], [1.0, 2.0]).coef_.shape\n"
        "KernelRankRLS('rbf', gamma=0.1)\n"
        "RankRLS(1.0, 'cg')\n"
        "RankRLS(alfa=1.0)\n"
        "RankRLS(solver=3)\n",
        encoding="utf-8",
    )
    options = ["--strict", "--cache-dir", str(tmp_path / "cache")]
    said = api.run([*options, str(tmp_path / "user.py")])[0]
    wrong = {int(line.split(":")[1]) for line in said.splitlines() if "user.py" in line}
    assert wrong == {4, 5, 6}, said


def test_nothing_below_the_estimators_warns():
    """What a fit is to be warned of is data (`Notice`), and the estimator says it."""
    above = (
        "estimators",
        "automatic",
        "displays",
        "report",
        "cli",
        "leaderboards",  # an estimator
        "two_sided",  # estimators
        "model_selection",
        "metrics",  # public functions
    )
    speaking = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in above
        and re.search(r"\bwarnings\.warn\b", path.read_text(encoding="utf-8"))
    }
    assert not speaking


def test_context_variables_hold_flags_only():
    # Event loops copy the context, and a copy keeps its values alive: once a model with the rows of a cluster.
    held = {
        found
        for path in SOURCE.rglob("*.py")
        for found in re.findall(r"\bContextVar\[(.*?)\] =", path.read_text(encoding="utf-8"))
    }
    assert held <= {"bool"}


def test_nothing_above_asks_which_pairs_it_has():
    """Labels inside queries and listed preferences are two implementations of `Pairs`."""
    kinds = {
        kind.name
        for name, nodes in modules().items()
        if name.startswith("pairs.")
        for kind in nodes
        if isinstance(kind, ast.ClassDef)
    } - {"Levels", "SmoothedHinge"}  # formulas have levels of their own, and a value is no pairs
    assert {"LabelPairs", "PreferencePairs", "PreferenceGraph", "ViolationSweep", "IncidenceFactor"} <= kinds
    asked = {
        (name, one.id)
        for name, nodes in modules().items()
        if not name.startswith("pairs.")
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"isinstance", "issubclass", "type"}
        for argument in node.args
        for one in ast.walk(argument)
        if isinstance(one, ast.Name) and one.id in kinds
    }
    assert asked <= {("distributed.design", "ViolationSweep")}  # workers get the sweeps of their rows


def test_only_the_view_of_a_model_reads_its_fitted_attributes():
    """Exports, explanations, reports and commands read a formula, a view or a selection, never an estimator."""
    fits = {"cli.commands.fit", "cli.commands.leaderboard"}  # these read what they have just fitted
    fitted = re.compile(r"[a-zA-Z]\w*_")
    read = []
    for name, nodes in modules().items():
        if name.split(".")[0] in {"cli", "report", "exporters", "explanations"} and name not in fits:
            for node in nodes:
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id in {"self", "np"}
                ):
                    continue
                asked = node.attr if isinstance(node, ast.Attribute) else None
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"getattr", "hasattr"}:
                    asked = getattr(node.args[1], "value", None)
                read += [(name, asked)] * bool(isinstance(asked, str) and fitted.fullmatch(asked))
    assert read == []
