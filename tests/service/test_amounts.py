"""Amounts that are none, and bodies that ask for nothing: refused with a code, and nothing happens."""

from __future__ import annotations

import secrets

import pytest
import requests

from tests.running import Operator, Player, RunningService, code_of

# As a JSON text each, so that it reaches the service exactly so.
NO_AMOUNTS = {
    "negative": "-100",
    "minus zero": "-0",
    "exponent": "1e2",
    "fraction": "1.0",
    "tiny exponent": "1e-400",
    "huge exponent": "1e400",
    "text": '"100"',
    "empty text": '""',
    "Arabic digits in text": '"\\u0661\\u0660\\u0660"',
    "true": "true",
    "null": "null",
    "list": "[]",
    "list of one": "[100]",
    "object": "{}",
    "2^53": str(2**53),
    "2^53 + 1": str(2**53 + 1),
    "2^63": str(2**63),
    "2^64 + 100": str(2**64 + 100),
    "5,000 digits": "1" * 5_000,
    "60,000 digits": "1" * 60_000,
    "NaN": "NaN",
    "Infinity": "Infinity",
    "minus Infinity": "-Infinity",
    "Arabic digits": "\u0661\u0660\u0660",
    "full-width digits": "\uff11\uff10\uff10",
    "octal": "0100",
    "hexadecimal": "0x64",
    "plus": "+100",
    "underscore": "1_00",
}
TOO_MUCH_TO_STAKE = {"2^31": str(2**31), "2^53 - 1": str(2**53 - 1), "2^32 + 100": str(2**32 + 100)}

NO_BODIES = {
    "nothing": b"",
    "blank": b" \n",
    "no JSON": b"ante_minor=100",
    "cut off": b'{"ante_minor": 100',
    "two values": b'{"ante_minor": 100} {}',
    "text": b'"ante_minor"',
    "list": b'[{"ante_minor": 100}]',
    "null": b"null",
    "number": b"100",
    "empty object": b"{}",
    "invalid UTF-8": b'{"ante_minor": 100, "game": "\xff"}',
    "UTF-16": '{"ante_minor": 100}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"ante_minor": 100}',
    "given twice": b'{"ante_minor": 100, "ante_minor": 100}',
    "given twice, escaped": b'{"ante_minor": 100, "ante\\u005fminor": 5}',
    "comment": b'{"ante_minor": 100 /* one pound */}',
    "depth": b"[" * 60_000,
    "depth in a field": b'{"ante_minor": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "depth beyond the largest body": b"[" * 100_000,
    "over 64 KiB": b'{"ante_minor": 100' + b" " * (64 * 1024) + b"}",
    "zero byte in a name": b'{"ante_minor": 100, "game": "a\\u0000b"}',
    "half a surrogate pair": b'{"ante_minor": 100, "game": "\\ud800"}',
    "unknown game": b'{"ante_minor": 100, "game": "roulette"}',
    "Pair Bonus alone": b'{"pair_bonus_minor": 100}',
}


@pytest.fixture(scope="module")
def player(operator: Operator) -> Player:
    """A player whose account no test of this module may touch."""
    return operator.player()


@pytest.fixture(scope="module")
def roaming(operator: Operator) -> Player:
    """One whose session is for no game in particular."""
    return operator.player_of_any_game()


def assert_untouched(player: Player) -> None:
    player = player.again()  # the service hangs up on a body that it did not read to its end
    assert player.get("/v1/rounds").json()["items"] == []
    assert player.balance_minor() == 100_000


@pytest.mark.parametrize("text", ["0", *NO_AMOUNTS.values(), *TOO_MUCH_TO_STAKE.values()])
@pytest.mark.parametrize("body", ['{"ante_minor": %s}', '{"pair_bonus_minor": %s, "ante_minor": 100}'])
def test_a_stake_that_is_no_amount_is_refused(player: Player, body: str, text: str) -> None:
    if "pair_bonus" in body and text == "0":
        text = "0.0"  # none is a Pair Bonus one may have, but not in that form
    code = code_of(player.post("/v1/rounds", (body % text).encode()))
    allowed = (
        {"stake_out_of_limits"} if text in TOO_MUCH_TO_STAKE.values() else {"invalid", "malformed_request"}
    )
    assert code in allowed
    assert_untouched(player)


@pytest.mark.parametrize("text", ["0", *NO_AMOUNTS.values()])
@pytest.mark.parametrize("direction", ["deposits", "withdrawals"])
def test_a_movement_of_no_amount_is_refused(operator: Operator, direction: str, text: str) -> None:
    address = f"/v1/operator/players/nobody/{direction}"
    body = f'{{"amount_minor": {text}, "currency": "GBP"}}'.encode()
    answer = operator.send("POST", address, body, headers={"Idempotency-Key": secrets.token_hex(8)})
    assert code_of(answer) in {"invalid", "malformed_request"}
    held = operator.send("GET", "/v1/operator/players/nobody/balance?currency=GBP").json()
    assert held["balance_minor"] == 0


@pytest.mark.parametrize("body", NO_BODIES.values(), ids=NO_BODIES)
def test_a_body_that_asks_for_no_round_is_refused(player: Player, roaming: Player, body: bytes) -> None:
    for caller in (player, roaming):
        answer = caller.post("/v1/rounds", body)
        assert code_of(answer) in {"invalid", "malformed_request", "body_too_large", "game_unavailable"}
        assert 400 <= answer.status_code < 500
        assert_untouched(caller)


@pytest.mark.parametrize("body", NO_BODIES.values(), ids=NO_BODIES)
def test_a_body_that_opens_no_session_and_moves_no_money_is_refused(operator: Operator, body: bytes) -> None:
    for address in ("/v1/operator/sessions", "/v1/operator/players/nobody/deposits"):
        answer = operator.send(
            "POST", address, body or b" ", headers={"Idempotency-Key": secrets.token_hex(8)}
        )
        assert code_of(answer) in {"invalid", "malformed_request", "body_too_large"}


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * 2_000], ids=["zero byte", "half a pair", "long"])
@pytest.mark.parametrize("field", ["player", "game", "channel", "language", "return_url", "jurisdiction"])
def test_a_session_takes_no_text_that_cannot_be_kept(operator: Operator, field: str, text: str) -> None:
    for value in (text, f"http://localhost/{text}"):
        assert code_of(operator.open_session(**{field: value})) in {"invalid", "game_unavailable"}


@pytest.mark.parametrize(
    "text", ["%00", "a%00b", "%FF", "%ED%A0%80", "%F0%9F%82%A1", "x" * 200], ids=lambda text: text[:9]
)
def test_an_address_with_text_that_cannot_be_kept_leads_nowhere(operator: Operator, text: str) -> None:
    assert code_of(requests.get(f"{operator.base}/v1/games/{text}", timeout=10)) == "not_found"
    path = f"/v1/operator/players/{text}"
    assert code_of(operator.send("GET", f"{path}/balance?currency=GBP")) == "invalid"
    wanted = {"amount_minor": 100, "currency": "GBP"}
    answer = operator.send("POST", f"{path}/deposits", wanted, headers={"Idempotency-Key": "k"})
    assert code_of(answer) == "invalid"


@pytest.mark.parametrize(
    "media_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"]
)
def test_a_body_that_does_not_say_it_is_json_is_refused(player: Player, media_type: str | None) -> None:
    headers = player.headers(secrets.token_hex(8))
    del headers["Content-Type"]
    headers |= {} if media_type is None else {"Content-Type": media_type}
    answer = requests.post(player.base + "/v1/rounds", b'{"ante_minor": 100}', headers=headers, timeout=10)
    assert code_of(answer) == "unsupported_media_type"
    assert_untouched(player)


def test_a_body_too_large_is_refused_when_it_comes_in_chunks(operator: Operator) -> None:
    player = operator.player()
    chunks = iter([b'{"ante_minor": 100}', *[b" " * 8192] * 9])
    headers = player.headers(secrets.token_hex(8))
    answer = requests.post(player.base + "/v1/rounds", chunks, headers=headers, timeout=10)
    assert code_of(answer) == "body_too_large"
    assert_untouched(player)


@pytest.mark.parametrize(
    ("stakes", "code", "field"),
    [
        ((4, 0), "stake_out_of_limits", "ante_minor"),
        ((102, 0), "stake_out_of_limits", "ante_minor"),
        ((300_005, 0), "stake_out_of_limits", "ante_minor"),
        ((100, 4), "stake_out_of_limits", "pair_bonus_minor"),
        ((100, 52), "stake_out_of_limits", "pair_bonus_minor"),
        ((100, 100_005), "stake_out_of_limits", "pair_bonus_minor"),
        ((300_000, 100_000), "payout_limit_exceeded", "pair_bonus_minor"),
        ((300_000, 0), "insufficient_funds", None),
    ],
)
def test_a_stake_outside_the_limits_is_refused_by_name(
    player: Player, stakes: tuple[int, int], code: str, field: str | None
) -> None:
    answer = player.open(*stakes)
    assert code_of(answer) == code
    assert list(answer.json().get("errors", {})) == ([] if field is None else [field])
    assert_untouched(player)


@pytest.mark.parametrize("stakes", [(5, 0), (5, 5), (300_000, 0), (100_000, 100_000)])
def test_a_stake_at_a_limit_is_taken(
    service: RunningService, operator: Operator, stakes: tuple[int, int]
) -> None:
    player = operator.real_player(1_000_000)
    opened = player.open(*stakes)
    assert opened.status_code == 201
    assert opened.json()["balance_minor"] == 1_000_000 - sum(stakes)
    assert player.decide(opened.json()["round_id"], "play").status_code == 200
    assert service.broken_laws() == {}


def test_a_deposit_beyond_what_an_account_holds_is_refused(operator: Operator) -> None:
    name = secrets.token_hex(6)
    assert operator.deposit(name, 2**52).status_code == 201
    assert code_of(operator.deposit(name, 1)) == "balance_limit_exceeded"
    assert code_of(operator.deposit(name, 2**53 - 1)) == "balance_limit_exceeded"
    player = operator.player(player=name, mode="real")
    assert player.balance_minor() == 2**52
    assert player.decide(player.open(100).json()["round_id"], "fold").json()["balance_minor"] == 2**52 - 100
