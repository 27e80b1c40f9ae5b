"""Configuration: one frozen object, read once from the environment.  A secret has no default."""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from environs import Env, EnvError
from marshmallow.validate import OneOf, Range

from casino_brag.errors import SetUpError
from casino_brag.outbound import problem_of

_SHARE: Final = re.compile(r"([0-9]{1,6})(?:/([1-9][0-9]{0,5}))?")


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The provider at which staff may sign in, by OpenID Connect, and as which client this service is known there."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Config:
    """What a process of the service needs to know.

    `seal_keys`: AES-256 keys by key id; the first one seals, all open.  `pool_size`: connections a worker.
    `rate_per_second`: requests a caller may send to a worker; 0 is no limit.
    `large_amounts`: from which amounts on rounds and players' days are told of (`casino_brag.watch.large`).
    `sealing_lag_seconds`: how long ago the log may have been sealed where rounds are opened; 0 is no limit.
    `rtp_ceiling`: what no wager of a draft may return as much as, of what is staked on it: above 0, at most 1.
    `rtp_suspension`: what is done with a version when the evidence against it is at its highest: none, drain, disable.
    `oidc`: where staff may sign in beside the console's own way; None: nowhere.
    """

    database_url: str = field(repr=False)
    seal_keys: Mapping[str, bytes] = field(repr=False)
    log_format: str = "json"
    pool_size: int = 8
    rate_per_second: int = 200
    sealing_lag_seconds: int = 300
    large_amounts: str = ""
    rtp_ceiling: Fraction = Fraction(1)
    rtp_suspension: str = "drain"
    oidc: OidcSettings | None = None


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What gunicorn needs to know: where to listen, and how many workers of how many threads."""

    bind: str
    workers: int
    threads: int


def read_config(*, database_url: str | None = None, seal_keys: Mapping[str, bytes] | None = None) -> Config:
    """The configuration of the environment; what is given here stands in for the environment's.

    `SetUpError` names the variable that is missing or wrong.
    """
    env = Env()
    log_format = "console" if sys.stdout.isatty() else "json"
    with _named_when_wrong():
        return Config(
            database_url=database_url or env.str("DATABASE_URL"),
            seal_keys=seal_keys or parse_seal_keys(env.str("CASINO_BRAG_SEAL_KEYS")),
            log_format=env.str("CASINO_BRAG_LOG_FORMAT", log_format, validate=OneOf(["json", "console"])),
            pool_size=_pool_size(env),
            rate_per_second=env.int("CASINO_BRAG_RATE_PER_SECOND", 200, validate=Range(0, 100_000)),
            sealing_lag_seconds=env.int("CASINO_BRAG_SEALING_LAG_SECONDS", 300, validate=Range(0, 86_400)),
            large_amounts=env.str("CASINO_BRAG_LARGE_AMOUNTS", ""),
            rtp_ceiling=_rtp_ceiling(env),
            rtp_suspension=env.str(
                "CASINO_BRAG_RTP_SUSPENSION", "drain", validate=OneOf(["none", "drain", "disable"])
            ),
            oidc=_oidc(env),
        )


def _rtp_ceiling(env: Env) -> Fraction:
    text = env.str("CASINO_BRAG_RTP_CEILING", "1")
    match = _SHARE.fullmatch(text)
    ceiling = Fraction(int(match[1]), int(match[2] or 1)) if match else Fraction(0)
    if not 0 < ceiling <= 1:
        raise SetUpError(
            f"CASINO_BRAG_RTP_CEILING is {text!r}: give 1, or a fraction below it such as 999/1000"
        )
    return ceiling


def _oidc(env: Env) -> OidcSettings | None:
    names = ("CASINO_BRAG_OIDC_ISSUER", "CASINO_BRAG_OIDC_CLIENT_ID", "CASINO_BRAG_OIDC_CLIENT_SECRET")
    given = [env.str(name, "") for name in names]
    if not any(given):
        return None
    if missing := [name for name, value in zip(names, given, strict=True) if not value]:
        raise SetUpError(f"{' and '.join(missing)} is missing: give all of {', '.join(names)}, or none")
    if problem := problem_of(given[0]):
        raise SetUpError(f"CASINO_BRAG_OIDC_ISSUER {problem}: give the issuer as https://login.example.com")
    if find_spec("authlib") is None:
        raise SetUpError(
            "CASINO_BRAG_OIDC_ISSUER needs an extra. Install it: pip install 'casino-brag[oidc]'"
        )
    return OidcSettings(*given)


@dataclass(frozen=True, slots=True)
class SealingSettings:
    """What the job worker needs to know of the log: the text of its keys, where its checkpoints go and how often.

    None where the environment does not say it.
    """

    log_keys: str | None = field(repr=False)
    checkpoints_dir: Path | None
    checkpoint_seconds: int


def read_sealing_settings() -> SealingSettings:
    """The settings of sealing in the environment; `SetUpError` names the variable that is wrong."""
    env = Env()
    with _named_when_wrong():
        return SealingSettings(
            log_keys=env.str("CASINO_BRAG_LOG_KEYS", None),
            checkpoints_dir=env.path("CASINO_BRAG_CHECKPOINTS_DIR", None),
            checkpoint_seconds=env.int("CASINO_BRAG_CHECKPOINT_SECONDS", 60, validate=Range(1, 86_400)),
        )


def read_server_settings() -> ServerSettings:
    """gunicorn's settings in the environment; `SetUpError` names the variable that is wrong."""
    env = Env()
    with _named_when_wrong():
        return ServerSettings(
            bind=env.str("CASINO_BRAG_BIND", "127.0.0.1:8080"),
            workers=env.int("CASINO_BRAG_WORKERS", len(os.sched_getaffinity(0)), validate=Range(1, 64)),
            threads=_pool_size(env),
        )


def _pool_size(env: Env) -> int:
    # A thread holds one connection at most, so there are as many of the one as of the other.
    return int(env.int("CASINO_BRAG_POOL_SIZE", 8, validate=Range(1, 128)))


@contextmanager
def _named_when_wrong() -> Iterator[None]:
    try:
        yield
    except EnvError as wrong:
        raise SetUpError(str(wrong)) from wrong


def parse_seal_keys(text: str) -> Mapping[str, bytes]:
    """Keys as `id:base64,id:base64`, 32 bytes each.

    >>> sorted(parse_seal_keys("k1:" + "A" * 43 + "="))
    ['k1']
    """
    keys: dict[str, bytes] = {}
    for part in text.split(","):
        key_id, colon, encoded = part.strip().partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except ValueError:
            key = b""
        if not (key_id and colon and len(key) == 32) or key_id in keys:
            raise SetUpError("CASINO_BRAG_SEAL_KEYS is a list of id:base64, each of 32 bytes, each id once")
        keys[key_id] = key
    return keys


def shipped(name: str) -> Path:
    """The directory `name` (migrations, paytables) that belongs to this version of the package.

    A wheel carries it inside the package; a checkout has it beside the package.
    """
    package = Path(str(resources.files("casino_brag")))
    for candidate in (package / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise SetUpError(
        f"The installation is incomplete: its directory {name}/ is missing. Install the package anew."
    )
