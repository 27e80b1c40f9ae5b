"""Rounds that were really played, and then changed by somebody whom nothing stops: each change is found and named."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from casino_brag.db.embedded import Role
from casino_brag.replay.deriving import differences
from casino_brag.replay.reading import chunks_of, read_chunk, read_rules, strays
from casino_brag.replay.records import Difference, Row
from casino_brag.replay.report import Kind, Tally
from casino_brag.rounds.paying import attend
from casino_brag.sealing import SealBroken, Sealer
from tests.books import broken_laws
from tests.inprocess import AppHouse, app_house_in
from tests.model_wallet import ModelWallets, wallet_in
from tests.running import Operator, Player

SINCE = datetime.now(UTC) - timedelta(hours=1)
UNTIL = SINCE + timedelta(days=1)

TABLES = (
    *("round", "commitment", "transfer", "audit_entry", "paytable_version", "voided_round"),
    *("wallet_transaction", "account", "ledger"),
)

UNBOUND = """
    SELECT format('ALTER TABLE %%s DROP CONSTRAINT %%I', conrelid::regclass, conname) FROM pg_constraint
    WHERE contype = 'c' AND coninhcount = 0 AND conrelid::regclass::text = ANY (%s)
"""


@dataclass(frozen=True)
class Played:
    """A house, and rounds that were played in it; the ids are of a round won in full, and of voids of each kind."""

    house: AppHouse
    won: UUID
    folded: UUID
    from_wallet: UUID
    waiting: UUID
    refunded: UUID
    bettered: UUID
    voided_settled: UUID
    lost: UUID


def void(operator: Operator, round_id: str, **said: Any) -> UUID:
    why = {"reason": "A test.", "approver": "A tester"} | said
    named = {"Idempotency-Key": secrets.token_hex(8)}
    answer = operator.send("POST", f"/v1/operator/rounds/{round_id}/void", why, headers=named)
    assert answer.status_code == 200, answer.text
    return UUID(round_id)


def opened(player: Player, *stakes: int, **named: Any) -> str:
    answer = player.open(*stakes, **named)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["round_id"])


def play_some(house: AppHouse, operator: Operator) -> None:
    """Rounds of both games, played and folded, for real and for nothing, with and without a Pair Bonus."""
    for game in ("three-card-brag", "double-play-brag"):
        players = (operator.real_player(100_000, game=game), operator.player(game=game))
        for player in players:
            for number in range(8):
                named = {"client_seed": f"mine {number}".replace(" ", "-")} if number % 3 == 0 else {}
                player.played(
                    "fold" if number % 4 == 3 else "play",
                    ante_minor=100 + 5 * number,
                    pair_bonus_minor=50 * (number % 2),
                    **named,
                )


def void_some(
    house: AppHouse, operator: Operator, patched: pytest.MonkeyPatch
) -> tuple[UUID, UUID, UUID, UUID]:
    """A refund, the better decision's result, a correction afterwards, and a deal that is lost."""
    player = operator.real_player(100_000)
    refunded = void(operator, opened(player, 100, 50))
    bettered = refunded
    for _ in range(100):
        bettered = void(operator, opened(player, 100, 50), policy="better")
        with house.connect() as conn:
            found = conn.execute(
                "SELECT compensation_minor FROM voided_round WHERE round_id = %s", [bettered]
            ).fetchone()
        if found is not None and found[0] > 0:
            break
    voided_settled = void(operator, player.played("fold", pair_bonus_minor=50)["round_id"])
    round_id = opened(player, 100)
    unbroken = Sealer.open

    def damaged(sealer: Sealer, sealed: bytes, *, context: str) -> bytes:
        if context.startswith("deal of round "):
            raise SealBroken("damaged")
        return unbroken(sealer, sealed, context=context)

    with patched.context() as meanwhile:
        meanwhile.setattr(Sealer, "open", damaged)
        lost = void(operator, round_id)
    return refunded, bettered, voided_settled, lost


def play_from_wallets(house: AppHouse) -> UUID:
    """Rounds on wallets of operators, funded in both ways, played, folded and voided; one that was played."""
    for funding in ("reserve", "two_debits"):
        with wallet_in(house, ModelWallets(funds_minor=100_000), funding) as operator:
            player = operator.player(mode="real")
            for decision in ("fold", "play", "fold", "play"):
                found = player.played(decision, pair_bonus_minor=50)["round_id"]
            void(operator, player.played("fold")["round_id"])
            attend(house.service.database.connection, house.service.house)
            void(operator, opened(player, 100))
            attend(house.service.database.connection, house.service.house)
    return UUID(found)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with app_house_in(tmp_path_factory.mktemp("replayed")) as house, pytest.MonkeyPatch.context() as patched:
        operator = house.operator
        play_some(house, operator)
        voids = void_some(house, operator, patched)
        from_wallet = play_from_wallets(house)
        player = operator.real_player(100_000)
        player.played("fold")
        won = player.played("play", pair_bonus_minor=100)
        while len([wager for wager in won["wagers"] if wager["payout_minor"] > 0]) < 3:
            won = player.played("play", pair_bonus_minor=100)
        folded = player.played("fold", pair_bonus_minor=100)["round_id"]
        player.played("play", pair_bonus_minor=100)
        waiting = opened(operator.real_player(1_000), 100, 50)
        yield Played(house, UUID(won["round_id"]), UUID(folded), from_wallet, UUID(waiting), *voids)


@pytest.fixture
def powerful(played: Played) -> Iterator[psycopg.Connection[Any]]:
    """Somebody whom no trigger and no constraint stops; what is done is undone when the test ends."""
    with played.house.connect(Role.SUPERUSER) as conn, conn.transaction(force_rollback=True):
        for table in TABLES:
            conn.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        for (unbind,) in conn.execute(UNBOUND, [list(TABLES)]).fetchall():
            conn.execute(unbind)
        yield conn


def replayed(conn: psycopg.Connection[Any]) -> tuple[list[Row], list[Difference]]:
    """All rounds and everything that differs, as this connection sees them."""
    rows: list[Row] = []
    found: list[Difference] = []
    rules = read_rules(conn)
    for chunk in chunks_of(conn, SINCE, UNTIL):
        for batch in read_chunk(conn, chunk):
            rows += batch
            found += differences(batch, rules)
    return rows, [*found, *strays(conn, SINCE, UNTIL)]


def named(found: list[Difference]) -> set[tuple[str | None, str]]:
    return {(difference.round_id, difference.what) for difference in found}


def test_everything_that_was_played_agrees(played: Played) -> None:
    with played.house.connect(Role.APP) as conn:
        rows, found = replayed(conn)
        count = conn.execute("SELECT count(*) FROM round").fetchone()
    with played.house.connect() as conn:
        broken = broken_laws(conn)
    assert broken == {}
    assert found == []
    assert (len(rows),) == count
    tally = Tally.of(rows, found)
    assert tally.rounds[Kind.OPEN] == tally.rounds[Kind.SEED_LOST] == 1
    assert tally.rounds[Kind.VOIDED_SETTLED] == 3
    assert tally.rounds[Kind.VOIDED_OPEN] >= 4
    assert tally.rounds[Kind.SETTLED] >= 40
    assert tally.rounds[Kind.WITHOUT_SEED] == 0
    assert set(tally.money) == {("real", "GBP"), ("demo", "GBP")}
    assert tally.money["real", "GBP"].compensated_minor > 0


CHANGES: dict[str, tuple[str, str, set[str]]] = {
    "the player's card": (
        "won",
        "UPDATE round SET player_cards[2] = CASE player_cards[2] WHEN '2c' THEN '2d' ELSE '2c' END "
        "WHERE round_id = %s",
        {"round.player_cards"},
    ),
    "the player's cards in another order": (
        "won",
        "UPDATE round SET player_cards = ARRAY[player_cards[2], player_cards[1], player_cards[3]] "
        "WHERE round_id = %s",
        {"round.player_cards"},
    ),
    "the dealer's card": (
        "won",
        "UPDATE round SET dealer_cards[1] = CASE dealer_cards[1] WHEN '2c' THEN '2d' ELSE '2c' END "
        "WHERE round_id = %s",
        {"round.dealer_cards"},
    ),
    "a card that is none": (
        "won",
        "UPDATE round SET dealer_cards[1] = '1x' WHERE round_id = %s",
        {"round.dealer_cards"},
    ),
    "the payout": (
        "won",
        "UPDATE round SET total_payout_minor = total_payout_minor + 1 WHERE round_id = %s",
        {"round.total_payout_minor"},
    ),
    "the total of stakes": (
        "won",
        "UPDATE round SET total_staked_minor = total_staked_minor + 1 WHERE round_id = %s",
        {"round.total_staked_minor"},
    ),
    "the result": (
        "won",
        "UPDATE round SET result = 'lose' WHERE round_id = %s",
        {"round.result"},
    ),
    "the most that could be paid": (
        "won",
        "UPDATE round SET payout_max_minor = payout_max_minor + 1 WHERE round_id = %s",
        {"round.payout_max_minor"},
    ),
    "the decision": (
        "won",
        "UPDATE round SET decision = 'fold' WHERE round_id = %s",
        {"round.play_minor", "round.result", "settled_entry.wagers.ante.payout_minor", "transfers.play"},
    ),
    "the decision to play": (
        "folded",
        "UPDATE round SET decision = 'play' WHERE round_id = %s",
        {"round.play_minor", "round.result", "transfers.play"},
    ),
    "the Play": (
        "won",
        "UPDATE round SET play_minor = play_minor + 5 WHERE round_id = %s",
        {"round.play_minor"},
    ),
    "the Ante": (
        "won",
        "UPDATE round SET ante_minor = ante_minor + 5 WHERE round_id = %s",
        {"round.total_staked_minor", "settlement.wagers.ante.stake_minor", "transfers.ante"},
    ),
    "the Ante, to what is not allowed": (
        "won",
        "UPDATE round SET ante_minor = 7 WHERE round_id = %s",
        {"round.stakes"},
    ),
    "the Ante, to nothing": (
        "won",
        "UPDATE round SET ante_minor = 0 WHERE round_id = %s",
        {"round.stakes"},
    ),
    "the Pair Bonus": (
        "won",
        "UPDATE round SET pair_bonus_minor = pair_bonus_minor + 5 WHERE round_id = %s",
        {"settlement.wagers.pair_bonus.stake_minor", "transfers.pair_bonus"},
    ),
    "when it was opened": (
        "won",
        "UPDATE round SET opened_at = opened_at - interval '1 ms' WHERE round_id = %s",
        {"round.opened_at"},
    ),
    "when it was opened, to long before": (
        "won",
        "UPDATE round SET opened_at = '1970-01-01', total_payout_minor = total_payout_minor + 60 WHERE "
        "round_id = %s",
        {"no_step.entry"},
    ),
    "when all of it was, to long before": (
        "voided_settled",
        "WITH v AS (UPDATE voided_round SET voided_at = '1970-01-01' WHERE round_id = %s RETURNING round_id) "
        "UPDATE round SET opened_at = '1970-01-01', settled_at = '1970-01-01' FROM v WHERE v.round_id = "
        "round.round_id",
        {"no_step.entry"},
    ),
    "when it was settled": (
        "won",
        "UPDATE round SET settled_at = settled_at + interval '1 ms' WHERE round_id = %s",
        {"round.settled_at"},
    ),
    "the game": (
        "won",
        "UPDATE round SET game = 'double-play-brag' WHERE round_id = %s",
        {"commitment.of_this_round", "round.game"},
    ),
    "the player": (
        "won",
        "UPDATE round SET player_id = (SELECT player_id FROM player WHERE player_id <> "
        "round.player_id LIMIT 1) WHERE round_id = %s",
        {"account_of_others", "commitment.of_this_round", "entries_of_others"},
    ),
    "the operator": (
        "won",
        "UPDATE round SET operator_id = (SELECT operator_id FROM operator WHERE operator_id <> "
        "round.operator_id LIMIT 1) WHERE round_id = %s",
        {"account_of_others", "entries_of_others"},
    ),
    "the session": (
        "won",
        "UPDATE round SET session_id = (SELECT session_id FROM session WHERE session_id <> "
        "round.session_id LIMIT 1) WHERE round_id = %s",
        {"entries_of_others"},
    ),
    "the currency": (
        "won",
        "UPDATE round SET currency = 'EUR' WHERE round_id = %s",
        {"account_of_others", "opened_entry.currency"},
    ),
    "the mode": (
        "won",
        "UPDATE round SET mode = 'demo' WHERE round_id = %s",
        {"account_of_others", "commitment.of_this_round", "opened_entry.mode"},
    ),
    "the module that dealt": (
        "won",
        "UPDATE round SET rng_digest = repeat('0', 64) WHERE round_id = %s",
        {"opened_entry.rng_digest"},
    ),
    "the player's seed": (
        "won",
        "UPDATE round SET client_seed = 'another' WHERE round_id = %s",
        {"round.dealer_cards", "settled_entry.client_seed"},
    ),
    "a wager's payout": (
        "won",
        "UPDATE round SET settlement = jsonb_set(settlement, '{wagers,0,payout_minor}', '1') WHERE "
        "round_id = %s",
        {"settlement.wagers.ante.payout_minor"},
    ),
    "a wager's reason": (
        "won",
        "UPDATE round SET settlement = jsonb_set(settlement, '{wagers,1,reason}', '\"folded\"') WHERE "
        "round_id = %s",
        {"settlement.wagers.play.reason"},
    ),
    "a wager's spot": (
        "won",
        "UPDATE round SET settlement = jsonb_set(settlement, '{wagers,1,spot}', '\"side\"') WHERE "
        "round_id = %s",
        {"settlement.wagers.play", "settlement.wagers.side"},
    ),
    "a wager that is gone": (
        "won",
        "UPDATE round SET settlement = settlement #- '{wagers,0}' WHERE round_id = %s",
        {"settlement.wagers.ante"},
    ),
    "the settlement's category": (
        "won",
        "UPDATE round SET settlement = jsonb_set(settlement, '{player_category}', '\"high_card\"') WHERE "
        "round_id = %s",
        {"settlement.player_category"},
    ),
    "the dealer's category": (
        "won",
        "UPDATE round SET settlement = jsonb_set(settlement, '{dealer_category}', '\"none\"') WHERE "
        "round_id = %s",
        {"settlement.dealer_category"},
    ),
    "whether the dealer qualified": (
        "won",
        "UPDATE round SET settlement = jsonb_set(settlement, '{dealer_qualified}', to_jsonb(NOT "
        "(settlement ->> 'dealer_qualified')::boolean)) WHERE round_id = %s",
        {"settlement.dealer_qualified"},
    ),
    "whether it was celebrated": (
        "won",
        "UPDATE round SET settlement = jsonb_set(settlement, '{celebrate}', 'false') WHERE round_id = %s",
        {"settlement.celebrate"},
    ),
    "no settlement": (
        "won",
        "UPDATE round SET settlement = 'null' WHERE round_id = %s",
        {"settlement"},
    ),
    "the seed": (
        "won",
        "UPDATE commitment SET seed = set_byte(seed, 0, get_byte(seed, 0) # 1) WHERE round_id = %s",
        {"commitment.value", "round.player_cards", "settled_entry.deal_index", "settled_entry.seed"},
    ),
    "the seed, shorter": (
        "won",
        "UPDATE commitment SET seed = '\\x00' WHERE round_id = %s",
        {"round.deal"},
    ),
    "the seed, gone": (
        "won",
        "UPDATE commitment SET seed = NULL WHERE round_id = %s",
        {"commitment.seed_is_revealed", "settled_entry.seed"},
    ),
    "the commitment": (
        "won",
        "UPDATE commitment SET value = sha256(value) WHERE round_id = %s",
        {"commitment.value"},
    ),
    "the commitment, gone": (
        "won",
        "DELETE FROM commitment WHERE round_id = %s",
        {"commitment", "settled_entry.commitment"},
    ),
    "the commitment before": (
        "folded",
        "UPDATE commitment SET previous = sha256(previous) WHERE round_id = %s",
        {"commitment.previous"},
    ),
    "the commitment's number": (
        "won",
        "UPDATE commitment SET number = number + 1000 WHERE round_id = %s",
        {"commitment.previous", "commitment.value", "settled_entry.commitment.number"},
    ),
    "the commitment's number, to none": (
        "won",
        "UPDATE commitment SET number = -1 WHERE round_id = %s",
        {"commitment.previous", "settled_entry.commitment.number"},
    ),
    "the commitment's rules": (
        "won",
        "UPDATE commitment SET rules_digest = repeat('0', 64) WHERE round_id = %s",
        {"commitment.rules_digest"},
    ),
    "the commitment's random number module": (
        "won",
        "UPDATE commitment SET rng_digest = repeat('0', 64) WHERE round_id = %s",
        {"settled_entry.rng_digest"},
    ),
    "the commitment's player": (
        "won",
        "UPDATE commitment SET mode = 'demo' WHERE round_id = %s",
        {"commitment.of_this_round", "commitment.previous"},
    ),
    "a transfer's amount": (
        "won",
        "UPDATE transfer SET amount_minor = amount_minor + 1 WHERE kind = 'payout' AND cause_id = %s",
        {"transfers.payout"},
    ),
    "whom a transfer went to": (
        "won",
        "UPDATE transfer SET to_account = (SELECT account_id FROM account WHERE kind = 'player' AND "
        "account_id <> to_account LIMIT 1) WHERE kind = 'payout' AND cause_id = %s",
        {"transfers.payout"},
    ),
    "whose the account is": (
        "won",
        "UPDATE account SET player_id = gen_random_uuid() WHERE account_id = (SELECT account_id FROM "
        "round WHERE round_id = %s)",
        {"account_of_others"},
    ),
    "the account, with all that it paid and was paid": (
        "won",
        "WITH other AS (SELECT r.round_id, r.account_id AS its, a.account_id FROM round AS r JOIN account "
        "AS b USING (account_id) JOIN account AS a ON a.ledger_id = b.ledger_id AND a.kind = 'player' AND "
        "a.account_id <> b.account_id WHERE r.round_id = %s LIMIT 1), moved AS (UPDATE transfer SET "
        "from_account = CASE from_account WHEN its THEN account_id ELSE from_account END, to_account = CASE "
        "to_account WHEN its THEN account_id ELSE to_account END FROM other WHERE cause_id = other.round_id) "
        "UPDATE round SET account_id = other.account_id FROM other WHERE round.round_id = other.round_id",
        {"account_of_others"},
    ),
    "the account's currency": (
        "won",
        "UPDATE ledger SET currency = 'EUR' WHERE ledger_id = (SELECT a.ledger_id FROM round JOIN account "
        "AS a USING (account_id) WHERE round_id = %s)",
        {"account_of_others"},
    ),
    "the account's operator": (
        "from_wallet",
        "UPDATE ledger SET operator_id = gen_random_uuid() WHERE ledger_id = (SELECT a.ledger_id FROM "
        "round JOIN account AS a USING (account_id) WHERE round_id = %s)",
        {"account_of_others"},
    ),
    "when a stake was moved": (
        "won",
        "UPDATE transfer SET made_at = made_at - interval '1 year' WHERE kind = 'ante' AND cause_id = %s",
        {"transfers.ante"},
    ),
    "when a payout was moved": (
        "won",
        "UPDATE transfer SET made_at = made_at + interval '1 ms' WHERE kind = 'payout' AND cause_id = %s",
        {"transfers.payout"},
    ),
    "when a refund was moved": (
        "voided_settled",
        "UPDATE transfer SET made_at = made_at - interval '1 ms' WHERE kind = 'refund' AND cause_id = %s",
        {"transfers.refund"},
    ),
    "a transfer the other way": (
        "won",
        "UPDATE transfer SET to_account = from_account, from_account = to_account WHERE kind = "
        "'stakes' AND cause_id = %s",
        {"transfers.stakes"},
    ),
    "a transfer, gone": (
        "won",
        "DELETE FROM transfer WHERE kind = 'stakes' AND cause_id = %s",
        {"transfers.stakes"},
    ),
    "a transfer too many": (
        "won",
        "INSERT INTO transfer (cause_id, kind, ledger_id, from_account, to_account, amount_minor, "
        "made_at) SELECT cause_id, 'refund', ledger_id, from_account, to_account, 5, made_at FROM "
        "transfer WHERE kind = 'payout' AND cause_id = %s",
        {"transfers.refund"},
    ),
    "a payout for an open round": (
        "waiting",
        "INSERT INTO transfer (cause_id, kind, ledger_id, from_account, to_account, amount_minor, "
        "made_at) SELECT cause_id, 'payout', ledger_id, to_account, from_account, 5, made_at FROM "
        "transfer WHERE kind = 'ante' AND cause_id = %s",
        {"transfers.payout"},
    ),
    "the seed of an open round": (
        "waiting",
        "UPDATE commitment SET seed = sha256('') || '\\x00000000000000000000000000000000' WHERE "
        "round_id = %s",
        {"commitment.seed_is_revealed", "round.player_cards"},
    ),
    "an entry's payout": (
        "won",
        "UPDATE audit_entry SET payload = jsonb_set(payload, '{wagers,0,payout_minor}', '1') WHERE "
        "type = 'round.settled' AND round_id = %s",
        {"settled_entry.wagers.ante.payout_minor"},
    ),
    "an opening's stakes": (
        "waiting",
        'UPDATE audit_entry SET payload = payload || \'{"ante_minor": 105, "pair_bonus_minor": 55}\' '
        "WHERE type = 'round.opened' AND round_id = %s",
        {"opened_entry.ante_minor", "opened_entry.pair_bonus_minor"},
    ),
    "an opening's game": (
        "waiting",
        "UPDATE audit_entry SET payload = jsonb_set(payload, '{game}', '\"double-play-brag\"') WHERE "
        "type = 'round.opened' AND round_id = %s",
        {"opened_entry.game"},
    ),
    "an opening's commitment": (
        "folded",
        "UPDATE audit_entry SET payload = jsonb_set(payload, '{commitment,number}', '1000') WHERE type = "
        "'round.opened' AND round_id = %s",
        {"opened_entry.commitment.number"},
    ),
    "an entry's player": (
        "won",
        "UPDATE audit_entry SET player_id = gen_random_uuid() WHERE type = 'round.settled' AND round_id = %s",
        {"entries_of_others"},
    ),
    "an entry's operator": (
        "refunded",
        "UPDATE audit_entry SET operator_id = NULL WHERE type = 'round.voided' AND round_id = %s",
        {"entries_of_others"},
    ),
    "an opening's session": (
        "waiting",
        "UPDATE audit_entry SET session_id = gen_random_uuid() WHERE type = 'round.opened' AND round_id = %s",
        {"entries_of_others"},
    ),
    "an entry's discards": (
        "won",
        "UPDATE audit_entry SET payload = jsonb_set(payload, '{discards}', '1') WHERE type = "
        "'round.settled' AND round_id = %s",
        {"settled_entry.discards"},
    ),
    "an entry's member": (
        "won",
        "UPDATE audit_entry SET payload = payload - 'client_seed' || '{\"more\": null}' WHERE type = "
        "'round.settled' AND round_id = %s",
        {"settled_entry.client_seed", "settled_entry.more"},
    ),
    "an entry's discards, to what no reader of JSON can hold": (
        "won",
        "UPDATE audit_entry SET payload = jsonb_set(payload, '{discards}', repeat('9', 5000)::jsonb) WHERE "
        "type = 'round.settled' AND round_id = %s",
        {"settled_entry"},
    ),
    "a settlement that is too deep to be read": (
        "won",
        "UPDATE round SET settlement = (repeat('[', 2000) || repeat(']', 2000))::jsonb WHERE round_id = %s",
        {"settlement"},
    ),
    "an entry, gone": (
        "won",
        "DELETE FROM audit_entry WHERE type = 'round.settled' AND round_id = %s",
        {"round.settled_at", "settled_entry"},
    ),
    "an entry, twice": (
        "won",
        "INSERT INTO audit_entry SELECT (jsonb_populate_record(e, jsonb_build_object('entry_id', "
        "overlay(e.entry_id::text placing '000000000000' from 25)))).* FROM audit_entry AS e WHERE "
        "type = 'round.settled' AND e.round_id = %s",
        {"round.settled_at", "settled_entry"},
    ),
    "an entry, again with an identifier of another time": (
        "won",
        "INSERT INTO audit_entry SELECT (jsonb_populate_record(e, jsonb_build_object('entry_id', "
        "entry_id_at(e.occurred_at + interval '25 hours')))).* FROM audit_entry AS e WHERE "
        "type = 'round.settled' AND e.round_id = %s",
        {"no_step.entry"},
    ),
    "an entry, again at another time": (
        "won",
        "INSERT INTO audit_entry SELECT (jsonb_populate_record(e, jsonb_build_object('entry_id', "
        "entry_id_at(e.occurred_at + interval '25 hours'), 'occurred_at', e.occurred_at + interval '1 s'))).* "
        "FROM audit_entry AS e WHERE type = 'round.opened' AND e.round_id = %s",
        {"no_step.entry"},
    ),
    "an entry too early": (
        "won",
        "UPDATE audit_entry SET occurred_at = occurred_at - interval '1 s' WHERE type = "
        "'round.settled' AND round_id = %s",
        {"round.settled_at"},
    ),
    "a settled round that is open again": (
        "won",
        "UPDATE round SET state = 'awaiting_decision', decision = NULL, play_minor = NULL, "
        "dealer_cards = NULL, result = NULL, settlement = NULL, total_staked_minor = NULL, "
        "total_payout_minor = NULL, settled_at = NULL WHERE round_id = %s",
        {"commitment.seed_is_revealed", "settled_entry", "transfers.payout"},
    ),
    "a settled round that is called voided": (
        "won",
        "UPDATE round SET state = 'voided' WHERE round_id = %s",
        {"void", "voided_entry"},
    ),
    "a voided round that is called settled": (
        "voided_settled",
        "UPDATE round SET state = 'settled' WHERE round_id = %s",
        {"transfers.refund", "void", "voided_entry"},
    ),
    "what was refunded": (
        "refunded",
        "UPDATE voided_round SET refund_minor = refund_minor + 1 WHERE round_id = %s",
        {"void.refund_minor"},
    ),
    "what was refunded of a settled round": (
        "voided_settled",
        "UPDATE transfer SET amount_minor = amount_minor + 1 WHERE kind = 'refund' AND cause_id = %s",
        {"transfers.refund"},
    ),
    "what a refund came from": (
        "refunded",
        "UPDATE transfer SET from_account = (SELECT h.account_id FROM account AS h WHERE h.ledger_id "
        "= transfer.ledger_id AND h.kind = 'house') WHERE kind = 'refund' AND cause_id = %s",
        {"transfers.refund"},
    ),
    "what was compensated": (
        "bettered",
        "UPDATE voided_round SET compensation_minor = compensation_minor + 1 WHERE round_id = %s",
        {"void.compensation_minor"},
    ),
    "a void's policy": (
        "bettered",
        "UPDATE voided_round SET policy = 'refund' WHERE round_id = %s",
        {"transfers.compensation", "void.compensation_minor", "voided_entry.policy"},
    ),
    "a void's entry": (
        "refunded",
        "UPDATE audit_entry SET payload = jsonb_set(payload, '{deal_index}', '0') WHERE type = "
        "'round.voided' AND round_id = %s",
        {"voided_entry.deal_index"},
    ),
    "when it was voided": (
        "refunded",
        "UPDATE voided_round SET voided_at = voided_at + interval '1 ms' WHERE round_id = %s",
        {"round.voided_at"},
    ),
    "a void, gone": (
        "refunded",
        "DELETE FROM voided_round WHERE round_id = %s",
        {"round.voided_at", "void"},
    ),
    "the seed of a void": (
        "refunded",
        "UPDATE commitment SET seed = set_byte(seed, 47, get_byte(seed, 47) # 1) WHERE round_id = %s",
        {"commitment.value", "round.player_cards", "voided_entry.seed"},
    ),
    "a lost seed that is said to be told": (
        "lost",
        "UPDATE audit_entry SET payload = jsonb_set(payload, '{seed_lost}', 'false') WHERE type = "
        "'round.voided' AND round_id = %s",
        {"commitment.seed_is_revealed", "voided_entry.seed_lost"},
    ),
    "a seed that is said to be lost": (
        "refunded",
        "UPDATE audit_entry SET payload = jsonb_set(payload, '{seed_lost}', 'true') WHERE type = "
        "'round.voided' AND round_id = %s",
        {"commitment.seed_is_revealed", "voided_entry.seed_lost"},
    ),
    "what a wallet was debited": (
        "from_wallet",
        "UPDATE wallet_transaction SET amount_minor = amount_minor + 1 WHERE wager = 'ante' AND "
        "round_id = %s",
        {"debited_minor"},
    ),
    "what a wallet is owed": (
        "from_wallet",
        "UPDATE wallet_transaction SET amount_minor = amount_minor + 1 WHERE purpose = 'settlement' "
        "AND round_id = %s",
        {"credits.settlement"},
    ),
    "whose wallet pays": (
        "from_wallet",
        "UPDATE wallet_transaction SET player_id = gen_random_uuid() WHERE purpose = 'settlement' AND "
        "round_id = %s",
        {"requests_of_others"},
    ),
    "a credit, gone": (
        "from_wallet",
        "DELETE FROM wallet_transaction WHERE purpose = 'settlement' AND round_id = %s",
        {"credits.settlement"},
    ),
    "a credit too many": (
        "from_wallet",
        "UPDATE wallet_transaction SET purpose = 'void' WHERE purpose = 'settlement' AND round_id = %s",
        {"credits.settlement", "credits.void"},
    ),
}
"""What is changed, of which round, how, and what is named for it."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found_and_named(played: Played, powerful: psycopg.Connection[Any], change: str) -> None:
    which, statement, expected = CHANGES[change]
    round_id = getattr(played, which)
    done = powerful.execute(statement, [round_id])
    assert done.rowcount == 1
    _, found = replayed(powerful)
    assert {(str(round_id), what) for what in expected} <= named(found)


def test_a_paytable_that_was_altered_is_found_in_all_its_rounds(
    played: Played, powerful: psycopg.Connection[Any]
) -> None:
    powerful.execute(
        "UPDATE paytable_version SET document = replace(document, '\"prial\":40', '\"prial\":50')"
        " WHERE game = 'three-card-brag'"
    )
    rows, found = replayed(powerful)
    altered = {str(row.round_id) for row in rows if row.kept.game == "three-card-brag"}
    assert named(found) == {(round_id, "paytable.digest") for round_id in altered}


def test_a_paytable_that_was_altered_with_its_digest_is_found_too(
    played: Played, powerful: psycopg.Connection[Any]
) -> None:
    powerful.execute(
        "UPDATE paytable_version SET document = replace(document, '\"prial\":40', '\"prial\":50')"
        " WHERE game = 'three-card-brag'"
    )
    powerful.execute(
        "UPDATE paytable_version SET digest = encode(sha256(convert_to(document, 'UTF8')), 'hex')"
    )
    _, found = replayed(powerful)
    assert (str(played.won), "commitment.rules_digest") in named(found)
    assert (str(played.won), "settled_entry.paytable_digest") in named(found)


def test_what_is_on_record_of_no_round_is_found(played: Played, powerful: psycopg.Connection[Any]) -> None:
    powerful.execute("DELETE FROM round WHERE round_id IN (%s, %s)", [played.from_wallet, played.refunded])
    _, found = replayed(powerful)
    assert {
        (str(played.from_wallet), "no_round.transfer"),
        (str(played.from_wallet), "no_round.entry"),
        (str(played.from_wallet), "no_round.credit"),
        (str(played.refunded), "no_round.void"),
    } <= named(found)
    assert {difference.what.split(".")[0] for difference in found} == {"no_round"}


def test_of_a_round_that_was_moved_out_of_the_time_every_step_is_missed(
    played: Played, powerful: psycopg.Connection[Any]
) -> None:
    """Moved with the times of its steps and transfers: the log alone says when they were."""
    statement, expected = CHANGES["when all of it was, to long before"][1:]
    powerful.execute(statement, [played.voided_settled])
    powerful.execute(
        "UPDATE transfer SET made_at = '1970-01-01' WHERE cause_id = %s", [played.voided_settled]
    )
    _, found = replayed(powerful)
    assert named(found) == {(str(played.voided_settled), what) for what in expected}
    assert [difference.recorded.split()[0].strip('"') for difference in found] == [
        "round.opened",
        "round.settled",
        "round.voided",
    ]


def test_a_deal_that_does_not_come_from_its_seed_is_found(
    played: Played, powerful: psycopg.Connection[Any]
) -> None:
    """The cards changed wherever they are told: only the seed says otherwise."""
    swap = "translate({0}::text, 'cdhs', 'dhsc')"
    powerful.execute(
        f"UPDATE round SET player_cards = {swap.format('player_cards')}::text[],"
        f" dealer_cards = {swap.format('dealer_cards')}::text[] WHERE round_id = %s",
        [played.folded],
    )
    powerful.execute(
        "UPDATE audit_entry AS e SET payload = payload || jsonb_build_object("
        " 'player_cards', to_jsonb(r.player_cards), 'dealer_cards', to_jsonb(r.dealer_cards))"
        " FROM round AS r WHERE r.round_id = e.round_id AND e.type = 'round.settled' AND r.round_id = %s",
        [played.folded],
    )
    _, found = replayed(powerful)
    parts = (
        "round.player_cards",
        "round.dealer_cards",
        "settled_entry.player_cards",
        "settled_entry.dealer_cards",
    )
    assert named(found) == {(str(played.folded), part) for part in parts}


def test_a_round_from_before_commitments_is_settled_anew_from_its_cards(
    played: Played, powerful: psycopg.Connection[Any]
) -> None:
    powerful.execute("UPDATE round SET client_seeds = NULL, client_seed = NULL")
    powerful.execute("DELETE FROM commitment")
    powerful.execute(
        "UPDATE audit_entry SET payload = payload - ARRAY['game', 'rng_digest', 'commitment', 'seed',"
        " 'client_seeds', 'client_seed', 'discards'] || jsonb_strip_nulls(jsonb_build_object('seed_lost',"
        " CASE type WHEN 'round.voided' THEN false END)) WHERE type IN ('round.settled', 'round.voided')"
    )
    powerful.execute(
        "UPDATE audit_entry SET payload = payload - ARRAY['commitment', 'client_seeds', 'client_seed']"
        " WHERE type = 'round.opened'"
    )
    rows, found = replayed(powerful)
    assert found == []
    tally = Tally.of(rows, found)
    assert tally.rounds[Kind.WITHOUT_SEED] == len(rows) - 1
    powerful.execute("UPDATE round SET dealer_cards[1] = player_cards[1] WHERE round_id = %s", [played.won])
    assert named(replayed(powerful)[1]) == {(str(played.won), "round.deal")}
