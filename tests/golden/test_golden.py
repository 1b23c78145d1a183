"""Models of every estimator, exported scores and metrics are what they were; `make.py` says how to write them again."""

from itertools import combinations, product

import pytest

from all_pairs import all_pairs
from golden.results import GROUPS, differences, read, run

LINES = [
    pytest.param(group, case, figures, id=f"{group}-{number}")
    for group in GROUPS
    for number, (case, figures) in enumerate(read(group), start=1)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("golden")


@pytest.mark.parametrize(("group", "case", "figures"), LINES)
def test_a_fit_is_what_it_was(group, case, figures, folder):
    found = differences(run(group, case, folder), figures)
    assert not found, f"{group} {case}: {'; '.join(found)}"


@pytest.mark.parametrize("group", GROUPS)
def test_every_value_of_a_setting_has_a_case(group):
    for name, values in GROUPS[group].factors.items():
        assert [value for value in values if all(case[name] != value for case, _ in read(group))] == []


def test_every_two_settings_meet_in_few_cases():
    factors = {"a": [1, 2, 3], "b": ["x", "y"], "c": [None, 0], "d": [[1], [2], [3]]}

    def allowed(*, a, b, **_):
        return a != 1 or b == "x"

    def pairs(cases):
        return {str(pair) for case in cases for pair in combinations(case.items(), 2)}

    every = [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]
    possible = [case for case in every if allowed(**case)]
    given = [
        possible[5],
        {"a": 1, "b": "y", "c": None, "d": [1]},
        {"a": 1, "e": 2},
    ]  # the last two do not exist
    chosen = all_pairs(factors, allowed, given)
    assert chosen[0] == possible[5]
    assert pairs(chosen) == pairs(possible)
    assert len(chosen) < len(possible) / 2


def test_small_differences_show():
    written = {"coef": ([1.0, -2.0], 1e-9), "alpha_": ([4.0], 1e-9)}
    assert differences(written, written) == []
    assert differences({"coef": ([1.0 + 3e-9, -2.0], 1e-9), "alpha_": ([4.0], 1e-9)}, written) == [
        "coef differs by 1.5e-09 of its largest entry, more than 1e-09"
    ]
    assert differences({"coef": ([1.0, float("nan")], 1e-9)}, written)[0] == "alpha_ is gone"
