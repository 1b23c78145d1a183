"""A connection carries what it is given, answers only who knows the secret, and ends with either end."""

import gc
import socket
import threading
import time
import weakref

import numpy as np
import pytest

from on_cluster import in_blocks, ranking_data
from rankwise import RankRLS
from rankwise.distributed import actors, distribute
from rankwise.distributed.connections import Connection, can_connect, listen, new_secret

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
def connection():
    echo, secret = Echo(), new_secret()
    connection = Connection((HOST, listen(echo, HOST, secret)), secret)
    yield connection
    connection.close()


def answer(connection, call):
    """Wait as long as it takes."""
    while (found := connection.answer(call, 0.2)) is None:
        pass
    return found


def test_arrays_come_back_as_they_were(connection):
    rng = np.random.default_rng(0)
    sent = (
        rng.normal(size=200_000),
        np.asfortranarray(rng.normal(size=(300, 4))),
        rng.normal(size=(50, 6))[::2, 1:5],
        np.empty(0),
        {"a": [1, None, "text"]},
    )
    method, found = answer(connection, connection.ask("echo", sent, never))
    assert method == "echo"
    for one, other in zip(sent[:-1], found[:-1], strict=True):
        assert np.array_equal(one, other)
    assert found[-1] == sent[-1]
    found[0][0] = 1.0  # they can be written to


def test_an_answer_that_comes_late_is_waited_for_again(connection):
    big = np.arange(500_000.0)
    call = connection.ask("sleep", (0.5, big), never)
    assert connection.answer(call, 0.05) is None
    assert np.array_equal(answer(connection, call)[1][1], big)


def test_answers_that_nobody_waits_for_are_dropped(connection):
    connection.ask("first", (np.zeros(1000),), never)
    assert answer(connection, connection.ask("second", (), never)) == ("second", ())


def test_who_does_not_know_the_secret_is_not_heard():
    echo, secret = Echo(), new_secret()
    port = listen(echo, HOST, secret)
    with socket.create_connection((HOST, port), timeout=10) as stranger:
        stranger.sendall(bytes(len(secret)))
        assert stranger.recv(1) == b""
    connection = Connection((HOST, port), secret)
    assert answer(connection, connection.ask("heard", (), never)) == ("heard", ())
    connection.close()


def test_either_end_may_go():
    echo, secret = Echo(), new_secret()
    connection = Connection((HOST, listen(echo, HOST, secret)), secret)
    answer(connection, connection.ask("hello", (), never))
    seen = weakref.ref(echo)
    del echo
    gc.collect()
    assert seen() is None  # the thread does not keep what it serves
    with pytest.raises(OSError, match=r".*"):
        answer(connection, connection.ask("anybody?", (), never))
    connection.close()


def test_a_worker_that_takes_nothing_in_is_noticed():
    """It is stopped: what is sent fills the buffers in between, and then waits."""
    secret = new_secret()
    with socket.create_server((HOST, 0)) as deaf:
        connection = Connection(deaf.getsockname(), secret)
        looks = []

        def may_wait():
            looks.append(1)
            if len(looks) > 2:
                raise TimeoutError("too long")

        with pytest.raises(TimeoutError, match="too long"):
            connection.ask("product", (np.zeros(1 << 23),), may_wait)
        with pytest.raises(OSError, match=r".*"):  # half a message is the end of a connection
            connection.ask("again", (), may_wait)


def test_threads_end_with_their_clients(connection):
    before = threading.active_count()
    echo, secret = Echo(), new_secret()
    other = Connection((HOST, listen(echo, HOST, secret)), secret)
    answer(other, other.ask("hello", (), never))
    other.close()
    end = time.monotonic() + 60
    while threading.active_count() > before:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_only_plain_addresses_can_be_connected_to():
    assert can_connect("tcp://10.0.0.1:1234")
    assert not can_connect("tls://10.0.0.1:1234")
    assert not can_connect("inproc://10.0.0.1/1/2")


def test_without_connections_dask_carries_the_calls(client, monkeypatch):
    X, y, qid = ranking_data(60)
    here = RankRLS(solver="cg", tol=1e-12).fit(X, y, qid=qid)

    def behind_a_firewall(address, secret):
        raise ConnectionRefusedError(address)

    for direct in (False, True):
        data = distribute(in_blocks(X, [90]), y, qid, client=client, direct=direct, timeout=60)
        monkeypatch.setattr(actors, "Connection", behind_a_firewall)
        there = RankRLS(solver="cg", tol=1e-12).fit(data.X, data.y, qid=data.qid)
        assert np.allclose(here.coef_, there.coef_, rtol=1e-10, atol=1e-12)
