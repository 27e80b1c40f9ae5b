"""A client that costs little: requests built beforehand, sent over kept connections by one loop.

It shares the processor with what it measures, so everything it does not need is left out.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from benchmarks.phase import Phase

PHASE_SECONDS_MAX = 120
ANSWER_BYTES_MAX = 64 * 1024

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)


def post(path: str, token: str, key: str, body: bytes) -> bytes:
    """A player's request, ready to send."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: benchmark\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


@dataclass(slots=True)
class _Connection:
    """A connection that works through its requests, one at a time."""

    link: socket.socket
    requests: Iterator[bytes]
    received: bytes = b""
    sent_at: float = 0.0
    latencies: list[float] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def send_next(self) -> bool:
        """Sends the next request; false when there is none."""
        request = next(self.requests, None)
        if request is None:
            return False
        self.received = b""
        self.sent_at = time.perf_counter()
        self.link.sendall(request)
        return True

    def receive(self) -> bool:
        """Takes what has arrived; true when the answer is complete."""
        part = self.link.recv(ANSWER_BYTES_MAX)
        if not part:
            raise SystemExit("The service closed a connection in the middle of an answer.")
        self.received += part
        head, blank_line, body = self.received.partition(b"\r\n\r\n")
        if not blank_line:
            return False
        length = _LENGTH.search(head + b"\r\n")
        if length is None:
            raise SystemExit(f"An answer does not tell its length: {head.decode(errors='replace')}")
        if len(body) < int(length[1]):
            return False
        self.latencies.append(time.perf_counter() - self.sent_at)
        if not head.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 ")):
            raise SystemExit(f"A request was refused: {body.decode(errors='replace')}")
        self.bodies.append(body)
        return True


def exchange(
    address: tuple[str, int], requests: Sequence[Sequence[bytes]]
) -> tuple[Phase, list[list[bytes]]]:
    """Sends each list of requests over a connection of its own, all at once, and waits for the last answer.

    Gives the phase and the answers' bodies, list by list.  Connecting is not measured.  Anything but a 200 or 201
    ends the program, and so does a phase of more than `PHASE_SECONDS_MAX`.
    """
    with _connected(address, requests) as connections, selectors.DefaultSelector() as ready:
        for connection in connections:
            ready.register(connection.link, selectors.EVENT_READ, connection)
        began = time.perf_counter()
        busy = sum(connection.send_next() for connection in connections)
        while busy:
            arrived = ready.select(timeout=PHASE_SECONDS_MAX)
            if time.perf_counter() - began > PHASE_SECONDS_MAX:
                raise SystemExit(f"The answers took more than {PHASE_SECONDS_MAX} s.")
            for key, _ in arrived:
                connection = key.data
                if connection.receive() and not connection.send_next():
                    busy -= 1
        seconds = time.perf_counter() - began
    latencies = tuple(latency for connection in connections for latency in connection.latencies)
    return Phase(seconds, latencies), [connection.bodies for connection in connections]


@contextmanager
def _connected(address: tuple[str, int], requests: Sequence[Sequence[bytes]]) -> Iterator[list[_Connection]]:
    with ExitStack() as opened:
        connections = []
        for listed in requests:
            link = opened.enter_context(socket.create_connection(address, timeout=PHASE_SECONDS_MAX))
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connections.append(_Connection(link, iter(listed)))
        yield connections
