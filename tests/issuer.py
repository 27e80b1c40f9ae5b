"""A small issuer of tokens that can be told to do everything wrong, for what no real provider does on request.

It stands where a provider does.  There is no page to sign in at: `Issuer.approve` is what its person did there.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qs, unquote_plus, urlsplit

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from casino_brag.config import OidcSettings

CLIENT_ID: Final = "casino-brag"
CLIENT_SECRET: Final = "known to both: 100 %, a+b, é"


def plain(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Issuer:
    """What it does, and what it was asked for; each test changes it as it likes."""

    base: str
    key: RSAPrivateKey = field(default_factory=cache(lambda: generate_private_key(65537, 2048)), repr=False)
    claims: dict[str, Any] = field(default_factory=dict)
    """Instead of those that would be right; None leaves one out."""
    document: dict[str, Any] = field(default_factory=dict)
    """The same of its description."""
    granted: dict[str, Any] = field(default_factory=dict)
    """And of what it answers a code with."""
    delay: float = 0.0
    """For so many seconds it thinks about each answer."""
    sign: Callable[[dict[str, Any]], str] | None = None
    answer: Response | None = None
    """What everything is answered with, where it is given."""
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def settings(self) -> OidcSettings:
        return OidcSettings(self.base, CLIENT_ID, CLIENT_SECRET)

    def approve(self, address: str, subject: str) -> dict[str, str]:
        """What a browser brings back that went to this address, and whose person is this one here."""
        parts = urlsplit(address)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.base}/authorize"
        sent = {name: values[0] for name, values in parse_qs(parts.query, strict_parsing=True).items()}
        assert (sent["response_type"], sent["scope"], sent["prompt"]) == ("code", "openid", "login")
        assert (sent["client_id"], sent["code_challenge_method"]) == (CLIENT_ID, "S256")
        code = secrets.token_urlsafe(16)
        self.codes[code] = sent | {"sub": subject}
        return {"state": sent["state"], "code": code}

    def rs256(self, claims: dict[str, Any], key: RSAPrivateKey | None = None) -> str:
        signed = f"{_part({'alg': 'RS256', 'kid': 'k', 'their.own': 1})}.{_part(claims)}"
        return f"{signed}.{plain((key or self.key).sign(signed.encode(), PKCS1v15(), SHA256()))}"

    def hs256(self, claims: dict[str, Any], key: bytes) -> str:
        signed = f"{_part({'alg': 'HS256', 'kid': 'k'})}.{_part(claims)}"
        return f"{signed}.{plain(hmac.digest(key, signed.encode(), 'sha256'))}"

    def unsigned(self, claims: dict[str, Any]) -> str:
        return f"{_part({'alg': 'none'})}.{_part(claims)}."

    @property
    def public_pem(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def _serve(self, request: Request) -> Response:
        self.asked.append(request.path)
        time.sleep(self.delay)
        if self.answer is not None:
            return self.answer
        if request.path == "/.well-known/openid-configuration":
            found = {"issuer": self.base, "authorization_endpoint": f"{self.base}/authorize"}
            found |= {"token_endpoint": f"{self.base}/token", "jwks_uri": f"{self.base}/jwks"}
            return _json(found | self.document)
        if request.path == "/jwks":
            numbers = self.key.public_key().public_numbers()
            n, e = numbers.n.to_bytes(256), numbers.e.to_bytes(3)
            return _json({"keys": [{"kty": "RSA", "kid": "k", "use": "sig", "n": plain(n), "e": plain(e)}]})
        return self._token(request)

    def _token(self, request: Request) -> Response:
        sent, given = self.codes.pop(request.form["code"], None), request.authorization
        if (
            sent is None
            or given is None
            or [unquote_plus(text or "") for text in (given.username, given.password)]
            != [CLIENT_ID, CLIENT_SECRET]
            or request.form["redirect_uri"] != sent["redirect_uri"]
            or plain(sha256(request.form["code_verifier"].encode()).digest()) != sent["code_challenge"]
        ):
            return _json({"error": "invalid_grant"}, 400)
        now = int(time.time())
        right = {"iss": self.base, "sub": sent["sub"], "aud": CLIENT_ID, "nonce": sent["nonce"]}
        times = {"iat": now, "exp": now + 300, "auth_time": now}
        claims = {name: value for name, value in (right | times | self.claims).items() if value is not None}
        token = (self.sign or self.rs256)(claims)
        return _json({"access_token": "unused", "token_type": "Bearer", "id_token": token} | self.granted)


def _part(value: dict[str, Any]) -> str:
    return plain(json.dumps(value).encode())


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, content_type="application/json")


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer that answers until the block ends."""
    issuer = Issuer("")
    http = make_server("127.0.0.1", 0, Request.application(issuer._serve), threaded=True)
    issuer.base = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield issuer
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
