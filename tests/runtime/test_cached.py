"""Attributes that are computed once, whoever else computes at the same moment."""

import threading

import pytest

from rankwise.runtime.cached import cached_property


class Slow:
    def __init__(self, barrier=None):
        self.barrier, self.n_computed = barrier, 0

    @cached_property
    def value(self):
        """Computed."""
        self.n_computed += 1
        if self.barrier is not None:
            self.barrier.wait(20)
        return object()


def test_it_is_computed_once():
    slow = Slow()
    assert slow.value is slow.value
    assert slow.n_computed == 1
    assert Slow.value.__doc__ == "Computed."


def test_what_fails_is_tried_again():
    class Failing(Slow):
        @cached_property
        def value(self):
            self.n_computed += 1
            raise KeyError(self.n_computed)

    failing = Failing()
    for _ in range(2):
        with pytest.raises(KeyError):
            _ = failing.value
    assert failing.n_computed == 2


@pytest.mark.parametrize("shared", [True, False], ids=["one instance", "two instances"])
def test_threads_do_not_wait_for_each_other(shared):
    """All are inside at once, which a lock would not let them be, and of one instance all get the same."""
    barrier = threading.Barrier(4)
    instances = [Slow(barrier)] * 4 if shared else [Slow(barrier) for _ in range(4)]
    found = [None] * 4

    def look(at):
        found[at] = instances[at].value

    threads = [threading.Thread(target=look, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None not in found
    assert len(set(map(id, found))) == (1 if shared else 4)
