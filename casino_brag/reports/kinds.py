"""The reports over the whole installation: what each tells, and how its items stand in tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

import psycopg

from casino_brag.audit import EntryType
from casino_brag.reports.sources import Asked, Items, par_sheets, rights, rtp_cases, rtp_checks, voids
from casino_brag.rounds.reports import (
    PLAY,
    flat_performance,
    game_performance,
    interrupted,
    interrupted_totals,
    told,
)

INTERRUPTED_MINUTES: Final = 5
"""What has been unfinished for so long counts as interrupted."""

ROUTINE: Final = PLAY | {
    EntryType.WALLET_DEBIT_REFUSED,
    EntryType.WALLET_DEBIT_UNKNOWN,
    EntryType.WALLET_DEBIT_CANCELLED,
    EntryType.COMMITMENT_EXPIRED,
    EntryType.RNG_SELF_TESTED,
    EntryType.RNG_INSTANTIATED,
    EntryType.RNG_FORKED,
    EntryType.RNG_INTEGRITY_CHECKED,
    EntryType.INTEGRITY_CHECKED,
    EntryType.RTP_CHECKED,
    EntryType.REPLAY_COMPLETED,
    EntryType.STAFF_CALLED,
    EntryType.STAFF_SIGNED_IN,
    EntryType.STAFF_PROVED,
    EntryType.STAFF_SIGNED_OUT,
    EntryType.PAYTABLE_DRAFT_CREATED,
    EntryType.PAYTABLE_DRAFT_SAVED,
}
"""What goes as it should, and is no event; any other type of entry is one, a new one too."""

SIGNIFICANT: Final = frozenset(EntryType) - ROUTINE


class ReportName(StrEnum):
    """The reports there are."""

    GAME_PERFORMANCE = "game-performance"
    """What each version of each game took and paid."""
    SIGNIFICANT_EVENTS = "significant-events"
    """What happened beside play, and what was altered."""
    USERS_AND_RIGHTS = "users-and-rights"
    """Who may do what."""
    INTERRUPTED = "interrupted"
    """Rounds that are unfinished, and what is held for them."""
    VOIDS = "voids"
    """Rounds that were taken back."""
    RTP_CHECKS = "rtp-checks"
    """What was checked of the return to player."""
    RTP_CASES = "rtp-cases"
    """What became of alerts of the return to player."""
    PAR_SHEET = "par-sheet"
    """The exact figures of every paytable version."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a report is: its title and what it says of itself, how its items are read, and how they become rows.

    Each of `tables` has a title and the columns that stand beside each other on a page, after those of `key`; a table
    for machines has all of them.  `of_time`: of what happened in a time, rather than of how things stand now.
    `of_operator`: whether it can be of one operator; `of_types`: whether of some types of entries.
    """

    title: str
    says: str
    read: Callable[[psycopg.Connection[Any], Asked], Items]
    key: tuple[str, ...]
    tables: tuple[tuple[str, tuple[str, ...]], ...]
    flat: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]] = lambda item: [item]
    totals: Callable[[psycopg.Connection[Any], Asked], Items] = lambda _conn, _asked: []
    of_time: bool = True
    of_operator: bool = True
    of_types: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of a row, in the order in which pages have them."""
        return (*self.key, *(column for _, columns in self.tables for column in columns))


def _performance(conn: psycopg.Connection[Any], asked: Asked) -> Items:
    return game_performance(conn, asked.operator_id, asked.since, asked.until)


def _events(conn: psycopg.Connection[Any], asked: Asked) -> Items:
    return told(conn, asked.types, asked.operator_id, asked.since, asked.until, after=None, limit=asked.limit)


def _interrupted(conn: psycopg.Connection[Any], asked: Asked) -> Items:
    before = asked.now - timedelta(minutes=INTERRUPTED_MINUTES)
    return interrupted(conn, asked.operator_id, before, after=None, limit=asked.limit)


def _interrupted_totals(conn: psycopg.Connection[Any], asked: Asked) -> Items:
    return interrupted_totals(conn, asked.operator_id, asked.now - timedelta(minutes=INTERRUPTED_MINUTES))


def _rights_rows(item: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """A row for each token or key; one for a person without any."""
    held = item["tokens"] if item["kind"] == "staff" else item["keys"]
    same = {"kind": item["kind"], "name": item["name"], "roles": " ".join(item.get("roles", ()))}
    same |= {"since": item["added_at"], "until": item.get("retired_at")}
    return [
        same
        | {
            "token_or_key": one.get("token_id") or one["key_id"],
            "label": one.get("label"),
            "issued_at": one.get("issued_at") or one["added_at"],
            "expires_at": one.get("expires_at"),
            "ended_at": one.get("revoked_at") or one.get("retired_at"),
        }
        for one in held
    ] or [same]


def _check_rows(item: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """A row for each figure of each version over each window; one where there was no version."""
    return [
        {
            **item,
            **figure.get("given_cards_and_decisions", {}),
            **{name: figure.get(name) for name in ("wager", "currency", "rounds", "verdict")},
            **{name: figure.get(name, 0) for name in ("staked_minor", "returned_minor")},
            "game": version["game"],
            "paytable_version": version["version"],
            "window": window["window"],
            "of": f"{figure['by']} {figure['value'] or ''}".strip(),
            "actual_rtp": figure["actual_rtp"]["value"],
            "level": version["evidence"]["level"],
        }
        for version in item["result"]["versions"]
        for window in version["windows"]
        for figure in window["figures"]
    ] or [item]


def _case_rows(item: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """A row for each step of a case."""
    return [
        {**item, "step": number, **{name: step[name] for name in ("changed_at", "actor", "state", "note")}}
        for number, step in enumerate(item["changes"], 1)
    ]


def _par_sheet_rows(item: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    sheet = item["par_sheet"]
    main, pair_bonus = sheet["main"], sheet["pair_bonus"] or {}
    figures = {f"main_{name}": main[name] for name in _MAIN} | {
        f"pair_bonus_{name}": pair_bonus.get(name) for name in _PAIR_BONUS
    }
    return [{**item, **figures}]


_OF_WAGER: Final = ("staked_minor", "paid_minor", "actual_rtp", "actual_rtp_exact", "theoretical_rtp")
_MAIN: Final = ("rtp", "rtp_exact", "house_edge", "house_edge_exact", "sd", "hit_frequency")
_PAIR_BONUS: Final = ("rtp", "rtp_exact", "sd", "hit_frequency")

KINDS: Final[Mapping[ReportName, Kind]] = {
    ReportName.GAME_PERFORMANCE: Kind(
        "Game performance",
        "What each version of each game took and paid for each operator, of rounds for real money that were opened in"
        " the time above; no tests. Voided rounds are in no other sum. Amounts are in minor units.",
        _performance,
        ("operator", "game", "paytable_version", "currency"),
        (
            ("Rounds", ("rounds", "settled", "open_rounds", "voids")),
            ("Open and voided rounds", ("held_minor", "refunded_minor", "compensated_minor", "kept_minor")),
            ("Settled rounds", ("staked_minor", "paid_minor", "actual_rtp", "actual_rtp_exact")),
            *(
                (title, tuple(f"{wager}_{what}" for what in _OF_WAGER))
                for title, wager in (("Main game", "main"), ("Pair Bonus", "pair_bonus"))
            ),
            ("Paytables", ("paytable_digest",)),
        ),
        flat=lambda item: [flat_performance(item)],
    ),
    ReportName.SIGNIFICANT_EVENTS: Kind(
        "Significant events and alterations",
        "What happened in the time above beside play, and what was altered: when, by whom and by whose leave, why, and"
        " the value before and after. Newest first.",
        _events,
        ("occurred_at", "type", "entry_id"),
        (
            ("Events", ("operator", "actor", "authoriser", "reason")),
            ("Values", ("before", "after", "payload")),
            ("Rounds", ("round_id",)),
        ),
        of_types=True,
    ),
    ReportName.USERS_AND_RIGHTS: Kind(
        "Users and rights",
        "Staff with their roles and tokens, and operators with the keys that they sign with, as they are now and were."
        " A token or key is told by its id; what is secret of it is not kept, or sealed.",
        rights,
        ("kind", "name"),
        (
            ("Who", ("roles", "since", "until")),
            ("Tokens and keys", ("token_or_key", "label", "issued_at", "expires_at", "ended_at")),
        ),
        flat=_rights_rows,
        of_time=False,
    ),
    ReportName.INTERRUPTED: Kind(
        "Interrupted rounds and held funds",
        f"Rounds for real money that have been unfinished for {INTERRUPTED_MINUTES} minutes or longer: stakes held,"
        " debits that an operator's wallet has yet to answer for, payouts that it has yet to confirm, and what is done"
        " when if nothing happens before. Amounts are in minor units.",
        _interrupted,
        ("round_id",),
        (
            ("Rounds", ("operator", "player", "game", "state", "since")),
            ("Funds", ("currency", "held_minor", "in_flight_minor", "owed_minor")),
            ("What follows", ("resolution", "resolves_at", "attempts", "last_problem")),
        ),
        totals=_interrupted_totals,
        of_time=False,
    ),
    ReportName.VOIDS: Kind(
        "Voided rounds",
        "Rounds that were taken back in the time above, by whom, by whose leave and why, and what went back to their"
        " players. Amounts are in minor units. Newest first.",
        voids,
        ("round_id",),
        (
            (
                "Rounds",
                ("operator", "player", "game", "paytable_version", "mode", "test", "opened_at", "settled_at"),
            ),
            ("Funds", ("currency", "staked_minor", "payout_minor", "refund_minor", "compensation_minor")),
            ("Voiding", ("voided_at", "policy", "actor", "approver", "reason")),
        ),
    ),
    ReportName.RTP_CHECKS: Kind(
        "Checks of the return to player",
        "Checks that were made in the time above, newest first: of each version what came back over a window of days"
        " that ends with the day of the check, beside what its rules let expect of the hands and decisions there were."
        " The level is that of the evidence over the version's life. Amounts are in minor units.",
        rtp_checks,
        ("day", "game", "paytable_version", "window", "wager", "currency", "of"),
        (
            ("Sums", ("rounds", "staked_minor", "returned_minor", "actual_rtp")),
            ("Comparison", ("expected_rtp", "tolerance_99", "z", "verdict", "level")),
            ("Checks", ("check_id", "made_at", "scheduled")),
        ),
        flat=_check_rows,
        of_operator=False,
    ),
    ReportName.RTP_CASES: Kind(
        "Cases of the return to player",
        "Cases that were open within the time above, with every step that was taken, by whom and what was noted.",
        rtp_cases,
        ("case_id", "step"),
        (
            ("Cases", ("game", "paytable_version", "level", "opened_at")),
            ("Steps", ("changed_at", "actor", "state", "note")),
        ),
        flat=_case_rows,
        of_operator=False,
    ),
    ReportName.PAR_SHEET: Kind(
        "PAR sheets",
        "The exact figures of every paytable version, computed from its stored rules when this was made: side by"
        " side, and each sheet in full on the page and in JSON.",
        par_sheets,
        ("game", "paytable_version"),
        (
            ("Versions", ("paytable_digest", "published_at", "active")),
            ("Main game", tuple(f"main_{name}" for name in _MAIN)),
            ("Pair Bonus", tuple(f"pair_bonus_{name}" for name in _PAIR_BONUS)),
        ),
        flat=_par_sheet_rows,
        of_time=False,
        of_operator=False,
    ),
}
