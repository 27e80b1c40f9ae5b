"""Requests that leave the service: one question, one answer, and an end to the wait for it.

A request has one deadline over everything: looking the name up, connecting, TLS, sending, and an answer that comes
byte by byte.  Nothing is tried twice, no redirect is followed, no proxy of the environment is used.  Certificates
are verified against the system's authorities; `SSL_CERT_FILE` names others.

Connections are kept and used again by all threads of a process.  A forked process begins with none.
"""

from __future__ import annotations

import functools
import os
import re
import select
import socket
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import h11

BYTES_MAX: Final = 65_536
"""The largest answer that is read, unless a caller says otherwise."""

IDLE_MAX: Final = 8
"""How many unused connections to one origin are kept."""

IDLE_SECONDS_MAX: Final = 30
"""How long an unused connection is kept: less than the usual patience of what may stand between."""

_PORTS: Final = {"http": 80, "https": 443}
_URL: Final = re.compile(r"https?://[\x21-\x7e]{1,1000}")
_LOCAL: Final = re.compile(r"http://(localhost|127\.[0-9.]+|\[::1\])([:/?]|$)")


class Unanswered(Exception):
    """There is no answer, and the text is a sentence that says why: nothing of what was sent or received is in it.

    `sent` is False when the other side cannot have got the request.
    """

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


def problem_of(url: str) -> str | None:
    """What keeps a URL from being one that we call: it has to be https, or on this machine http; None: nothing does.

    >>> problem_of("http://127.0.0.1:8080/hooks")
    >>> problem_of("http://casino.example.com/hooks")
    'is not encrypted'
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is no URL"
    if not _URL.fullmatch(url) or not host:
        return "is no URL of a server"
    if "@" in parts.netloc or "#" in url:
        return "holds a user or a fragment, which are not sent"
    if not url.startswith("https://") and not _LOCAL.match(url):
        return "is not encrypted"
    return None


def target(url: str) -> str:
    """What a request says of its URL: the path, and the query if there is one.

    >>> target("https://wallet.example.com/brag/debit?site=2")
    '/brag/debit?site=2'
    """
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, seconds: float, bytes_max: int = BYTES_MAX
) -> tuple[int, bytes]:
    """The status and the body of the answer; `Unanswered` when there is none within `seconds` and `bytes_max`.

    `headers` go beside Host and Content-Length.  A kept connection that was closed by the other side is replaced
    before anything is sent; one that is closed at the same instant is not, since the request may have arrived.
    """
    lengthened = {"Content-Length": str(len(body))} | dict(headers)
    return _asked("POST", url, body, lengthened, seconds, bytes_max)


def get(url: str, *, seconds: float, bytes_max: int = BYTES_MAX) -> tuple[int, bytes]:
    """The same of a GET."""
    return _asked("GET", url, b"", {}, seconds, bytes_max)


def _asked(
    method: str, url: str, body: bytes, headers: Mapping[str, str], seconds: float, bytes_max: int
) -> tuple[int, bytes]:
    deadline = _Deadline(seconds)
    try:
        origin = _Origin.of(url)
        connection = _shared.take(origin) or _connect(origin, deadline)
    except (OSError, ValueError) as failed:
        raise Unanswered(f"There is no connection: {_why(failed, seconds)}.", sent=False) from None
    try:
        named = {"Host": origin.name} | dict(headers)
        request = h11.Request(method=method, target=target(url), headers=list(named.items()))
        return _exchange(connection, request, body, deadline, bytes_max)
    except (OSError, h11.RemoteProtocolError) as failed:
        raise Unanswered(f"There is no answer: {_why(failed, seconds)}.", sent=True) from None
    finally:
        _shared.give_back(connection)


def _why(failed: Exception, seconds: float) -> str:
    if isinstance(failed, TimeoutError):
        return f"{seconds:g} s were over"
    if isinstance(failed, h11.RemoteProtocolError):
        return "what came is not the whole of an HTTP answer"  # h11's own text quotes it
    return (isinstance(failed, OSError) and failed.strerror) or str(failed)


class _Deadline:
    """The instant at which a request has to be over."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds left, which are more than 0; `TimeoutError` when there are none."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _Origin(NamedTuple):
    """Whom a connection is to, and what the request calls it."""

    scheme: str
    host: str
    port: int
    name: str

    @classmethod
    def of(cls, url: str) -> _Origin:
        """The origin of a URL; ValueError if it has none."""
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("the address is not of the form https://host/path")
        name = parts.netloc.rpartition("@")[2]
        return cls(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme], name)


@dataclass(slots=True)
class _Connection:
    origin: _Origin
    socket: socket.socket
    http: h11.Connection = field(default_factory=lambda: h11.Connection(our_role=h11.CLIENT))
    idle_since: float = 0.0

    def send(self, data: bytes, deadline: _Deadline) -> None:
        rest = memoryview(data)
        while rest:
            self.socket.settimeout(deadline.left())
            rest = rest[self.socket.send(rest) :]

    def receive(self, deadline: _Deadline) -> bytes:
        self.socket.settimeout(deadline.left())
        return self.socket.recv(65_536)

    def is_finished(self) -> bool:
        """Whether request and answer are over, both sides mean to go on, and nothing came after the answer."""
        return self.http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE} and not any(
            self.http.trailing_data
        )

    def is_quiet(self) -> bool:
        """Whether an idle connection is still open and owes nothing: anything to read is its end, or unasked for."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return time.monotonic() - self.idle_since < IDLE_SECONDS_MAX and not poll.poll(0)


class _Shared:
    """What the threads of one process share: unused connections, and the look-ups that are under way."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin_again)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._idle: defaultdict[_Origin, list[_Connection]] = defaultdict(list)
        self._lookups: dict[_Origin, Future[list[Any]]] = {}

    def _begin_again(self) -> None:
        inherited = [connection for kept in self._idle.values() for connection in kept]
        self._begin()
        for connection in inherited:  # the parent's own remain open
            connection.socket.close()

    def take(self, origin: _Origin) -> _Connection | None:
        """The connection to this origin that was used last and is still good; None if there is none."""
        while True:
            with self._lock:
                kept = self._idle[origin]
                connection = kept.pop() if kept else None
            if connection is None or connection.is_quiet():
                return connection
            connection.socket.close()

    def give_back(self, connection: _Connection) -> None:
        """Keeps a connection that can carry another request, and closes any other."""
        surplus = connection
        if connection.is_finished():
            connection.http.start_next_cycle()
            connection.idle_since = time.monotonic()
            with self._lock:
                kept = self._idle[connection.origin]
                kept.append(connection)
                if len(kept) <= IDLE_MAX:
                    return
                surplus = kept.pop(0)
        surplus.socket.close()

    def addresses(self, origin: _Origin, deadline: _Deadline) -> list[Any]:
        """The addresses of a host, as `socket.getaddrinfo` gives them; OSError when there are none.

        The system's resolver takes no deadline, so it is asked by a thread that is left behind when time is up,
        one for each origin: who asks meanwhile waits for the same answer.
        """
        with self._lock:
            lookup = self._lookups.get(origin)
            if lookup is None:
                lookup = Future()
                threading.Thread(target=self._look_up, args=(origin, lookup), daemon=True).start()
                self._lookups[origin] = lookup
        return lookup.result(deadline.left())

    def _look_up(self, origin: _Origin, lookup: Future[list[Any]]) -> None:
        try:
            lookup.set_result(socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as failed:
            lookup.set_exception(failed)
        finally:
            with self._lock:
                del self._lookups[origin]


_shared: Final = _Shared()


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _connect(origin: _Origin, deadline: _Deadline) -> _Connection:
    """A new connection, to the first address that takes one.  Each has its share of the time that is left."""
    failure = OSError("the name has no address")
    addresses = _shared.addresses(origin, deadline)
    for others, (family, kind, protocol, _, address) in zip(
        reversed(range(len(addresses))), addresses, strict=True
    ):
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(deadline.left() / (1 + others))
            connected.connect(address)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if origin.scheme == "https":
                connected.settimeout(deadline.left())
                connected = _tls().wrap_socket(connected, server_hostname=origin.host)
            return _Connection(origin, connected)
        except OSError as failed:
            connected.close()
            failure = failed
    raise failure


def _exchange(
    connection: _Connection, request: h11.Request, body: bytes, deadline: _Deadline, bytes_max: int
) -> tuple[int, bytes]:
    parts = [connection.http.send(part) for part in (request, h11.Data(data=body), h11.EndOfMessage())]
    connection.send(b"".join(part for part in parts if part), deadline)
    status, answer = 0, bytearray()
    while True:
        event = connection.http.next_event()
        if event is h11.NEED_DATA:
            connection.http.receive_data(connection.receive(deadline))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            answer += event.data
            if len(answer) > bytes_max:
                raise Unanswered(f"The answer is longer than {bytes_max} bytes.", sent=True)
        elif isinstance(event, h11.EndOfMessage):
            return status, bytes(answer)
