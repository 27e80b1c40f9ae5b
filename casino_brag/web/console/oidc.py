"""OpenID Connect: the operator's identity provider is asked who is at the browser (authorization code flow, PKCE).

Authlib makes the requests and verifies what comes back.  The calls themselves are :mod:`casino_brag.outbound`'s, with
its bounds on time and size.  Nothing is kept between two sign-ins, so a provider's new keys and addresses are used at
once.  This module is imported only where a provider is configured: Authlib is an extra.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hmac import compare_digest
from threading import BoundedSemaphore
from typing import Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import structlog
from authlib.common.errors import AuthlibBaseError
from authlib.common.security import generate_token
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from casino_brag.config import OidcSettings
from casino_brag.errors import Code, ServiceError
from casino_brag.outbound import Unanswered, get, post, problem_of
from casino_brag.sealing import SealBroken, Sealer
from casino_brag.staff.provider import WAY_SECONDS, Account

SECONDS: Final = 8
"""How long the provider is waited for at each step of a way, all its answers together."""
BYTES_MAX: Final = 262_144
AT_ONCE_MAX: Final = 2
"""So many of a worker's threads at most wait for the provider; whoever comes on top is refused at once."""
LEEWAY_SECONDS: Final = 60
"""By how much the provider's clock may be off."""
ALGORITHMS: Final = ("RS256", "PS256", "ES256")
"""Signatures by the provider's own key alone: neither none nor one made with a secret that both know."""

log = structlog.get_logger("casino_brag.oidc")

# Providers add headers of their own, which change nothing.
_SIGNATURES: Final = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
_CONTEXT: Final = "way to the provider"
_waiting: Final = BoundedSemaphore(AT_ONCE_MAX)


@dataclass(frozen=True, slots=True)
class Way:
    """A browser's way to the provider and back: what it has to bring, and what for.

    `onward` is where a person goes who is signed in by it; `session_id` the session whose person links an account,
    else empty.
    """

    onward: str
    session_id: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    began: int


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider that the operator chose.  `back`, where it is asked for, is the address that browsers return to."""

    settings: OidcSettings
    sealer: Sealer

    @property
    def host(self) -> str:
        """What people know it by."""
        return urlsplit(self.settings.issuer).netloc

    def begin(self, onward: str, session_id: str = "") -> Way:
        """A new way."""
        return Way(
            onward,
            session_id,
            state=generate_token(32),
            nonce=generate_token(32),
            verifier=generate_token(64),
            began=int(time.time()),
        )

    def sealed(self, way: Way) -> str:
        """A way as the browser keeps it, which cannot read it."""
        return self.sealer.seal(json.dumps(asdict(way)).encode(), context=_CONTEXT).hex()

    def way(self, sealed: str, state: str) -> Way:
        """The way that a browser is on; `ServiceError` unauthenticated for none, an old one, and another browser's."""
        try:
            way = Way(**json.loads(self.sealer.open(bytes.fromhex(sealed), context=_CONTEXT)))
            if way.began + WAY_SECONDS >= time.time() and compare_digest(way.state.encode(), state.encode()):
                return way
        except (SealBroken, ValueError, TypeError):
            pass
        raise ServiceError(
            Code.UNAUTHENTICATED,
            "Your browser did not set out for this, or it was too long ago. Begin again.",
        )

    def address(self, way: Way, back: str) -> str:
        """Where a browser goes to sign in there, anew even if it is signed in there already."""
        with self._asked() as calls:
            url, _ = self._client(calls, back).create_authorization_url(
                self._document(calls)["authorization_endpoint"],
                state=way.state,
                nonce=way.nonce,
                code_verifier=way.verifier,
                prompt="login",
                max_age=WAY_SECONDS,  # any number obliges it to send `auth_time`; nobody is longer on the way
            )
        return str(url)

    def account(self, way: Way, back: str, code: str) -> Account:
        """Whose code this is.

        Raises `ServiceError`: busy (the provider does not answer), unauthenticated (there is no code, or what the
        provider answers does not hold).
        """
        if not code:
            raise ServiceError(Code.UNAUTHENTICATED, f"{self.host} signed nobody in.")
        with self._asked() as calls:
            document = self._document(calls)
            token = self._client(calls, back).fetch_token(
                document["token_endpoint"],
                # Authlib leaves out the encoding that RFC 6749, 2.3.1 demands.
                auth=ClientAuth(quote_plus(self.settings.client_id), quote_plus(self.settings.client_secret)),
                grant_type="authorization_code",
                code=code,
                code_verifier=way.verifier,
            )
            keys = KeySet.import_key_set(calls.read(document["jwks_uri"]))
            read = jwt.decode(token["id_token"], keys, registry=_SIGNATURES)
            claims = CodeIDToken(
                read.claims,
                read.header,
                {
                    "iss": {"essential": True, "value": self.settings.issuer},
                    "aud": {"essential": True, "value": self.settings.client_id},
                    "auth_time": {
                        "essential": True,
                        "validate": lambda _, at: at >= way.began - LEEWAY_SECONDS,
                    },
                    "sub": {
                        "essential": True,
                        "validate": lambda _, sub: len(sub) <= 255 and sub.isprintable(),
                    },
                },
                {
                    "nonce": way.nonce,
                    "client_id": self.settings.client_id,
                    "access_token": token.get("access_token"),
                },
            )
            claims.validate(leeway=LEEWAY_SECONDS)
            return Account(self.settings.issuer, claims["sub"])

    def _client(self, calls: _Calls, back: str) -> OAuth2Client:
        return OAuth2Client(
            calls,
            self.settings.client_id,
            scope="openid",
            redirect_uri=back,
            code_challenge_method="S256",
        )

    def _document(self, calls: _Calls) -> Mapping[str, str]:
        """The provider's own description, whose addresses are such as we call."""
        found = calls.read(self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if found.get("issuer") != self.settings.issuer:
            raise Misdescribed("issuer", found.get("issuer"))
        addresses = {
            name: str(found.get(name)) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
        }
        for name, url in addresses.items():
            if problem_of(url):
                raise Misdescribed(name, url)
        return addresses

    @contextmanager
    def _asked(self) -> Iterator[_Calls]:
        if not _waiting.acquire(blocking=False):
            raise ServiceError(
                Code.BUSY, f"Others are on their way to {self.host}. Try again in a few seconds."
            )
        try:
            yield _Calls(time.monotonic() + SECONDS)
        except Unanswered as failed:
            log.warning("provider", problem=str(failed))
            raise ServiceError(
                Code.BUSY, f"{self.host} does not answer. Sign in with your password, or try again later."
            ) from failed
        except _FAULTS as failed:
            claim, error = getattr(failed, "claim", None), getattr(failed, "error", None)
            log.warning("provider", problem=type(failed).__name__, claim=claim, error=str(error or "")[:200])
            raise ServiceError(
                Code.UNAUTHENTICATED,
                f"What {self.host} answered does not hold, so nobody is signed in by it.",
            ) from failed
        finally:
            _waiting.release()


class Misdescribed(Exception):
    """What the provider says of itself does not do: of this name, this value."""

    def __init__(self, claim: str, error: object) -> None:
        super().__init__(claim, error)
        self.claim, self.error = claim, error


# What comes of answers of another form than Authlib and this module expect is of the built-in kinds.
_FAULTS: Final = (
    Misdescribed,
    AuthlibBaseError,
    JoseError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer, as Authlib reads it."""

    status_code: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def raise_for_status(self) -> None:
        if self.status_code != 200:
            raise Unanswered(f"The answer is a status {self.status_code}.", sent=True)


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of one step, Authlib's among them, made by `outbound` until this instant."""

    until: float

    def read(self, url: str) -> Any:
        answer = _Answer(*get(url, seconds=self._left(), bytes_max=BYTES_MAX))
        answer.raise_for_status()
        return answer.json()

    def post(
        self, url: str, data: Mapping[str, str], headers: Mapping[str, str], auth: ClientAuth
    ) -> _Answer:
        url, headers, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        return _Answer(*post(url, body.encode(), headers, seconds=self._left(), bytes_max=BYTES_MAX))

    def _left(self) -> float:
        return max(0.0, self.until - time.monotonic())
