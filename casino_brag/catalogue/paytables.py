"""Paytable versions: published from files, never changed, and read back by their identifier."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.jurisdictions import names
from casino_brag.db.clock import clock
from casino_brag.errors import Code, ServiceError
from casino_brag.game.paytable import GAME_NAME, Paytable
from casino_brag.game.paytable_file import PaytableError, Problem, key_lines, read_text
from casino_brag.ids import uuid7
from casino_brag.odds.returns import main_game, pair_bonus_game, player_favouring

VERSIONS_KEPT: Final = 256
"""How many versions a process keeps in memory."""


@dataclass(frozen=True, slots=True)
class PaytableVersion:
    """A published paytable.  `figures` are those computed when it was published.

    `jurisdictions` names those in whose sessions it is offered; None is all.
    """

    version_id: UUID
    game: str
    version: int
    digest: str
    paytable: Paytable
    figures: Sequence[Mapping[str, str]]
    jurisdictions: Sequence[str] | None = None

    def offered_in(self, jurisdiction: str) -> bool:
        """Whether it is offered in sessions of this jurisdiction."""
        return self.jurisdictions is None or jurisdiction in self.jurisdictions

    def lost_with(self, jurisdictions: Sequence[str] | None) -> list[str]:
        """The installed jurisdictions in which it is offered, and one for these would not be; None is all."""
        kept = names() if jurisdictions is None else jurisdictions
        return [name for name in names() if self.offered_in(name) and name not in kept]


class Shelf:
    """Published versions, read from the database once: they never change."""

    def __init__(self) -> None:
        self._versions: OrderedDict[UUID, PaytableVersion] = OrderedDict()
        self._lock = threading.Lock()

    def version(self, conn: psycopg.Connection[Any], version_id: UUID) -> PaytableVersion:
        """The version with this identifier.

        `game_unavailable` when its stored text no longer has the digest it was published under: such a game
        deals nothing and settles nothing until its records are repaired.
        """
        with self._lock:
            found = self._versions.get(version_id)
        if found is None:
            found = read_version_of(conn, version_id)
            with self._lock:
                self._versions[version_id] = found
                while len(self._versions) > VERSIONS_KEPT:
                    self._versions.popitem(last=False)
        return found

    def active(self, conn: psycopg.Connection[Any], game: str) -> PaytableVersion | None:
        """The version that a game offers, or would if it were open; None for a game without one; else as `version`."""
        row = conn.execute("SELECT active_version_id FROM game WHERE game = %s", [game]).fetchone()
        return None if row is None or row[0] is None else self.version(conn, row[0])


def read_version_of(conn: psycopg.Connection[Any], version_id: UUID) -> PaytableVersion:
    """The version with this identifier, read anew; else as `Shelf.version`."""
    row = conn.execute(
        "SELECT version_id, game, version, digest, document, figures, jurisdictions FROM paytable_version"
        " WHERE version_id = %s",
        [version_id],
    ).fetchone()
    assert row is not None, "a round's or game's version is held by a foreign key"
    identifier, game, version, digest, document, figures, jurisdictions = row
    if sha256(document.encode()).hexdigest() != digest:
        raise ServiceError(
            Code.GAME_UNAVAILABLE,
            f"Version {version} of {game} was altered after it was published; the operator has to be told.",
        )
    paytable = Paytable.from_document(json.loads(document))
    return PaytableVersion(identifier, game, version, digest, paytable, figures, jurisdictions)


@dataclass(frozen=True, slots=True)
class Published:
    """What became of one paytable file: the version that is active, or the problems that closed the game.

    `changed` is false when the game was on that version, or closed for those problems, before.  `proposed` is the
    file where it was left alone, because persons approve what games offer: `version` is what the game offers then.
    """

    game: str
    version: int | None
    problems: tuple[str, ...]
    changed: bool
    proposed: Path | None = None


def publish_directory(
    conn: psycopg.Connection[Any],
    directory: Path,
    *,
    actor: str,
    authoriser: str | None = None,
    reason: str | None = None,
) -> list[Published]:
    """Publishes every paytable file of a directory; a game whose file is gone or will not do is closed.

    A problem of one file closes one game: the others are published all the same.  Where somebody of staff is an
    approver, files change nothing (docs/paytables.md).
    """
    files = {file.stem: file for file in directory.glob("*.toml")}
    known = {game for (game,) in conn.execute("SELECT game FROM game")}
    return [
        publish(
            conn,
            files.get(game, directory / f"{game}.toml"),
            actor=actor,
            authoriser=authoriser,
            reason=reason,
        )
        for game in sorted(files.keys() | known)
    ]


def publish(
    conn: psycopg.Connection[Any],
    file: Path,
    *,
    actor: str,
    authoriser: str | None = None,
    reason: str | None = None,
) -> Published:
    """Makes a file's content the active version of its game, or closes the game when the file will not do.

    `authoriser` has allowed it, where that is somebody else than `actor`; `reason` is why.
    """
    if not GAME_NAME.fullmatch(file.stem):
        unnamed = f"{str(file)!a}: a paytable's file is named after its game, as three-card-brag.toml"
        return Published(ascii(file.stem), None, (unnamed,), changed=False)
    try:
        text = read_text(file)
        paytable = Paytable.parse(text, game=file.stem, file=str(file))
        _refuse_to_favour_players(file, text, paytable)
    except PaytableError as error:
        return _close(conn, file, tuple(str(problem) for problem in error.problems), actor)
    return _put_in_force(conn, file, text, paytable, actor, authoriser, reason)


def _refuse_to_favour_players(file: Path, text: str, paytable: Paytable) -> None:
    if favours := player_favouring(paytable):
        lines = key_lines(text)
        raise PaytableError(
            tuple(
                Problem(str(file), lines.get(key, lines.get(key.partition(".")[0])), key, sentence)
                for key, sentence in favours.items()
            )
        )


def _put_in_force(
    conn: psycopg.Connection[Any],
    file: Path,
    text: str,
    paytable: Paytable,
    actor: str,
    authoriser: str | None,
    reason: str | None,
) -> Published:
    figures = published_figures(paytable)
    with conn.transaction():
        before = standing(conn, paytable.game)
        entry = Entry(
            type=EntryType.PAYTABLE_ACTIVATED,
            occurred_at=clock(conn),
            actor=actor,
            authoriser=authoriser,
            reason=reason,
            before=before,
            after={"game": paytable.game, "state": "enabled", "digest": paytable.digest},
        )
        row = conn.execute(
            "SELECT version, changed, paytable_needs_approval() FROM paytable_publish(%s, %s, %s, %s, %s, %s, %s)",
            [
                uuid7(),
                paytable.game,
                paytable.digest,
                paytable.canonical_bytes().decode(),
                Jsonb(figures),
                entry.text(),
                text,
            ],
        ).fetchone()
    assert row is not None
    version, changed, needs_approval = row
    if version is not None:
        return Published(paytable.game, version, (), changed)
    if needs_approval:
        return _left_alone(before, file, ())
    retired = f"{file}: a version of this content is retired: change it, or restore what was in force"
    return Published(paytable.game, _offered(before), (retired,), changed=False)


def _close(conn: psycopg.Connection[Any], file: Path, problems: tuple[str, ...], actor: str) -> Published:
    game, reason = file.stem, "\n".join(problems)
    with conn.transaction():
        before = standing(conn, game)
        entry = Entry(
            type=EntryType.GAME_DISABLED,
            occurred_at=clock(conn),
            actor=actor,
            reason=reason,
            before=before,
            after={"game": game, "state": "disabled"},
        )
        row = conn.execute(
            "SELECT game_disable(%s, %s, %s), paytable_needs_approval()", [game, reason, entry.text()]
        ).fetchone()
    assert row is not None
    if row[1]:
        return _left_alone(before, file, problems)
    return Published(game, None, problems, changed=row[0])


def _left_alone(before: Mapping[str, Any] | None, file: Path, problems: tuple[str, ...]) -> Published:
    if not file.exists():  # what games offer is kept in the database there, so none need have a file
        return Published(file.stem, _offered(before), (), changed=False)
    return Published(file.stem, _offered(before), problems, changed=False, proposed=file)


def _offered(before: Mapping[str, Any] | None) -> int | None:
    """The version that a game offers which stands so."""
    return before["version"] if before is not None and before["state"] == "enabled" else None


def hold(conn: psycopg.Connection[Any], game: str) -> None:
    """Lets others who would change a game's paytables wait until the transaction ends.

    `not_found` for what is no name at all.
    """
    if not game.isprintable():
        raise ServiceError(Code.NOT_FOUND, "There is no such game.")
    conn.execute("SELECT paytable_lock(%s)", [game])


def standing(conn: psycopg.Connection[Any], game: str) -> Mapping[str, Any] | None:
    """How a game stands before it is changed, which nobody else does meanwhile; None for one that there was not."""
    hold(conn, game)
    row = conn.execute(
        "SELECT g.state, v.version, v.digest FROM game AS g"
        " LEFT JOIN paytable_version AS v ON v.version_id = g.active_version_id WHERE g.game = %s",
        [game],
    ).fetchone()
    return None if row is None else {"game": game, "state": row[0], "version": row[1], "digest": row[2]}


def active_number(conn: psycopg.Connection[Any], game: str) -> int | None:
    """The number of the version that a game offers, or would if it were open; None for a game without one."""
    row = conn.execute(
        "SELECT v.version FROM game AS g JOIN paytable_version AS v ON v.version_id = g.active_version_id"
        " WHERE g.game = %s",
        [game],
    ).fetchone()
    return None if row is None else row[0]


def published_figures(paytable: Paytable) -> list[dict[str, str]]:
    """The exact figures a game is published with.

    `value` is the fraction `exact` as a decimal to eight places, for reading only.  Figures differ in their
    denominators, so each names its own.
    """
    best = "max_expectation"
    main = main_game(paytable)
    figures = [
        _figure("main", "rtp", main.rtp, "total_staked", best),
        _figure("main", "house_edge", main.house_edge, "ante", best),
    ]
    if (pair_bonus := pair_bonus_game(paytable)) is not None:
        figures.append(_figure("pair_bonus", "rtp", pair_bonus.rtp, "pair_bonus", "never_folded"))
    return figures


def _figure(wager: str, figure: str, exact: Fraction, denominator: str, strategy: str) -> dict[str, str]:
    return {
        "wager": wager,
        "figure": figure,
        "value": f"{exact.numerator / exact.denominator:.8f}",
        "exact": str(exact),
        "denominator": denominator,
        "strategy": strategy,
    }
