"""Requests that leave the service, against servers on raw sockets that misbehave in every way."""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from casino_brag import outbound
from casino_brag.outbound import Unanswered, get, post, target

SECRET = "sk_never-to-be-told"
HEADERS = {"Content-Type": "application/json", "X-Signature": SECRET}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LONG = 60.0
"""How long a server that misbehaves would go on."""

Script = Callable[["Peer", socket.socket, int], None]


@dataclass
class Peer:
    """A server that treats each connection by a script, which gets the connection's number from 1."""

    script: Script
    tls: ssl.SSLContext | None = None
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    finished: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/brag/debit"

    @contextlib.contextmanager
    def running(self) -> Iterator[Peer]:
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        threads = [threading.Thread(target=self._accept, args=(listener,))]
        threads[0].start()
        self._threads = threads
        try:
            yield self
        finally:
            self.over.set()
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            for thread in threads:
                thread.join()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection, self.connections))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError):  # the client has gone
            connection.settimeout(LONG)
            if self.tls:
                with self.tls.wrap_socket(connection, server_side=True) as wrapped:
                    self.script(self, wrapped, number)
            else:
                self.script(self, connection, number)
        connection.close()

    def read(self, connection: socket.socket) -> bytes:
        """One whole request; empty when the client has gone."""
        got = b""
        while not self.over.is_set():
            head, blank, body = got.partition(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            if blank and len(body) >= int(length or b"0"):
                self.requests.append(got)
                break
            connection.settimeout(0.05)
            with contextlib.suppress(TimeoutError):
                more = connection.recv(65536)
                if not more:
                    return b""
                got += more
        return got

    def drip(self, connection: socket.socket, data: bytes) -> None:
        """Sends a byte now and then, for a minute at most; `finished` once all was sent."""
        for byte in data:
            connection.sendall(bytes([byte]))
            if self.over.wait(LONG / len(data)):
                return
        self.finished.set()


def answering(*answers: bytes) -> Script:
    """Answers the requests of a connection one after another, and then closes it."""

    def script(peer: Peer, connection: socket.socket, _: int) -> None:
        for answer in answers:
            if not peer.read(connection):
                return
            connection.sendall(answer)

    return script


def staying(peer: Peer, connection: socket.socket, _: int) -> None:
    """Answers as long as it is asked."""
    while peer.read(connection):
        connection.sendall(OK)


@pytest.fixture(autouse=True)
def no_connections() -> Iterator[None]:
    """Each test begins with no connection kept, and closes those it leaves."""
    yield
    for kept in outbound._shared._idle.values():
        while kept:
            kept.pop().socket.close()


def failing(peer: Peer, *, seconds: float = 10.0, bytes_max: int = 65536) -> Unanswered:
    with pytest.raises(Unanswered) as caught:
        post(peer.url, b'{"of": "the body"}', HEADERS, seconds=seconds, bytes_max=bytes_max)
    assert SECRET not in str(caught.value)
    assert "the body" not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


def test_a_request_arrives_whole() -> None:
    with Peer(answering(OK)).running() as peer:
        assert post(peer.url + "?site=2", b'{"a":1}', HEADERS, seconds=10) == (200, b"ok")
    (request,) = peer.requests
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert first == "POST /brag/debit?site=2 HTTP/1.1"
    assert dict(line.split(": ") for line in lines) == {
        "Host": f"127.0.0.1:{peer.port}",
        "Content-Length": "7",
        **HEADERS,
    }
    assert body == b'{"a":1}'


def test_a_get_has_no_body_and_is_bounded_alike() -> None:
    with Peer(answering(OK, OK)).running() as peer:
        assert get(peer.url + "?site=2", seconds=10) == (200, b"ok")
        with pytest.raises(Unanswered, match="longer than 1 bytes"):
            get(peer.url, seconds=10, bytes_max=1)
    assert (
        peer.requests[0] == f"GET /brag/debit?site=2 HTTP/1.1\r\nHost: 127.0.0.1:{peer.port}\r\n\r\n".encode()
    )


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://a.example", "/"),
        ("https://a.example/brag", "/brag"),
        ("https://a.example/b?c=d&e", "/b?c=d&e"),
    ],
)
def test_the_target_is_path_and_query(url: str, path: str) -> None:
    assert target(url) == path


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (OK, (200, b"ok")),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", (500, b"")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", (200, b"ok")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, (200, b"ok")),
        (b"HTTP/1.0 200 OK\r\n\r\nok", (200, b"ok")),
        (b"HTTP/1.1 307 Over there\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", (307, b"")),
    ],
    ids=["plain", "error", "chunked", "continue", "until-closed", "redirect"],
)
def test_an_answer_is_what_it_is(answer: bytes, expected: tuple[int, bytes]) -> None:
    with Peer(answering(answer)).running() as peer:
        assert post(peer.url, b"{}", HEADERS, seconds=10) == expected
    assert len(peer.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    ],
    ids=["closed", "other-protocol", "cut-off", "two-lengths", "cut-off-chunk", "endless-header", "upgrade"],
)
def test_what_is_no_whole_answer_is_none(answer: bytes) -> None:
    with Peer(answering(answer)).running() as peer:
        failed = failing(peer)
    assert failed.sent
    assert "SSH" not in str(failed)
    assert len(peer.requests) == 1  # and nothing is tried twice


@pytest.mark.parametrize("size", [100, 101])
def test_an_answer_may_be_as_long_as_is_said(size: int) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, b"x" * size)
    with Peer(answering(answer)).running() as peer:
        if size == 100:
            assert post(peer.url, b"{}", HEADERS, seconds=10, bytes_max=100) == (200, b"x" * 100)
        else:
            assert str(failing(peer, bytes_max=100)) == "The answer is longer than 100 bytes."


def test_an_answer_without_end_is_cut_off() -> None:
    def endless(peer: Peer, connection: socket.socket, _: int) -> None:
        peer.read(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not peer.over.is_set():
            connection.sendall(b"x" * 65536)

    with Peer(endless).running() as peer:
        assert "longer than 65536" in str(failing(peer, seconds=LONG))


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X-Header: x\r\n" * 20,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 50,
        b"",
    ],
    ids=["headers", "continues", "body", "nothing"],
)
def test_the_wait_ends_however_slowly_an_answer_comes(answer: bytes) -> None:
    def dripping(peer: Peer, connection: socket.socket, _: int) -> None:
        peer.read(connection)
        peer.drip(connection, answer)
        peer.over.wait(LONG)

    with Peer(dripping).running() as peer:
        failed = failing(peer, seconds=0.3)
        assert not peer.finished.is_set() or answer == b""
    assert str(failed) == "There is no answer: 0.3 s were over."
    assert failed.sent


def test_the_wait_ends_where_nobody_reads() -> None:
    def deaf(peer: Peer, connection: socket.socket, _: int) -> None:
        peer.over.wait(LONG)

    with Peer(deaf).running() as peer, pytest.raises(Unanswered, match=r"0\.3 s were over"):
        post(peer.url, b"x" * 50_000_000, HEADERS, seconds=0.3)


def test_the_wait_ends_where_nobody_accepts() -> None:
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(2):  # the backlog, and one more
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        with pytest.raises(Unanswered, match=r"no connection: 0\.3 s were over") as caught:
            post(f"http://127.0.0.1:{full.getsockname()[1]}/x", b"", HEADERS, seconds=0.3)
    assert not caught.value.sent


def test_a_closed_port_has_got_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(Unanswered, match="no connection: Connection refused") as caught:
        post(f"http://127.0.0.1:{port}/x", b"", HEADERS, seconds=10)
    assert not caught.value.sent


@pytest.mark.parametrize("url", ["ftp://a.example/x", "/x", "http:///x", "http://a:port/x", "http://[::1/x"])
def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    with pytest.raises(Unanswered, match="no connection") as caught:
        post(url, b"", HEADERS, seconds=10)
    assert not caught.value.sent


class Resolver:
    """The system's resolver, as slow as a test wants it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.answers = threading.Event()
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host: str, port: int, **how: int) -> object:
        self.asked += 1
        self.answers.wait(LONG)
        if host == "unknown.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._real("127.0.0.1", port, **how)


def test_the_wait_for_a_name_ends_and_one_thread_asks_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(monkeypatch)
    with Peer(answering(OK)).running() as peer:
        url = f"http://wallet.example:{peer.port}/x"
        for _ in range(3):
            with pytest.raises(Unanswered, match=r"no connection: 0\.1 s were over"):
                post(url, b"", HEADERS, seconds=0.1)
        assert resolver.asked == 1
        resolver.answers.set()
        assert post(url, b"", HEADERS, seconds=10) == (200, b"ok")


def test_an_unknown_name_is_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    Resolver(monkeypatch).answers.set()
    with pytest.raises(Unanswered, match="no connection: Name or service not known") as caught:
        post("http://unknown.example/x", b"", HEADERS, seconds=10)
    assert not caught.value.sent


def test_the_next_address_is_tried_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        nobody = gone.getsockname()
    with Peer(answering(OK)).running() as peer:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", to) for to in (nobody, ("127.0.0.1", peer.port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert post("http://two.example/x", b"", HEADERS, seconds=10) == (200, b"ok")


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Peer(staying).running() as proxy, Peer(staying).running() as peer:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        post(peer.url, b"", HEADERS, seconds=10)
        assert (proxy.connections, peer.connections) == (0, 1)


def test_a_connection_is_used_again() -> None:
    with Peer(staying).running() as peer:
        for _ in range(5):
            post(peer.url, b"{}", HEADERS, seconds=10)
        assert (peer.connections, len(peer.requests)) == (1, 5)


def test_a_connection_that_the_other_side_closed_is_replaced() -> None:
    closed = threading.Semaphore(0)

    def once(peer: Peer, connection: socket.socket, number: int) -> None:
        answering(OK)(peer, connection, number)
        connection.close()
        closed.release()

    with Peer(once).running() as peer:
        for _ in range(5):
            assert post(peer.url, b"{}", HEADERS, seconds=10) == (200, b"ok")
            assert closed.acquire(timeout=LONG)
        assert peer.connections == 5


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale",
        OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        OK.replace(b"1.1", b"1.0"),
    ],
    ids=["answers-twice", "says-close", "is-old"],
)
def test_a_connection_is_not_used_again_where_it_may_mislead(answer: bytes) -> None:
    with Peer(answering(answer, answer)).running() as peer:
        assert post(peer.url, b"{}", HEADERS, seconds=10) == (200, b"ok")
        assert post(peer.url, b"{}", HEADERS, seconds=10) == (200, b"ok")
        assert peer.connections == 2


def test_an_answer_that_comes_too_late_is_nobodys() -> None:
    late = threading.Event()

    def slow(peer: Peer, connection: socket.socket, number: int) -> None:
        peer.read(connection)
        if number == 1:
            late.wait(LONG)
        connection.sendall(OK.replace(b"ok", b"%02d" % number))

    with Peer(slow).running() as peer:
        assert failing(peer, seconds=0.2).sent
        late.set()
        assert post(peer.url, b"{}", HEADERS, seconds=10) == (200, b"02")


def test_a_connection_long_unused_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Peer(staying).running() as peer:
        post(peer.url, b"{}", HEADERS, seconds=10)
        monkeypatch.setattr(outbound, "IDLE_SECONDS_MAX", 0)
        post(peer.url, b"{}", HEADERS, seconds=10)
        assert peer.connections == 2


def test_threads_have_a_connection_each_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "IDLE_MAX", 2)
    together = threading.Barrier(5)

    def meeting(peer: Peer, connection: socket.socket, _: int) -> None:
        while peer.read(connection):
            together.wait(LONG)
            connection.sendall(OK)

    with Peer(meeting).running() as peer:
        answers: list[tuple[int, bytes]] = []
        threads = [
            threading.Thread(target=lambda: answers.append(post(peer.url, b"{}", HEADERS, seconds=LONG)))
            for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [(200, b"ok")] * 5
        assert peer.connections == 5
        (kept,) = (kept for origin, kept in outbound._shared._idle.items() if origin.port == peer.port)
        assert len(kept) == 2


FORK = """
import os, sys
from casino_brag.outbound import post, _shared
url = sys.argv[1]
ask = lambda: post(url, str(os.getpid()).encode(), {}, seconds=10)
ask()
assert len(_shared._idle) == 1
_shared._lock.acquire()                 # as another thread may hold it when the fork comes
child = os.fork()
if child == 0:
    assert len(_shared._idle) == 0
    ask()
    ask()
    os._exit(0)
_shared._lock.release()
assert os.waitpid(child, 0)[1] == 0
ask()
"""


def test_a_forked_process_makes_its_own_connections() -> None:
    by_connection: list[tuple[int, bytes]] = []

    def noting(peer: Peer, connection: socket.socket, number: int) -> None:
        while request := peer.read(connection):
            by_connection.append((number, request.rpartition(b"\r\n\r\n")[2]))
            connection.sendall(OK)

    with Peer(noting).running() as peer:
        subprocess.run([sys.executable, "-W", "error", "-c", FORK, peer.url], check=True, timeout=LONG)
    (_, parent), (_, child), *_ = by_connection
    assert parent != child
    assert by_connection == [(1, parent), (2, child), (2, child), (1, parent)]


def certificate(folder: Path, name: x509.GeneralName) -> tuple[Path, ssl.SSLContext]:
    """A certificate that signs itself, and a server's side with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "wallet")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    authority, private = folder / "authority.pem", folder / "key.pem"
    authority.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority, private)
    return authority, server


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    def trust(authority: Path) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", os.fspath(authority))
        outbound._tls.cache_clear()

    yield trust
    outbound._tls.cache_clear()


HERE = x509.IPAddress(IPv4Address("127.0.0.1"))


def test_tls_is_spoken_and_its_connections_are_used_again(
    tmp_path: Path, trusting: Callable[[Path], None]
) -> None:
    authority, server = certificate(tmp_path, HERE)
    trusting(authority)
    with Peer(staying, tls=server).running() as peer:
        for _ in range(3):
            assert post(peer.url, b"{}", HEADERS, seconds=10) == (200, b"ok")
        assert peer.connections == 1


def test_a_certificate_of_nobody_known_is_refused(tmp_path: Path) -> None:
    _, server = certificate(tmp_path, HERE)
    with Peer(staying, tls=server).running() as peer:
        failed = failing(peer)
    assert "certificate verify failed" in str(failed)
    assert not failed.sent
    assert peer.requests == []


def test_a_certificate_of_another_is_refused(tmp_path: Path, trusting: Callable[[Path], None]) -> None:
    authority, server = certificate(tmp_path, x509.DNSName("other.example"))
    trusting(authority)
    with Peer(staying, tls=server).running() as peer:
        failed = failing(peer)
    assert "certificate verify failed" in str(failed)
    assert peer.requests == []


def test_the_wait_ends_however_slowly_an_answer_comes_through_tls(
    tmp_path: Path, trusting: Callable[[Path], None]
) -> None:
    authority, server = certificate(tmp_path, HERE)
    trusting(authority)

    def dripping(peer: Peer, connection: socket.socket, _: int) -> None:
        peer.read(connection)
        peer.drip(connection, b"HTTP/1.1 200 OK\r\n" + b"X-Header: x\r\n" * 20)

    with Peer(dripping, tls=server).running() as peer:
        assert failing(peer, seconds=1.0).sent
        assert not peer.finished.is_set()


def test_the_wait_ends_where_tls_is_never_agreed() -> None:
    def silent(peer: Peer, connection: socket.socket, _: int) -> None:
        peer.over.wait(LONG)

    with Peer(silent).running() as peer, pytest.raises(Unanswered, match=r"no connection: 0\.3 s were over"):
        post(peer.url.replace("http:", "https:"), b"{}", HEADERS, seconds=0.3)


def test_many_slow_answers_at_once_all_end() -> None:
    """Each thread has its own deadline, and none waits for another's."""

    def never(peer: Peer, connection: socket.socket, _: int) -> None:
        peer.over.wait(LONG)

    with Peer(never).running() as peer:
        began = time.monotonic()
        threads = [threading.Thread(target=failing, args=(peer,), kwargs={"seconds": 1.0}) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - began < LONG / 6  # one after another: 10 s
