"""How the work is divided: nothing is left out or done twice, portions fit in cache, threads start where they pay."""

import itertools
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from rankwise import _core
from rankwise.holdout import (
    DualHoldOut,
    LevelRanking,
    PrimalHoldOut,
    compared_pairs,
    groups,
    held_out_residuals,
    level_pair_out_scores,
    level_pairs,
    lockstep,
    pairs,
)
from rankwise.holdout.spaces import reweighted_features

MEBI = 2**20
PLAIN = {"ties": "exclude", "cost": "unit", "query_weight": "size"}


def rows_of_block(block):
    """The rows and columns of a block, as two arrays."""
    return [np.arange(5000)[part] for part in block]


@pytest.mark.parametrize("blocks_of", [compared_pairs._blocks, pairs._upper_blocks])
@pytest.mark.parametrize("n_rows", [1, 2, 17, 40, 900])
def test_every_two_rows_are_in_one_block(blocks_of, n_rows, monkeypatch):
    for module, name in ((compared_pairs, "_BLOCK"), (pairs, "_PAIR_BLOCK")):
        monkeypatch.setattr(module, name, 130 if n_rows < 100 else getattr(module, name) // 2)
    times = np.zeros((n_rows, n_rows), dtype=int)
    for block in blocks_of(n_rows):
        rows, columns = rows_of_block(block)
        times[np.ix_(rows, columns)] += 1
    assert (times[np.triu_indices(n_rows)] == 1).all()


@pytest.mark.parametrize(
    ("blocks_of", "limit"),
    [(compared_pairs._blocks, MEBI // 2), (pairs._upper_blocks, 2 * MEBI)],
    ids=["compared", "pairs"],
)
@pytest.mark.parametrize("n_rows", [100, 1000, 4000])
def test_an_array_of_a_block_is_as_large_as_stays_in_cache(blocks_of, limit, n_rows):
    """More would leave it, and less would take as many calls in vain."""
    sizes = [8 * np.prod([part.size for part in rows_of_block(block)]) for block in blocks_of(n_rows)]
    assert max(sizes) <= limit
    assert len(sizes) == 1 or sizes[0] > 0.8 * limit


def test_pairs_that_are_summed_one_by_one_come_in_portions(monkeypatch):
    """Each of them takes rows of coordinates, which have the size of the rank."""
    rng = np.random.default_rng(0)
    n_rows, rank = 60, 50
    weight = np.where(np.arange(n_rows) == 3, 1e4, 1.0)
    ranking = compared_pairs.ComparedRows(rng.normal(size=n_rows), weight, "magnitude", "pairs")
    decomposition = PrimalHoldOut.of_design(rng.normal(size=(n_rows, rank)))
    monkeypatch.setattr(compared_pairs, "_BLOCK", 1000)
    portions, one_by_one = [], compared_pairs._Terms.one_by_one

    def noting(terms, i, j, alpha):
        portions.append((i, j))
        return one_by_one(terms, i, j, alpha)

    monkeypatch.setattr(compared_pairs._Terms, "one_by_one", noting)
    compared_pairs.compared_pair_out_error(decomposition, ranking, np.ones(1))
    i, j = (np.concatenate(ends) for ends in zip(*portions, strict=True))
    assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == sorted(
        (min(row, 3), max(row, 3)) for row in range(n_rows) if row != 3
    )
    assert max(own.size for own, _ in portions) == 1000 // (rank + 1)  # the intercept among them


@given(
    sizes=st.lists(st.one_of(st.integers(1, 40), st.integers(1, 400)), min_size=1, max_size=60),
    n_columns=st.sampled_from([1, 30, 2000]),
)
def test_batches_of_groups_of_about_one_size(sizes, n_columns):
    found = [np.arange(size) + 1000 * k for k, size in enumerate(sizes)]
    batches = list(lockstep.batches_of_like_size(found, n_columns))
    assert sorted(rows[0] for batch in batches for rows in batch) == [rows[0] for rows in found]

    def is_allowed(batch):
        """At most a quarter of a group's rows are padding, and the features take no more than 2 MiB."""
        largest, smallest = max(rows.size for rows in batch), min(rows.size for rows in batch)
        return smallest >= 0.75 * largest and 8 * len(batch) * largest * n_columns <= 2 * MEBI

    assert all(is_allowed(batch) for batch in batches if len(batch) > 1)
    for batch, following in itertools.pairwise(batches):
        assert not is_allowed([*batch, following[0]])


@given(sizes=st.lists(st.one_of(st.integers(1, 12), st.integers(1, 150)), min_size=2, max_size=14))
@hypothesis_settings(max_examples=40)
def test_batches_of_levels_of_about_one_size(sizes):
    ranking = LevelRanking.of_labels(np.repeat(np.arange(len(sizes)) + 0.0, sizes), **PLAIN)
    asked = [(a, b) for b in range(len(sizes)) for a in range(b) if (a + b) % 3]
    batches = list(level_pairs._batches(ranking, asked))
    assert sorted(tuple(pair) for batch in batches for pair in batch.levels.tolist()) == sorted(asked)

    def is_allowed(both):
        """At most a quarter of a system is padding, and all of a batch take no more than 1 MiB."""
        return min(both) >= 0.75 * max(both) and 8 * len(both) * max(both) ** 2 <= MEBI

    both = [batch.sizes.sum(axis=1).tolist() for batch in batches]
    assert all(is_allowed(own) for own in both if len(own) > 1)
    for own, following in itertools.pairwise(both):
        assert not is_allowed([*own, following[0]])


@given(n_alphas=st.integers(1, 60), size=st.one_of(st.integers(0, 100), st.integers(0, 2000)))
def test_alphas_come_in_batches_whose_systems_fit_in_cache(n_alphas, size):
    batches = [np.arange(n_alphas)[some].tolist() for some in groups._batches(n_alphas, size**2)]
    assert list(itertools.chain(*batches)) == list(range(n_alphas))
    assert all(len(batch) == 1 or 8 * len(batch) * size**2 <= 8 * MEBI for batch in batches)
    assert all(8 * (len(batch) + 1) * size**2 > 8 * MEBI for batch in batches[:-1])


class Noting(PrimalHoldOut):
    """A decomposition that notes what is asked of it, and in which threads."""

    def asked(self, name, rows, alphas):
        self.__dict__.setdefault("calls", []).append((name, rows.size, alphas.size, threading.get_ident()))

    def inside(self, rows, alphas):
        self.asked("inside", rows, alphas)
        return super().inside(rows, alphas)

    def without(self, rows, alphas, residual):
        self.asked("without", rows, alphas)
        return super().without(rows, alphas, residual)

    def threads(self):
        return {thread for *_, thread in self.calls}


def residuals(n_groups, size, n_alphas, n_threads, rank=10):
    """What is held out of groups larger than the rank, and the decomposition that was asked."""
    rng = np.random.default_rng(0)
    decomposition = Noting.of_design(rng.normal(size=(n_groups * size, rank)))
    held_out = np.arange(n_groups * size).reshape(n_groups, size)
    target, alphas = rng.normal(size=(n_groups * size, 1)), np.geomspace(0.1, 10, n_alphas)
    found = held_out_residuals(decomposition, target, list(held_out), alphas, n_threads=n_threads)
    return decomposition, found


@pytest.mark.parametrize(
    ("n_groups", "size", "n_alphas", "starts"),
    [
        (400, 50, 4, False),  # 0.8 million numbers in the systems of all groups
        (400, 50, 7, True),  # 1.4 million
        (10, 450, 30, True),
        (10, 550, 30, False),  # the groups' own linear algebra has the threads
        (2, 450, 120, True),
        (1, 450, 240, False),
    ],
)
def test_groups_are_shared_out_where_that_pays(n_groups, size, n_alphas, starts):
    """Many small groups to threads; few of them, or large ones, are left where they are."""
    decomposition, found = residuals(n_groups, size, n_alphas, n_threads=2)
    assert (threading.get_ident() not in decomposition.threads()) == starts
    alone, expected = residuals(n_groups, size, n_alphas, n_threads=1)
    assert alone.threads() == {threading.get_ident()}
    np.testing.assert_array_equal(found, expected)


def test_a_large_group_has_one_matrix_of_the_rank_for_all_alphas():
    """None of its own size, and none an alpha."""
    decomposition, _ = residuals(3, 1200, 40, n_threads=1)
    assert [call[:3] for call in decomposition.calls] == [("without", 1200, 40)] * 3
    decomposition, _ = residuals(1, 320, 30, n_threads=1, rank=300)  # of which eleven alphas fit in cache
    assert [call[:3] for call in decomposition.calls] == [("without", 320, n) for n in (11, 11, 8)]


def test_systems_of_groups_are_solved_some_alphas_at_a_time():
    """So many that they fit in cache: a group of 400 rows has 160,000 numbers an alpha."""
    rng = np.random.default_rng(0)
    calls, n_rows = [], 410

    class NotingDual(DualHoldOut):
        def inside(self, rows, alphas):
            calls.append((rows.size, alphas.size))
            return super().inside(rows, alphas)

    decomposition = NotingDual(np.eye(n_rows), np.ones(n_rows))
    held_out = [np.arange(400), np.arange(400, 410)]
    held_out_residuals(decomposition, rng.normal(size=(n_rows, 1)), held_out, np.geomspace(1, 2, 13))
    assert calls == [(400, 6), (400, 6), (400, 1), (10, 13)]


def test_rows_in_no_group_have_no_residual_and_a_model_without_columns_leaves_the_target():
    target = np.random.default_rng(0).normal(size=(6, 2))
    decomposition = PrimalHoldOut(np.empty((6, 0)), np.empty(0))
    found = held_out_residuals(decomposition, target, [np.array([4, 1]), np.array([2])], np.ones(3))
    assert np.isnan(found[:, [0, 3, 5]]).all()
    np.testing.assert_array_equal(found[:, [1, 2, 4]], np.broadcast_to(target[[1, 2, 4]], (3, 3, 2)))
    assert np.isnan(held_out_residuals(decomposition, target, [], np.ones(1))).all()


def level_problem(sizes, columns=2):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(len(sizes)) + 0.0, sizes))
    X = rng.normal(size=(y.size, columns))
    return partial(reweighted_features, X, np.arange(y.size)), y


def test_scores_of_two_levels_come_in_portions_of_16_mib():
    reweighted, y = level_problem([1100, 1000])
    ranking = LevelRanking.of_labels(y, **PLAIN)
    found = list(level_pair_out_scores(reweighted, ranking, np.ones(1), shares=False))
    first, rest = (scores.nbytes for _, _, scores in found)
    assert 15 * MEBI < first <= 16 * MEBI
    assert first + rest == 16 * 1100 * 1000
    for _, [(rows, columns)], scores in found:
        assert len(scores) == rows.size * columns.size


@pytest.mark.parametrize("block", [1, 7, 12, 30])
def test_portions_of_scores_are_those_of_all(block, monkeypatch):
    reweighted, y = level_problem([5, 1, 6])
    ranking = LevelRanking.of_labels(y, ties="exclude", cost="relative", query_weight="size")

    def table():
        found = np.full((y.size, y.size), np.nan)
        for _, [(rows, columns)], scores in level_pair_out_scores(
            reweighted, ranking, np.ones(1), shares=False
        ):
            assert np.isnan(found[np.ix_(rows, columns)]).all()
            found[np.ix_(rows, columns)] = (scores[:, 0] - scores[:, 1]).reshape(rows.size, -1)
        return found

    whole = table()
    monkeypatch.setattr(level_pairs, "_PAIR_BLOCK", block)
    np.testing.assert_allclose(table(), whole, rtol=1e-10)
    np.testing.assert_array_equal(np.isfinite(whole), y[:, None] < y)


@pytest.mark.parametrize(("size", "n_threads"), [(50, 1), (80, 2)])
def test_a_few_thousand_scores_start_no_thread(size, n_threads, monkeypatch):
    asked, scored = [], _core.level_pair_scores

    def noting(**arguments):
        asked.append(arguments["n_threads"])
        scored(**arguments)

    monkeypatch.setattr(_core, "level_pair_scores", noting)
    reweighted, y = level_problem([size, size])
    ranking = LevelRanking.of_labels(y, **PLAIN)
    list(level_pair_out_scores(reweighted, ranking, np.ones(1), shares=False, n_threads=2))
    assert asked == [n_threads]


@pytest.mark.parametrize(
    ("sizes", "is_small"), [([300] * 2, True), ([500] * 2, False), ([250] * 4, True), ([450] * 4, False)]
)
def test_blas_keeps_its_threads_for_large_levels_alone(sizes, is_small):
    """A product of a pair of levels takes rows times the square of a level: from 100 million on it repays them."""
    reweighted, y = level_problem(sizes, columns=1)
    seen = []

    def noting(degree):
        seen.append(
            {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
        )
        return reweighted(degree)

    ranking = LevelRanking.of_labels(y, **PLAIN)
    with threadpool_limits(2, user_api="blas"):
        before = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
        next(level_pair_out_scores(noting, ranking, np.ones(1), shares=False))
    assert seen == [{1} if is_small else before]


@pytest.mark.parametrize(
    ("options", "sizes", "n_decompositions"),
    [
        ({"ties": "include", "cost": "magnitude", "query_weight": "equal"}, [4, 2, 3, 5], 1),
        ({"ties": "exclude", "cost": "magnitude", "query_weight": "size"}, [4, 2, 3, 5], 6),
        ({"ties": "exclude", "cost": "relative", "query_weight": "size"}, [3, 3, 3], 3),
    ],
)
def test_pairs_of_levels_share_a_decomposition_where_their_degrees_are_proportional(
    options, sizes, n_decompositions
):
    reweighted, y = level_problem(sizes)
    ranking, degrees = LevelRanking.of_labels(y, **options), []

    def noting(degree):
        degrees.append(degree)
        return reweighted(degree)

    list(level_pair_out_scores(noting, ranking, np.ones(3), shares=False))
    assert len(degrees) == n_decompositions
    assert all(degree.max() == 1.0 for degree in degrees)


def test_batches_are_not_solved_long_before_they_are_taken(monkeypatch):
    """Scores that nobody has taken yet would fill the memory."""
    monkeypatch.setattr(level_pairs, "_BATCH", 1)
    solved, score = [], _core.multipartite_pair_scores

    def noting(*arguments):
        solved.append(1)
        score(*arguments)

    monkeypatch.setattr(_core, "multipartite_pair_scores", noting)
    reweighted, y = level_problem([2] * 12)
    ranking = LevelRanking.of_labels(y, **PLAIN)
    portions = level_pair_out_scores(reweighted, ranking, np.ones(1), shares=True)
    next(portions)
    portions.close()
    assert len(solved) <= 16
    assert len(list(level_pair_out_scores(reweighted, ranking, np.ones(1), shares=True))) == 66
