"""Whoever changes something is on record: every command and every call is listed with the entry that it writes, and
an entry of a change has the value before and after.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
import psycopg
import pytest
from psycopg.rows import dict_row

from casino_brag.audit import EntryType
from casino_brag.catalogue.activations import activate, retire, unschedule
from casino_brag.catalogue.closures import ClosureState, Scope, close, open_again
from casino_brag.catalogue.drafts import create_draft, reject_draft, save_draft
from casino_brag.catalogue.operators import (
    InterruptionPolicy,
    rotate_key,
    set_client_seeds,
    set_interruption,
    set_wallet,
)
from casino_brag.catalogue.paytables import publish
from casino_brag.catalogue.webhooks import remove_endpoint, set_endpoint
from casino_brag.config import shipped
from casino_brag.staff.invitations import reset, unlock
from casino_brag.staff.people import Role, Said, add_staff, revoke, set_roles
from tests.catalogue import persons
from tests.colleagues import colleague
from tests.commands import COMMANDS as EVERY
from tests.inprocess import AppHouse, app_house_in, openapi_document
from tests.running import Operator

GAME: Final = "three-card-brag"
ACTOR: Final = "system:tests"

COMMANDS: Final[Mapping[str, set[EntryType]]] = {
    "serve": {EntryType.PAYTABLE_ACTIVATED, EntryType.GAME_DISABLED, EntryType.OPERATOR_ADDED},
    "worker": {
        EntryType.ROUND_SETTLED,
        EntryType.ROUND_VOIDED,
        EntryType.WALLET_CREDITED,
        EntryType.PAYTABLE_ACTIVATED,
        EntryType.SIMULATION_COMPLETED,
    },
    "paytables publish": {EntryType.PAYTABLE_ACTIVATED, EntryType.GAME_DISABLED},
    "paytables import": {EntryType.PAYTABLE_DRAFT_CREATED, EntryType.PAYTABLE_DRAFT_SAVED},
    "operator add": {EntryType.OPERATOR_ADDED, EntryType.OPERATOR_WALLET_CHANGED},
    "operator rotate-key": {EntryType.OPERATOR_KEY_ROTATED},
    "operator client-seeds": {EntryType.OPERATOR_CLIENT_SEEDS_CHANGED},
    "operator wallet": {EntryType.OPERATOR_WALLET_CHANGED},
    "operator interruption": {EntryType.OPERATOR_INTERRUPTION_CHANGED},
    "operator webhook": {EntryType.WEBHOOK_SET, EntryType.WEBHOOK_SECRET_ROTATED, EntryType.WEBHOOK_REMOVED},
    "games disable": {EntryType.GAME_DISABLED},
    "games drain": {EntryType.GAME_DRAINING},
    "games enable": {EntryType.GAME_ENABLED},
    "rounds void": {EntryType.ROUND_VOIDED},
    "seals renew": {EntryType.COMMITMENT_EXPIRED, EntryType.COMMITMENT_LOST, EntryType.COMMITMENT_MADE},
    "integrity verify": {EntryType.INTEGRITY_CHECKED, EntryType.INTEGRITY_FAILED},
    "staff add": {EntryType.STAFF_ADDED},
    "staff roles": {EntryType.STAFF_ROLES_CHANGED},
    "staff token": {EntryType.STAFF_TOKEN_ISSUED},
    "staff revoke": {EntryType.STAFF_TOKEN_REVOKED, EntryType.STAFF_RETIRED},
    "staff invite": {EntryType.STAFF_INVITED},
    "staff unlock": {EntryType.STAFF_UNLOCKED},
    "staff reset": {EntryType.STAFF_RESET},
    "audit replay": {EntryType.REPLAY_COMPLETED, EntryType.REPLAY_DIFFERED},
    "audit rotate-key": {EntryType.LOG_KEY_ADDED},
    "rtp check": {EntryType.RTP_CHECKED},
    "rtp case": {EntryType.RTP_CASE_CHANGED},
}
"""Commands that change something, and what they write."""

CHANGING_NOTHING: Final = {
    *("par-sheet", "outcomes", "rank", "claims", "diff", "simulate", "sandbox-wallet", "wallet check"),
    *("rng raw", "rng deals", "rng kat", "rng health", "rng battery", "rng evidence"),
    *("migrate status", "migrate verify", "games list", "wallet reconcile", "seals status", "db url"),
    *("audit verify", "audit prove", "audit consistency", "audit export", "audit keys"),
    *("paytables export", "paytables list"),
    *("staff list", "rtp status", "rtp cases", "report"),
}
"""Commands that only read, or have nothing to do with an installation."""

CHANGING_THE_SCHEMA: Final = {"migrate up"}
"""What is told by the schema's own record of its migrations, since the log is a part of the schema."""

CALLS: Final[Mapping[str, set[EntryType]]] = {
    "POST /v1/rounds": {EntryType.ROUND_OPENED},
    "POST /v1/rounds/{round_id}/decision": {EntryType.ROUND_SETTLED},
    "POST /v1/operator/sessions": {EntryType.SESSION_OPENED},
    "DELETE /v1/operator/sessions/{session_id}": {EntryType.SESSION_CLOSED},
    "POST /v1/operator/players/{player}/deposits": {EntryType.WALLET_DEPOSIT},
    "POST /v1/operator/players/{player}/withdrawals": {EntryType.WALLET_WITHDRAWAL},
    "POST /v1/operator/rounds/{round_id}/void": {EntryType.ROUND_VOIDED},
    "POST /v1/operator/games/{game}/disable": {EntryType.GAME_DISABLED},
    "POST /v1/operator/games/{game}/drain": {EntryType.GAME_DRAINING},
    "POST /v1/operator/games/{game}/enable": {EntryType.GAME_ENABLED},
    "POST /v1/audit/verify": {EntryType.STAFF_CALLED},
    "POST /v1/integrity/verify": {EntryType.INTEGRITY_CHECKED, EntryType.INTEGRITY_FAILED},
    "POST /v1/paytables": {EntryType.PAYTABLE_DRAFT_CREATED},
    "PUT /v1/paytables/{game}/drafts/{number}": {EntryType.PAYTABLE_DRAFT_SAVED},
    "POST /v1/paytables/{game}/drafts/{number}/submit": {EntryType.PAYTABLE_SUBMITTED},
    "POST /v1/paytables/{game}/drafts/{number}/approve": {EntryType.PAYTABLE_APPROVED},
    "POST /v1/paytables/{game}/drafts/{number}/reject": {EntryType.PAYTABLE_REJECTED},
    "POST /v1/paytables/{game}/versions/{version}/activate": {
        EntryType.PAYTABLE_ACTIVATED,
        EntryType.PAYTABLE_SCHEDULED,
    },
    "POST /v1/paytables/{game}/versions/{version}/retire": {EntryType.PAYTABLE_RETIRED},
    "POST /v1/paytables/{game}/unschedule": {EntryType.PAYTABLE_UNSCHEDULED},
    "POST /v1/simulations": {EntryType.SIMULATION_QUEUED},
    "POST /v1/simulations/{simulation_id}/cancel": {EntryType.SIMULATION_CANCELLED},
}
"""Calls that change something, and what they write."""

CALLS_CHANGING_NOTHING: Final = {"POST /v1/paytables/{game}/drafts/{number}/preview"}
"""Calls that are no reading by their method alone."""

PLAY: Final = {
    EntryType.ROUND_OPENED,
    EntryType.ROUND_SETTLED,
    EntryType.SESSION_OPENED,
    EntryType.SESSION_CLOSED,
    EntryType.WALLET_DEPOSIT,
    EntryType.WALLET_WITHDRAWAL,
    EntryType.WALLET_CREDITED,
    EntryType.COMMITMENT_MADE,
    EntryType.COMMITMENT_EXPIRED,
    EntryType.COMMITMENT_LOST,
}
"""What adds to the records, and alters nothing that was set."""

FINDINGS: Final = {
    EntryType.INTEGRITY_CHECKED,
    EntryType.INTEGRITY_FAILED,
    EntryType.RTP_CHECKED,
    EntryType.REPLAY_COMPLETED,
    EntryType.REPLAY_DIFFERED,
    EntryType.STAFF_CALLED,
}
"""What was looked at and found, and that somebody looked."""

SECRET: Final = {
    EntryType.WEBHOOK_SECRET_ROTATED,
    EntryType.STAFF_TOKEN_ISSUED,
    EntryType.STAFF_TOKEN_REVOKED,
    EntryType.STAFF_INVITED,
    EntryType.LOG_KEY_ADDED,
}
"""What has no value that could be told: a secret, by its name."""


def test_every_command_is_known_to_change_something_on_record_or_nothing() -> None:
    doing = {" ".join(words) for words, command in EVERY.items() if not isinstance(command, click.Group)}
    assert doing - (COMMANDS.keys() | CHANGING_NOTHING | CHANGING_THE_SCHEMA) == set()


def test_every_call_that_is_no_reading_writes_an_entry() -> None:
    calls = {
        f"{method.upper()} {path}"
        for path, item in openapi_document()["paths"].items()
        for method in item
        if method not in ("get", "parameters")
    }
    assert calls == CALLS.keys() | CALLS_CHANGING_NOTHING


@dataclass(frozen=True)
class Scene:
    """What an intervention is done to."""

    house: AppHouse
    conn: psycopg.Connection[Any]
    operator: Operator
    directory: Path

    def file(self, text: str | None = None) -> Path:
        """The game's paytable file: as it is shipped, or with another text."""
        original = (shipped("paytables") / f"{GAME}.toml").read_text()
        file = self.directory / f"{GAME}.toml"
        file.write_text(original if text is None else text)
        return file

    def revised(self) -> Path:
        """The same with another limit, which no test before had."""
        largest = 5 * (1_000 + secrets.randbelow(50_000))
        return self.file(self.file().read_text().replace("max = 300000", f"max = {largest}", 1))


@pytest.fixture
def scene(house: AppHouse, tmp_path: Path) -> Iterator[Scene]:
    with house.connect() as conn:
        yield Scene(house, conn, house.new_operator(), tmp_path)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("interventions")) as started:
        yield started


def activated(scene: Scene) -> None:
    publish(scene.conn, scene.revised(), actor=ACTOR)


def broken(scene: Scene) -> None:
    publish(scene.conn, scene.revised(), actor=ACTOR)
    publish(scene.conn, scene.file("no paytable"), actor=ACTOR)


def closed(state: ClosureState | None) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        other = ClosureState.DISABLED if state is not ClosureState.DISABLED else ClosureState.DRAINING
        close(scene.conn, Scope(game=GAME), other, "A test.", actor=ACTOR)
        if state is None:
            open_again(scene.conn, Scope(game=GAME), "A test.", actor=ACTOR)
        else:
            close(scene.conn, Scope(game=GAME), state, "A test.", actor=ACTOR)

    return change


def voided(scene: Scene) -> None:
    open_again(scene.conn, Scope(game=GAME), "A test.", actor=ACTOR)
    publish(scene.conn, scene.file(), actor=ACTOR)
    round_id = scene.operator.player().played()["round_id"]
    said, key = {"reason": "A test.", "approver": "A tester"}, {"Idempotency-Key": "k"}
    answer = scene.operator.send("POST", f"/v1/operator/rounds/{round_id}/void", said, headers=key)
    assert answer.status_code == 200


def endpoint(scene: Scene) -> None:
    for port in (1, 2):
        url = f"http://127.0.0.1:{port}/"
        set_endpoint(scene.conn, scene.house.sealer, scene.operator.name, url, actor=ACTOR)


def endpoint_removed(scene: Scene) -> None:
    endpoint(scene)
    remove_endpoint(scene.conn, scene.operator.name, actor=ACTOR)


def person(scene: Scene) -> str:
    name = "p" + secrets.token_hex(4)
    add_staff(scene.conn, name, [Role.AUDITOR], Said(actor=ACTOR))
    return name


def saved(scene: Scene) -> None:
    by = persons.person(scene.conn, Role.EDITOR)
    draft = create_draft(scene.conn, by, GAME)
    save_draft(scene.conn, by, GAME, draft.number, persons.revised(), revision=draft.revision)


def submitted(scene: Scene) -> None:
    persons.submitted(scene.conn, persons.person(scene.conn, Role.EDITOR))


def approved(scene: Scene) -> int:
    """A version that persons made; its approver retires, for with one about files would change nothing."""
    approver = persons.person(scene.conn, Role.APPROVER)
    made = persons.approved(scene.conn, persons.person(scene.conn, Role.EDITOR), approver)
    revoke(scene.conn, approver.name, Said(actor=ACTOR))
    return made


def rejected(scene: Scene) -> None:
    by = persons.person(scene.conn, Role.EDITOR)
    reject_draft(scene.conn, by, GAME, persons.submitted(scene.conn, by).number, reason="A test.")


def called_off(scene: Scene) -> None:
    by, at = persons.person(scene.conn, Role.OPERATIONS), datetime.now(UTC) + timedelta(days=1)
    activate(scene.conn, by, GAME, approved(scene), reason="A test.", at=at)
    unschedule(scene.conn, by, GAME, reason="A test.")


def retired(scene: Scene) -> None:
    by = persons.person(scene.conn, Role.OPERATIONS)
    retire(scene.conn, by, GAME, approved(scene), reason="A test.")


def unlocked(scene: Scene) -> None:
    who = colleague(scene.house, Role.AUDITOR)
    scene.conn.execute("UPDATE staff_access SET failures = 3 WHERE staff_id = %s", [who.staff_id])
    assert unlock(scene.conn, who.name, Said(actor=ACTOR))


def begun_anew(scene: Scene) -> None:
    assert reset(scene.conn, colleague(scene.house, Role.AUDITOR).name, Said(actor=ACTOR))


ALTERED: Final[Mapping[str, tuple[EntryType, Callable[[Scene], Any]]]] = {
    "a paytable put in force": (EntryType.PAYTABLE_ACTIVATED, activated),
    "a game closed by its file": (EntryType.GAME_DISABLED, broken),
    "a game disabled": (EntryType.GAME_DISABLED, closed(ClosureState.DISABLED)),
    "a game drained": (EntryType.GAME_DRAINING, closed(ClosureState.DRAINING)),
    "a game opened": (EntryType.GAME_ENABLED, closed(None)),
    "a round voided": (EntryType.ROUND_VOIDED, voided),
    "a key rotated": (
        EntryType.OPERATOR_KEY_ROTATED,
        lambda to: rotate_key(to.conn, to.house.sealer, to.operator.name, actor=ACTOR),
    ),
    "a wallet moved": (
        EntryType.OPERATOR_WALLET_CHANGED,
        lambda to: set_wallet(to.conn, to.operator.name, "http://127.0.0.1:1/", actor=ACTOR),
    ),
    "an interruption's rule": (
        EntryType.OPERATOR_INTERRUPTION_CHANGED,
        lambda to: set_interruption(to.conn, to.operator.name, 24, InterruptionPolicy.FOLD, actor=ACTOR),
    ),
    "client seeds": (
        EntryType.OPERATOR_CLIENT_SEEDS_CHANGED,
        lambda to: set_client_seeds(to.conn, to.operator.name, False, actor=ACTOR),
    ),
    "a webhook moved": (EntryType.WEBHOOK_SET, endpoint),
    "a draft saved": (EntryType.PAYTABLE_DRAFT_SAVED, saved),
    "a draft submitted": (EntryType.PAYTABLE_SUBMITTED, submitted),
    "a draft approved": (EntryType.PAYTABLE_APPROVED, approved),
    "a draft rejected": (EntryType.PAYTABLE_REJECTED, rejected),
    "a version scheduled": (EntryType.PAYTABLE_SCHEDULED, called_off),
    "a version called off": (EntryType.PAYTABLE_UNSCHEDULED, called_off),
    "a version retired": (EntryType.PAYTABLE_RETIRED, retired),
    "a person's roles": (
        EntryType.STAFF_ROLES_CHANGED,
        lambda to: set_roles(to.conn, person(to), [Role.EDITOR], Said(actor=ACTOR)),
    ),
    "an account unlocked": (EntryType.STAFF_UNLOCKED, unlocked),
}
"""What is changed, the entry that says so, and how it is done."""

BEGUN: Final[Mapping[str, tuple[EntryType, Callable[[Scene], Any]]]] = {
    "a draft": (
        EntryType.PAYTABLE_DRAFT_CREATED,
        lambda to: create_draft(to.conn, persons.person(to.conn, Role.EDITOR), GAME),
    ),
}
MADE: Final[Mapping[str, tuple[EntryType, Callable[[Scene], Any]]]] = {
    "an operator": (EntryType.OPERATOR_ADDED, lambda to: to.house.new_operator()),
    "a person": (EntryType.STAFF_ADDED, person),
}
ENDED: Final[Mapping[str, tuple[EntryType, Callable[[Scene], Any]]]] = {
    "a webhook": (EntryType.WEBHOOK_REMOVED, endpoint_removed),
    "a person": (EntryType.STAFF_RETIRED, lambda to: revoke(to.conn, person(to), Said(actor=ACTOR))),
    "a person's way to sign in": (EntryType.STAFF_RESET, begun_anew),
}

LATER: Final = {
    EntryType.RTP_CASE_CHANGED,
    EntryType.SIMULATION_QUEUED,
    EntryType.SIMULATION_COMPLETED,
    EntryType.SIMULATION_CANCELLED,
}
"""What the tests of cases and of simulations look at."""


def newest(scene: Scene, kind: EntryType) -> dict[str, Any]:
    with scene.conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(
            "SELECT * FROM audit_entry WHERE type = %s ORDER BY occurred_at DESC LIMIT 1", [kind]
        ).fetchone()
    assert row is not None
    return row


def test_every_entry_of_an_intervention_is_looked_at_here() -> None:
    written = {kind for kinds in (*COMMANDS.values(), *CALLS.values()) for kind in kinds}
    looked_at = {kind for listed in (ALTERED, BEGUN, MADE, ENDED) for kind, _ in listed.values()}
    assert written == looked_at | PLAY | FINDINGS | SECRET | LATER


@pytest.mark.parametrize("what", ALTERED)
def test_a_change_is_on_record_with_the_value_before_and_after(scene: Scene, what: str) -> None:
    kind, change = ALTERED[what]
    change(scene)
    entry = newest(scene, kind)
    assert entry["actor"]
    assert entry["before"] is not None
    assert entry["after"] is not None
    assert entry["before"] != entry["after"]


@pytest.mark.parametrize("what", BEGUN)
def test_what_somebody_begins_has_a_person_for_actor_and_a_value_after(scene: Scene, what: str) -> None:
    kind, begin = BEGUN[what]
    begin(scene)
    entry = newest(scene, kind)
    assert entry["actor"].startswith("staff:")
    assert entry["before"] is None
    assert entry["after"]["game"] == GAME


@pytest.mark.parametrize("what", MADE)
def test_what_is_made_has_a_value_after(scene: Scene, what: str) -> None:
    kind, make = MADE[what]
    make(scene)
    entry = newest(scene, kind)
    assert (entry["actor"], entry["before"]) == (ACTOR, None)
    assert entry["after"]["name"]


@pytest.mark.parametrize("what", ENDED)
def test_what_is_ended_has_a_value_before(scene: Scene, what: str) -> None:
    kind, end = ENDED[what]
    end(scene)
    entry = newest(scene, kind)
    assert (entry["actor"], entry["after"]) == (ACTOR, None)
    assert entry["before"]
