"""Any value as any argument of everything public: a right answer, or one of our errors with a remedy."""

import warnings

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt

import bad_input
import public_calls
from rankwise.exceptions import RankwiseError

mpl.use("Agg")
ODD = st.sampled_from(sorted(public_calls.odd_values()))
# So many drawings or rounds were asked for, and are done.
AMOUNTS = {"adaptive", "n_permutations", "n_repeats", "n_resamples", "selective"}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("public")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.chdir(folder)
        public_calls.make_files(folder)
        yield public_calls.calls()
        plt.close("all")


def answer(call, wrong):
    """Call something with some arguments wrong; what it raises is ours, scikit-learn's of X and y, or the system's."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = call(wrong)
    except RankwiseError as error:
        assert "Hint: " in str(error), (call.name, wrong)  # noqa: PT017 - any of these outcomes is right
    except OSError as error:
        assert error.filename is not None, (call.name, wrong)  # noqa: PT017
    except (ValueError, TypeError) as error:
        assert bad_input.is_of_sklearn(error), (call.name, wrong, error)  # noqa: PT017
    else:
        assert not isinstance(result, float) or np.isfinite(result), (call.name, wrong)
    finally:
        plt.close("all")


def test_arguments_that_are_right(attacked):
    assert len(attacked) > 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in attacked:
            call({})


@pytest.mark.parametrize("examples", [250, pytest.param(10_000, marks=pytest.mark.long)], ids=["few", "many"])
def test_any_value_as_any_argument(attacked, examples):
    by_name = {call.name: call for call in attacked}

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(
        st.sampled_from(sorted(by_name)), st.lists(st.tuples(st.integers(0, 60), ODD), min_size=1, max_size=2)
    )
    def attack(called, wrong):
        call, odd = by_name[called], public_calls.odd_values()
        names = sorted(call.parameters)
        chosen = {names[at % len(names)]: what for at, what in wrong}
        if not any(what == "huge" and name in AMOUNTS for name, what in chosen.items()):
            answer(call, {name: odd[what] for name, what in chosen.items()})

    attack()


@pytest.mark.long
def test_every_odd_value_as_every_argument(attacked):
    for call in attacked:
        for name in call.parameters:
            for what, value in public_calls.odd_values().items():
                if what != "huge" or name not in AMOUNTS:
                    answer(call, {name: value})
