"""A line carries what it is given, answers only who knows the secret, and ends with either end."""

import gc
import socket
import threading
import time
import weakref

import numpy as np
import pytest

from on_cluster import in_blocks, ranking_data
from rankwise import RankRLS
from rankwise.distributed import distribute, seats
from rankwise.distributed.lines import Line, can_have_lines, listen, new_secret

HOST = "127.0.0.1"


class Echo:
    """Returns what it is told, after as many seconds as it is told."""

    def call(self, method, *args):
        if method == "sleep":
            time.sleep(args[0])
        return method, args


def never():
    raise AssertionError("nothing was heard")


@pytest.fixture
def line():
    echo, secret = Echo(), new_secret()
    line = Line((HOST, listen(echo, HOST, secret)), secret)
    yield line
    line.close()


def answer(line, call):
    """Wait as long as it takes."""
    while (found := line.answer(call, 0.2)) is None:
        pass
    return found


def test_arrays_come_back_as_they_were(line):
    rng = np.random.default_rng(0)
    sent = (
        rng.normal(size=200_000),
        np.asfortranarray(rng.normal(size=(300, 4))),
        rng.normal(size=(50, 6))[::2, 1:5],
        np.empty(0),
        {"a": [1, None, "text"]},
    )
    method, found = answer(line, line.ask("echo", sent, never))
    assert method == "echo"
    for one, other in zip(sent[:-1], found[:-1], strict=True):
        assert np.array_equal(one, other)
    assert found[-1] == sent[-1]
    found[0][0] = 1.0  # they can be written to


def test_an_answer_that_comes_late_is_waited_for_again(line):
    big = np.arange(500_000.0)
    call = line.ask("sleep", (0.5, big), never)
    assert line.answer(call, 0.05) is None
    assert np.array_equal(answer(line, call)[1][1], big)


def test_answers_that_nobody_waits_for_are_dropped(line):
    line.ask("first", (np.zeros(1000),), never)
    assert answer(line, line.ask("second", (), never)) == ("second", ())


def test_who_does_not_know_the_secret_is_not_heard():
    echo, secret = Echo(), new_secret()
    port = listen(echo, HOST, secret)
    with socket.create_connection((HOST, port), timeout=10) as stranger:
        stranger.sendall(bytes(len(secret)))
        assert stranger.recv(1) == b""
    line = Line((HOST, port), secret)
    assert answer(line, line.ask("heard", (), never)) == ("heard", ())
    line.close()


def test_either_end_may_go():
    echo, secret = Echo(), new_secret()
    line = Line((HOST, listen(echo, HOST, secret)), secret)
    answer(line, line.ask("hello", (), never))
    seen = weakref.ref(echo)
    del echo
    gc.collect()
    assert seen() is None  # the thread does not keep what it serves
    with pytest.raises(OSError, match=r".*"):
        answer(line, line.ask("anybody?", (), never))
    line.close()


def test_a_worker_that_takes_nothing_in_is_noticed():
    """It is stopped: what is sent fills the buffers in between, and then waits."""
    secret = new_secret()
    with socket.create_server((HOST, 0)) as deaf:
        line = Line(deaf.getsockname(), secret)
        looks = []

        def may_wait():
            looks.append(1)
            if len(looks) > 2:
                raise TimeoutError("too long")

        with pytest.raises(TimeoutError, match="too long"):
            line.ask("product", (np.zeros(1 << 23),), may_wait)
        with pytest.raises(OSError, match=r".*"):  # half a message is the end of a line
            line.ask("again", (), may_wait)


def test_threads_end_with_their_clients(line):
    before = threading.active_count()
    echo, secret = Echo(), new_secret()
    other = Line((HOST, listen(echo, HOST, secret)), secret)
    answer(other, other.ask("hello", (), never))
    other.close()
    end = time.monotonic() + 60
    while threading.active_count() > before:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_only_plain_connections_have_lines():
    assert can_have_lines("tcp://10.0.0.1:1234")
    assert not can_have_lines("tls://10.0.0.1:1234")
    assert not can_have_lines("inproc://10.0.0.1/1/2")


def test_without_lines_dask_carries_the_calls(client, monkeypatch):
    X, y, qid = ranking_data(60)
    here = RankRLS(solver="cg", tol=1e-12).fit(X, y, qid=qid)

    def behind_a_firewall(address, secret):
        raise ConnectionRefusedError(address)

    for direct in (False, True):
        data = distribute(in_blocks(X, [90]), y, qid, client=client, direct=direct, timeout=60)
        monkeypatch.setattr(seats, "Line", behind_a_firewall)
        there = RankRLS(solver="cg", tol=1e-12).fit(data.X, data.y, qid=data.qid)
        assert np.allclose(here.coef_, there.coef_, rtol=1e-10, atol=1e-12)
