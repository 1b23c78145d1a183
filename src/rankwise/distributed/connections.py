"""A connection of its own from the client to every actor, which carries arrays as they lie in memory.

A call by way of Dask passes two event loops and four threads; `benchmarks/bench_dask.py` shows what that costs.
Messages are pickles, as Dask's are, and are taken only from whoever knows the secret that the actor was told by Dask
itself. Clusters that encrypt have no such connection: Dask carries their calls.
"""

from __future__ import annotations

import contextlib
import hmac
import pickle
import secrets
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol, cast
from urllib.parse import urlsplit

__all__ = ["Connection", "Served", "can_connect", "listen", "new_secret"]

_HEADER = struct.Struct("<QQ")  # which call, and in how many pieces
_SECRET = 32
_CONNECTING = 5.0  # seconds: a firewall that swallows what it does not let through answers nothing
_LOOK = 0.2  # seconds between two looks at whether sending is in vain
_WAITING = 60.0  # seconds that an actor waits for its client


class Served(Protocol):
    """What answers at the other end."""

    def call(self, method: str, *args: object) -> object:
        """Do what the client asks."""


def new_secret() -> bytes:
    """Return what only the two ends know."""
    return secrets.token_bytes(_SECRET)


def can_connect(address: str) -> bool:
    """Tell whether a worker of that address takes what is not encrypted."""
    return urlsplit(address).scheme == "tcp"


class _Stream:
    """Messages over a socket; one that came in part is continued where it was left."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._expect_header()

    def _expect_header(self) -> None:
        self._call, self._sizes, self._pieces = 0, list[int](), list[bytearray]()
        self._expect(_HEADER.size)

    def _expect(self, size: int) -> None:
        self._piece, self._filled = bytearray(size), 0

    def send(self, call: int, message: object, may_wait: Callable[[], None]) -> None:
        """Send; `may_wait` is asked now and then, and raises where waiting is in vain."""
        buffers: list[pickle.PickleBuffer] = []
        body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
        pieces = [memoryview(body), *(buffer.raw() for buffer in buffers)]
        sizes = struct.pack(f"<{len(pieces)}Q", *(piece.nbytes for piece in pieces))
        self._socket.settimeout(_LOOK)
        for piece in (memoryview(_HEADER.pack(call, len(pieces)) + sizes), *pieces):
            sent = 0
            while sent < piece.nbytes:
                try:
                    sent += self._socket.send(piece[sent:])
                except TimeoutError:
                    may_wait()

    def receive(self, patience: float | None) -> tuple[int, object] | None:
        """Return which call a message belongs to and what it says; None where none was complete in time."""
        end = None if patience is None else time.monotonic() + patience
        while True:
            while self._filled < len(self._piece):
                self._socket.settimeout(None if end is None else max(end - time.monotonic(), 1e-6))
                try:
                    came = self._socket.recv_into(memoryview(self._piece)[self._filled :])
                except TimeoutError:
                    return None
                if came == 0:
                    raise ConnectionResetError("the other end is gone")
                self._filled += came
            found = self._next()
            if found is not None:
                return found

    def _next(self) -> tuple[int, object] | None:
        """Take a complete piece; return the message where it was the last one."""
        done = self._piece
        if self._call == 0:
            self._call, n_pieces = _HEADER.unpack(done)
            self._expect(8 * n_pieces)
            return None
        if not self._sizes:
            self._sizes = list(struct.unpack(f"<{len(done) // 8}Q", done))
        else:
            self._pieces.append(done)
        if len(self._pieces) < len(self._sizes):
            self._expect(self._sizes[len(self._pieces)])
            return None
        call, (body, *buffers) = self._call, self._pieces
        self._expect_header()
        return call, pickle.loads(body, buffers=buffers)  # noqa: S301 - from the other end of our own connection

    def close(self) -> None:
        """Hang up; whoever waits at either end is told."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Connection:
    """The client's end.

    Parameters
    ----------
    address : (str, int)
        Where the actor listens.
    secret : bytes
    """

    def __init__(self, address: tuple[str, int], secret: bytes) -> None:
        connected = socket.create_connection(address, timeout=_CONNECTING)
        connected.sendall(secret)
        self._stream, self._last = _Stream(connected), 0

    def ask(self, method: str, args: tuple[object, ...], may_wait: Callable[[], None]) -> int:
        """Call a method; return the number of the call."""
        self._last += 1
        try:
            self._stream.send(self._last, (method, args), may_wait)
        except BaseException:  # Ctrl-C too: half a message is the end of a connection
            self.close()
            raise
        return self._last

    def answer(self, call: int, patience: float) -> object | None:
        """Return the answer to a call; None where it did not come in time. Those that nobody waits for are dropped."""
        end = time.monotonic() + patience
        while True:
            found = self._stream.receive(max(end - time.monotonic(), 0.0))
            if found is None:
                return None
            if found[0] == call:
                return found[1]

    def close(self) -> None:
        """Hang up."""
        self._stream.close()


def listen(served: Served, host: str, secret: bytes) -> int:
    """Answer the calls of one client, in a thread of its own; return the port. It ends with what it serves."""
    server = socket.create_server((host, 0))
    server.settimeout(_WAITING)
    threading.Thread(target=_serve, args=(weakref.ref(served), server, secret), daemon=True).start()
    return int(server.getsockname()[1])


def _serve(served: weakref.ref[Served], server: socket.socket, secret: bytes) -> None:
    with server:
        connected = _of_client(server, secret)
    actor = served()
    if connected is None or actor is None:
        return
    stream = _Stream(connected)
    weakref.finalize(actor, stream.close).atexit = False
    try:
        while actor is not None:
            del actor  # it may go while nobody calls
            message = stream.receive(None)
            actor = served()
            if message is None or actor is None:
                break
            method, args = cast("tuple[str, tuple[object, ...]]", message[1])
            stream.send(message[0], actor.call(method, *args), lambda: None)
            del message, args
    except OSError:
        return  # the client is gone, or the actor
    finally:
        stream.close()


def _of_client(server: socket.socket, secret: bytes) -> socket.socket | None:
    """Wait for whoever knows the secret."""
    try:
        while True:
            connected, _ = server.accept()
            connected.settimeout(_CONNECTING)
            said = b""
            try:
                while len(said) < len(secret) and (more := connected.recv(len(secret) - len(said))):
                    said += more
            except OSError:
                connected.close()
                continue
            if hmac.compare_digest(said, secret):
                return connected
            connected.close()
    except OSError:  # nobody came
        return None
