"""Connections through a process that delays and limits what passes: a network, as far as a client can tell.

Neither `tc netem` nor another machine is needed. Every message is delayed. The bandwidth is that of the client: all
connections together send no more, and receive no more, than it allows.
"""

from __future__ import annotations

import heapq
import itertools
import multiprocessing
import selectors
import socket
import time

_CHUNK = 1 << 16


def _pump(server, latency, bandwidth):
    """Accept connections, each to the target that its first bytes name, and forward both ways."""
    selector = selectors.DefaultSelector()
    selector.register(server, selectors.EVENT_READ)
    free = {"out": 0.0, "in": 0.0}  # when the client's network card is done with what it was given
    due, number = [], itertools.count()
    while True:
        patience = max(due[0][0] - time.monotonic(), 0) if due else None
        for key, _ in selector.select(patience):
            if key.fileobj is server:
                near, _ = server.accept()
                far = socket.create_connection(_named(near))
                for end in (near, far):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(near, selectors.EVENT_READ, (far, "out"))
                selector.register(far, selectors.EVENT_READ, (near, "in"))
                continue
            other, way = key.data
            try:
                data = key.fileobj.recv(_CHUNK)
            except OSError:
                data = b""
            if not data:
                selector.unregister(key.fileobj)
            free[way] = max(free[way], time.monotonic()) + len(data) / bandwidth
            heapq.heappush(due, (free[way] + latency, next(number), other, data))
        while due and due[0][0] <= time.monotonic():
            _, _, other, data = heapq.heappop(due)
            try:
                other.sendall(data) if data else other.shutdown(socket.SHUT_WR)
            except OSError:
                continue  # that end is gone


def _named(near):
    said = b""
    while not said.endswith(b"\n"):
        said += near.recv(1)
    host, port = said.decode().split()
    return host, int(port)


class SlowNetwork:
    """A process between this one and whatever it connects to.

    Parameters
    ----------
    latency : float
        Seconds from one end to the other.
    bandwidth : float
        Bytes a second, each way.
    """

    def __init__(self, latency, bandwidth):
        self._server = socket.create_server(("127.0.0.1", 0))
        self._address = self._server.getsockname()
        self._process = multiprocessing.get_context("fork").Process(
            target=_pump, args=(self._server, latency, bandwidth), daemon=True
        )

    def __enter__(self):
        self._process.start()
        return self

    def __exit__(self, *error):
        self._process.terminate()
        self._process.join()
        self._server.close()

    def connect(self, address, timeout=None):
        """Connect to an address by way of the process: stands in for `socket.create_connection`."""
        near = socket.socket()
        near.settimeout(timeout)
        near.connect(self._address)
        near.sendall(f"{address[0]} {address[1]}\n".encode())
        return near
