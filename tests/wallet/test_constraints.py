"""What the books refuse whoever writes in them: each law has a constraint that bears its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from casino_brag.db.embedded import Role
from casino_brag.rng import commitment_value
from tests.inprocess import AppHouse
from tests.running import Operator

ACCOUNT = """
    SELECT a.account_id FROM account AS a JOIN ledger AS l USING (ledger_id) JOIN operator AS o USING (operator_id)
    LEFT JOIN player AS p USING (player_id)
    WHERE o.name = %s AND l.currency = %s AND l.mode = %s AND coalesce(p.reference, a.kind) = %s
"""
TRANSFER = """
    INSERT INTO transfer (cause_id, kind, ledger_id, from_account, to_account, amount_minor, made_at)
    SELECT coalesce(%(cause)s, gen_random_uuid()), %(kind)s, coalesce(%(ledger)s, f.ledger_id), f.account_id,
        %(to)s, %(amount)s, now()
    FROM account AS f WHERE f.account_id = %(from)s
"""


class Accounts:
    """Two players' accounts with an operator, in two currencies and both modes, and another operator's."""

    def __init__(self, house: AppHouse, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn
        self.operators: list[Operator] = [house.new_operator(), house.new_operator()]
        for operator in self.operators:
            for player in ("ann", "bob"):
                for currency in ("GBP", "EUR"):
                    assert operator.deposit(player, 1_000, currency).status_code == 201
            operator.player(player="ann", mode="demo")

    def account(self, name: str, *, operator: int = 0, currency: str = "GBP", mode: str = "real") -> UUID:
        row = self.conn.execute(ACCOUNT, [self.operators[operator].name, currency, mode, name]).fetchone()
        assert row is not None
        found: UUID = row[0]
        return found

    def transfer(self, **known: Any) -> None:
        asked = {"cause": None, "kind": "deposit", "ledger": None, "amount": 5} | known
        asked.setdefault("from", self.account("cashier"))
        asked.setdefault("to", self.account("ann"))
        self.conn.execute(TRANSFER, asked)


@pytest.fixture(scope="module")
def accounts(app_house: AppHouse) -> Iterator[Accounts]:
    with app_house.connect(Role.SUPERUSER) as conn:
        yield Accounts(app_house, conn)


@pytest.fixture(autouse=True)
def nothing_stays(accounts: Accounts) -> Iterator[None]:
    with accounts.conn.transaction(force_rollback=True):
        yield


def refused(constraint: str) -> Any:
    """Expects a refusal in the name of a constraint."""
    return pytest.raises(psycopg.errors.IntegrityError, match=f'constraint "{constraint}"')


@pytest.mark.parametrize("other", [{"currency": "EUR"}, {"mode": "demo"}, {"operator": 1}], ids=str)
def test_money_never_leaves_its_ledger(accounts: Accounts, other: dict[str, Any]) -> None:
    """Not into another currency, not between real and demonstration, not to another operator."""
    with refused("transfer_to_fkey"), accounts.conn.transaction():
        accounts.transfer(to=accounts.account("ann", **other))
    with refused("transfer_from_fkey"), accounts.conn.transaction():
        accounts.transfer(**{"from": accounts.account("ann", **other), "ledger": ledger_of(accounts, "bob")})


def ledger_of(accounts: Accounts, name: str) -> UUID:
    row = accounts.conn.execute(
        "SELECT ledger_id FROM account WHERE account_id = %s", [accounts.account(name)]
    ).fetchone()
    assert row is not None
    found: UUID = row[0]
    return found


def test_a_transfer_within_a_ledger_is_none_of_these(accounts: Accounts) -> None:
    accounts.transfer()
    accounts.transfer(**{"from": accounts.account("bob")})


@pytest.mark.parametrize("amount", [0, -1, -(2**63)])
def test_a_transfer_moves_something(accounts: Accounts, amount: int) -> None:
    with refused("transfer_moves_something"):
        accounts.transfer(amount=amount)


def test_a_transfer_has_two_accounts(accounts: Accounts) -> None:
    with refused("transfer_has_two_accounts"):
        accounts.transfer(**{"from": accounts.account("ann")})


def test_a_transfer_is_of_a_known_kind(accounts: Accounts) -> None:
    with refused("transfer_kind_is_known"):
        accounts.transfer(kind="gift")


def test_a_cause_moves_each_kind_once(accounts: Accounts) -> None:
    cause = UUID(int=1)
    accounts.transfer(cause=cause)
    with refused("transfer_is_made_once"):
        accounts.transfer(cause=cause)


@pytest.mark.parametrize("kind", ["ante", "pair_bonus", "play", "stakes", "payout"])
def test_what_a_round_moves_belongs_to_a_round_that_exists(accounts: Accounts, kind: str) -> None:
    with refused("transfer_round_fkey"):
        accounts.transfer(kind=kind)


def test_no_balance_is_negative(accounts: Accounts) -> None:
    with refused("account_balance_is_never_negative"):
        accounts.conn.execute(
            "UPDATE account SET balance_minor = -1 WHERE account_id = %s", [accounts.account("ann")]
        )


@pytest.mark.parametrize("change", ["balance_minor = NULL", "kind = 'house'", "player_id = NULL"])
def test_a_player_s_account_has_a_player_and_a_balance(accounts: Accounts, change: str) -> None:
    with refused("account_of_a_player_has_a_balance"):
        accounts.conn.execute(f"UPDATE account SET {change} WHERE account_id = %s", [accounts.account("ann")])


def test_the_house_keeps_no_balance_that_everybody_waits_for(accounts: Accounts) -> None:
    with refused("account_of_a_player_has_a_balance"):
        accounts.conn.execute(
            "UPDATE account SET balance_minor = 0 WHERE account_id = %s", [accounts.account("house")]
        )


@pytest.mark.parametrize("name", ["ann", "house", "escrow", "cashier", "promotion"])
def test_nobody_has_two_accounts_in_a_ledger(accounts: Accounts, name: str) -> None:
    with refused("account_is_one_per_owner"):
        accounts.conn.execute(
            "INSERT INTO account (ledger_id, kind, player_id, balance_minor)"
            " SELECT ledger_id, kind, player_id, balance_minor FROM account WHERE account_id = %s",
            [accounts.account(name)],
        )


def test_an_operator_has_one_ledger_for_each_currency_and_mode(accounts: Accounts) -> None:
    with refused("ledger_is_one_per_operator_currency_and_mode"):
        accounts.conn.execute(
            "INSERT INTO ledger (operator_id, currency, mode) SELECT operator_id, currency, mode FROM ledger LIMIT 1"
        )


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("state = 'lost'", "round_state_is_known"),
        ("dealer_cards = ARRAY['As', 'Ah', 'Ad']", "round_shows_nothing_before_it_is_settled"),
        ("result = 'win'", "round_shows_nothing_before_it_is_settled"),
        ("settlement = '{}'", "round_shows_nothing_before_it_is_settled"),
        ("decision = 'wait'", "round_decision_is_known"),
        ("state = 'settled'", "round_settled_is_complete"),
    ],
)
def test_a_round_tells_nothing_before_it_is_settled_and_everything_then(
    app_house: AppHouse, accounts: Accounts, change: str, constraint: str
) -> None:
    round_id = app_house.player().open().json()["round_id"]
    with refused(constraint):
        accounts.conn.execute(f"UPDATE round SET {change} WHERE round_id = %s", [round_id])


SETTLED = {
    "state": "'settled'",
    "decision": "'play'",
    "play_minor": "ante_minor",
    "dealer_cards": "ARRAY['As', 'Ah', 'Ad']",
    "result": "'win'",
    "settlement": "'{}'",
    "total_staked_minor": "2 * ante_minor",
    "total_payout_minor": "0",
    "settled_at": "now()",
}


@pytest.mark.parametrize(
    ("wrong", "constraint"),
    [
        ({"total_payout_minor": "payout_max_minor + 1"}, "round_payout_is_bounded"),
        ({"total_payout_minor": "-1"}, "round_payout_is_bounded"),
        ({"total_staked_minor": "ante_minor"}, "round_total_staked_is_the_sum"),
        ({"decision": "'fold'"}, "round_plays_for_a_stake"),
        ({"play_minor": "0", "total_staked_minor": "ante_minor"}, "round_plays_for_a_stake"),
        ({"dealer_cards": "ARRAY['As']"}, "round_deals_three_cards_each"),
        ({"dealer_cards": "NULL"}, "round_settled_is_complete"),
        ({"settled_at": "NULL"}, "round_settled_is_complete"),
    ],
    ids=str,
)
def test_a_settlement_that_cannot_be_is_refused(
    app_house: AppHouse, accounts: Accounts, wrong: dict[str, str], constraint: str
) -> None:
    round_id = app_house.player().open().json()["round_id"]
    changes = ", ".join(f"{name} = {value}" for name, value in (SETTLED | wrong).items())
    with refused(constraint):
        accounts.conn.execute(f"UPDATE round SET {changes} WHERE round_id = %s", [round_id])


def test_a_second_open_round_of_a_player_in_a_game_is_refused_by_the_table_itself(
    app_house: AppHouse, accounts: Accounts
) -> None:
    round_id = app_house.player().open().json()["round_id"]
    with refused("round_one_is_open_per_player_and_game"):
        accounts.conn.execute(
            f"INSERT INTO round SELECT {copied(accounts)} FROM round WHERE round_id = %s", [round_id]
        )


def copied(accounts: Accounts) -> str:
    """A round's columns with an identifier of its own."""
    cursor = accounts.conn.execute("SELECT * FROM round LIMIT 0")
    assert cursor.description is not None
    return ", ".join(
        "gen_random_uuid()" if one.name == "round_id" else one.name for one in cursor.description
    )


COMMITMENT = """
    INSERT INTO commitment (round_id, player_id, game, mode, number, previous, value, paytable_version_id,
        rules_digest, rng_digest, sealed_seed, made_at, seed, ended_at)
    SELECT %(round_id)s, %(player_id)s, v.game, %(mode)s, %(number)s, %(previous)s, %(value)s, v.version_id, v.digest,
        '', '', now(), %(seed)s, CASE WHEN %(over)s THEN now() END
    FROM paytable_version AS v ORDER BY v.version_id LIMIT 1
"""


class Newcomer:
    """A player without any commitment, and rows about one."""

    def __init__(self, accounts: Accounts) -> None:
        self.conn = accounts.conn
        row = self.conn.execute(
            "INSERT INTO player (player_id, operator_id, reference, added_at)"
            " SELECT gen_random_uuid(), operator_id, 'newcomer', now() FROM operator WHERE name = %s"
            " RETURNING player_id, (SELECT digest FROM paytable_version ORDER BY version_id LIMIT 1)",
            [accounts.operators[0].name],
        ).fetchone()
        assert row is not None
        self.player_id, self.digest = row

    def commits(self, **known: Any) -> None:
        row = {"round_id": UUID(int=1), "mode": "real", "number": 1, "previous": None, "value": bytes(32)}
        row |= {"player_id": self.player_id, "seed": None, "over": False}
        self.conn.execute(COMMITMENT, row | known)


@pytest.fixture
def newcomer(accounts: Accounts) -> Newcomer:
    return Newcomer(accounts)


@pytest.mark.parametrize(
    ("wrong", "constraint"),
    [
        ({"mode": "fun"}, "commitment_mode_is_known"),
        ({"number": 0}, "commitment_first_has_no_previous"),
        ({"number": 2}, "commitment_first_has_no_previous"),
        ({"previous": bytes(32)}, "commitment_first_has_no_previous"),
        ({"seed": bytes(48)}, "commitment_is_revealed_when_it_is_over"),
        ({"seed": bytes(48), "over": True}, "commitment_reveals_what_was_committed"),
        ({"player_id": UUID(int=7)}, "commitment_player_fkey"),
    ],
    ids=str,
)
def test_a_commitment_that_cannot_be_is_refused(
    newcomer: Newcomer, wrong: dict[str, Any], constraint: str
) -> None:
    with refused(constraint):
        newcomer.commits(**wrong)


def test_a_number_of_a_series_and_a_round_are_committed_to_once(newcomer: Newcomer) -> None:
    newcomer.commits()
    newcomer.commits(round_id=UUID(int=2), mode="demo")
    newcomer.commits(round_id=UUID(int=3), number=2, previous=bytes(32))
    with refused("commitment_number_is_used_once"), newcomer.conn.transaction():
        newcomer.commits(round_id=UUID(int=4))
    with refused("commitment_pkey"):
        newcomer.commits(number=3, previous=bytes(32))


@pytest.mark.parametrize("previous", [None, bytes(range(32))], ids=["first", "later"])
def test_the_database_computes_the_value_that_the_program_does(
    newcomer: Newcomer, previous: bytes | None
) -> None:
    seed, number = bytes(range(48)), 1 if previous is None else 2**40
    known = {"round_id": UUID(int=5), "number": number, "previous": previous, "over": True}
    value = commitment_value(UUID(int=5), newcomer.digest, number, previous, seed)
    for other in (seed[::-1], seed[:-1], seed + b"\0"):
        with refused("commitment_reveals_what_was_committed"), newcomer.conn.transaction():
            newcomer.commits(**known, value=value, seed=other)
    newcomer.commits(**known, value=value, seed=seed)


def test_a_round_is_dealt_from_a_commitment_that_exists(app_house: AppHouse, accounts: Accounts) -> None:
    player = app_house.player()
    round_id = player.open().json()["round_id"]
    assert player.decide(round_id, "fold").status_code == 200
    with refused("round_commitment_fkey"):
        accounts.conn.execute(
            f"INSERT INTO round SELECT {copied(accounts)} FROM round WHERE round_id = %s", [round_id]
        )


@pytest.mark.parametrize(
    ("text", "allowed", "constraint"),
    [
        ("", True, "round_client_seed_is_short"),
        ("x" * 129, True, "round_client_seed_is_short"),
        ("two words", True, "round_client_seed_is_short"),
        ("line\n", True, "round_client_seed_is_short"),
        ("clé", True, "round_client_seed_is_short"),
        ("mine", False, "round_client_seed_is_allowed"),
        ("mine", None, "round_client_seed_is_allowed"),
    ],
)
def test_a_player_s_text_is_short_visible_and_allowed(
    app_house: AppHouse, accounts: Accounts, text: str, allowed: bool | None, constraint: str
) -> None:
    player = app_house.player()
    assert player.played()["state"] == "settled"
    waiting = player.next_commitment()["round_id"]
    names = copied(accounts).replace("gen_random_uuid()", "%s")
    names = names.replace("client_seeds", "%s").replace("client_seed", "%s")
    with refused(constraint):
        accounts.conn.execute(
            f"INSERT INTO round SELECT {names} FROM round ORDER BY round_id DESC LIMIT 1",
            [waiting, allowed, text],
        )
