"""Jurisdictions: what a regulator asks of a session, read from the files of `jurisdictions/`.

Some of it the server enforces (floors of return, seconds between rounds, largest stakes, client seeds, what counts as
a win); the rest it tells the front-end, as `Jurisdiction.flags`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

from casino_brag.config import shipped
from casino_brag.errors import SetUpError
from casino_brag.game.paytable import PAYOUT_MAX_MINOR
from casino_brag.game.paytable_file import PaytableError, Problem, Table, read_toml
from casino_brag.wallet.currency import exponent

DEFAULT: Final = "none"
"""The jurisdiction of a session that names none; an installation without it is refused."""

_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SHARE: Final = re.compile(r"([0-9]{1,6})/([1-9][0-9]{0,5})")
_TEXT_MAX: Final = 300
_DAYS_MAX: Final = 3660


class Celebration(StrEnum):
    """Which rounds may be shown to the player as a win."""

    NET_WIN = "net_win"
    """Those that paid more than was staked."""
    ANY_PAYOUT = "any_payout"
    """Those that paid anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jurisdiction:
    """What one regulator asks.

    `name` is what a session names it by, and the name of its file; `source` says where each figure comes from.
    Floors are shares of what is staked, by type of wager and under the best play; None is no floor.  `certificate` says
    whether a paytable is approved only with the reference of a certificate that covers it.  `autoplay` and
    `skip` say what a front-end may offer, `net_position` and `elapsed_time` what it has to show.
    `stake_max_minor` holds the most that a round may stake, by currency; one that is not there has no such limit.
    """

    name: str
    title: str
    source: tuple[str, ...]
    rtp_floor_main: Fraction | None
    rtp_floor_pair_bonus: Fraction | None
    certificate: bool
    seconds_between_starts: int
    celebration: Celebration
    autoplay: bool
    skip: bool
    net_position: bool
    elapsed_time: bool
    reality_check_minutes: int | None
    history_days: int | None
    history_on_request_days: int | None
    stake_max_minor: Mapping[str, int]
    client_seeds: bool

    def flags(self) -> dict[str, Any]:
        """What a front-end has to know, as JSON: all but the floors, the certificate and where the figures come from.

        >>> flags = jurisdiction("gb").flags()
        >>> flags["seconds_between_starts"], flags["celebration"], flags["autoplay"], flags["stake_max_minor"]
        (5, 'net_win', False, {})
        """
        return {
            "title": self.title,
            "seconds_between_starts": self.seconds_between_starts,
            "celebration": self.celebration.value,
            "autoplay": self.autoplay,
            "skip": self.skip,
            "net_position": self.net_position,
            "elapsed_time": self.elapsed_time,
            "reality_check_minutes": self.reality_check_minutes,
            "history_days": self.history_days,
            "history_on_request_days": self.history_on_request_days,
            "stake_max_minor": dict(self.stake_max_minor),
            "client_seeds": self.client_seeds,
        }

    def celebrates(self, total_staked_minor: int, total_payout_minor: int) -> bool:
        """Whether a round may be shown as a win; payouts include returned stakes.

        >>> [jurisdiction(name).celebrates(200, 200) for name in ("gb", "mga")]
        [False, True]
        """
        least = total_staked_minor if self.celebration is Celebration.NET_WIN else 0
        return total_payout_minor > least

    def floor_problem(self, figures: Iterable[Mapping[str, str]]) -> str | None:
        """Why a game of these published figures may not be offered here; None when it may.

        `figures` are those of `casino_brag.catalogue.paytables.published_figures`: the exact `rtp` of a wager is its
        return per unit staked.  A game without a Pair Bonus has none to compare.

        >>> main = {"wager": "main", "figure": "rtp", "exact": "4/5"}
        >>> jurisdiction("nj").floor_problem([main])
        'In New Jersey the main game has to return at least 83 % of what is staked; its exact return is 4/5.'
        >>> jurisdiction("gb").floor_problem([main])
        """
        returns = {
            figure["wager"]: Fraction(figure["exact"]) for figure in figures if figure["figure"] == "rtp"
        }
        assert "main" in returns, "every version is published with the return of its main game"
        floors = (
            ("main", "main game", self.rtp_floor_main),
            ("pair_bonus", "Pair Bonus", self.rtp_floor_pair_bonus),
        )
        for wager, called, floor in floors:
            if floor is not None and returns.get(wager, floor) < floor:
                return (
                    f"In {self.title} the {called} has to return at least {float(floor * 100):g} % of what is staked;"
                    f" its exact return is {returns[wager]}."
                )
        return None

    def stake_problem(self, currency: str, total_minor: int) -> str | None:
        """Why a round may not be opened for so much; None when it may.

        `total_minor` is all that the round can come to stake, the Play that may follow included.

        >>> jurisdiction("gb").stake_problem("GBP", 600000)
        """
        most = self.stake_max_minor.get(currency)
        if most is None or total_minor <= most:
            return None
        return (
            f"In {self.title} a round may stake at most {most} minor units of {currency} in all;"
            f" this one could come to {total_minor}."
        )


class JurisdictionError(SetUpError):
    """Jurisdictions that cannot be used; `problems` holds everything found wrong with them, file by file."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def jurisdiction(name: str) -> Jurisdiction:
    """The installed jurisdiction of this name; `SetUpError` when there is none.

    >>> jurisdiction("gb").title
    'Great Britain'
    """
    found = _installed().get(name)
    if found is None:
        raise SetUpError(f"There is no jurisdiction {name!a}: the installation has {', '.join(names())}.")
    return found


def names() -> tuple[str, ...]:
    """The names of the installed jurisdictions, in order.

    >>> names()
    ('gb', 'mga', 'nj', 'none', 'ontario')
    """
    return tuple(_installed())


@cache
def _installed() -> Mapping[str, Jurisdiction]:
    return load_jurisdictions(shipped("jurisdictions"))


def load_jurisdictions(directory: Path) -> Mapping[str, Jurisdiction]:
    """The jurisdictions in a directory by name, in order; `JurisdictionError` with every problem in its files.

    >>> load_jurisdictions(Path("jurisdictions"))["mga"].rtp_floor_main
    Fraction(17, 20)
    """
    found: dict[str, Jurisdiction] = {}
    problems: list[Problem] = []
    files = sorted(directory.glob("*.toml"))
    for file in files:
        try:
            found[file.stem] = _load(file)
        except PaytableError as error:  # as the reader of TOML calls it
            problems += error.problems
    default = directory / f"{DEFAULT}.toml"
    if default not in files:
        problems.append(Problem(str(default), None, "", "there is no such file: restore it"))
    if problems:
        raise JurisdictionError(tuple(problems))
    return found


def _load(file: Path) -> Jurisdiction:
    content, report = read_toml(file)
    profile = _Profile(content, "", report)
    if not _NAME.fullmatch(file.stem):
        report.add("", "a jurisdiction's file is named after it in lower case, as gb.toml: rename it")
    found = Jurisdiction(
        name=file.stem,
        title=profile.text("title", longest=60),
        source=profile.texts("source"),
        rtp_floor_main=profile.share("rtp_floor_main"),
        rtp_floor_pair_bonus=profile.share("rtp_floor_pair_bonus"),
        certificate=profile.truth("certificate"),
        seconds_between_starts=profile.integer("seconds_between_starts", 0, 60),
        celebration=profile.choice("celebration", Celebration),
        autoplay=profile.truth("autoplay"),
        skip=profile.truth("skip"),
        net_position=profile.truth("net_position"),
        elapsed_time=profile.truth("elapsed_time"),
        reality_check_minutes=profile.optional_integer("reality_check_minutes", 1440),
        history_days=profile.optional_integer("history_days", _DAYS_MAX),
        history_on_request_days=profile.optional_integer("history_on_request_days", _DAYS_MAX),
        stake_max_minor=_stake_max(profile),
        client_seeds=profile.truth("client_seeds"),
    )
    report.raise_problems()
    return found


def _stake_max(profile: Table) -> Mapping[str, int]:
    if "stake_max" not in profile:
        return {}
    table = profile.table("stake_max")
    most = {}
    for currency in table:
        if exponent(currency) is None:
            table.problem(
                currency, "no currency has this code: give one of ISO 4217, as GBP, or a declared one"
            )
        else:
            most[currency] = table.integer(currency, 1, PAYOUT_MAX_MINOR)
    return most


class _Profile(Table):
    """A jurisdiction's file, which has kinds of values that a paytable has not."""

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self._content.get(name)
        if isinstance(value, bool):
            self._known.append(name)
            return value
        self._refuse(name, "true or false")
        return False

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of one or more lines of text."""
        value = self._content.get(name)
        if isinstance(value, list) and value and all(map(_is_line, value)):
            self._known.append(name)
            return tuple(value)
        self._refuse(name, f"a list of one or more lines of text, each of at most {_TEXT_MAX} characters")
        return ()

    def share(self, name: str) -> Fraction | None:
        """A fraction above 0 and up to 1, written ``"17/20"``; None when the key is missing."""
        if name not in self:
            return None
        value = self._content[name]
        match = _SHARE.fullmatch(value) if isinstance(value, str) else None
        share = Fraction(int(match[1]), int(match[2])) if match else None
        if share is not None and 0 < share <= 1:
            return share
        self._refuse(name, "a fraction above 0 and up to 1, such as '17/20'")
        return None

    def optional_integer(self, name: str, high: int) -> int | None:
        """A whole number from 1 to ``high``; None when the key is missing."""
        return self.integer(name, 1, high) if name in self else None


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable() and len(value) <= _TEXT_MAX
