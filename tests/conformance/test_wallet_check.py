"""``wallet check`` as an integrator runs it: a whole wallet over HTTP, what is printed, and the exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from faulty_wallet import FUNDS_MINOR, KEYS, PLAYER, Fault, FaultyWallet

from casino_brag.cli.wallet import wallet as commands
from casino_brag.conformance.bench import Reply
from casino_brag.conformance.kit import NAMES
from casino_brag.wallet.seamless import Operation
from tests.sandbox_wallet import sandbox_wallet

URL = "https://wallet.example.com/brag/"


def check(*options: str, url: str = URL, key: str = f"k1:{KEYS['k1']}", **environment: str) -> Result:
    arguments = ["check", url, "--operator", "acme", "--key", key, "--player", PLAYER, *options]
    return CliRunner().invoke(commands, arguments, env=environment)


@pytest.fixture
def wallet(monkeypatch: pytest.MonkeyPatch) -> FaultyWallet:
    """A wallet in the place of the network."""
    answering = FaultyWallet()
    monkeypatch.setattr(sys.modules["casino_brag.cli.wallet"], "post", answering)
    return answering


def test_the_sandbox_wallet_passes_every_check(tmp_path: Path) -> None:
    keys = tuple(KEYS.items())
    with sandbox_wallet(tmp_path, *keys, options=("--operator", "acme", "--fund", "0")) as sandbox:
        for currency in ("GBP", "JPY", "KWD", "XBT"):
            sandbox.fund(PLAYER, currency, FUNDS_MINOR)
        found = check("--second-key", f"k2:{KEYS['k2']}", url=sandbox.url)
        assert found.exit_code == 0, found.output
        assert found.stdout.endswith(
            "\nThe player holds 5000 minor units, as before."
            f"\n{len(NAMES)} checks: {len(NAMES)} held, 0 failed, 0 not tried.\n"
        )
        assert set(sandbox.books()["balances"][PLAYER].values()) == {FUNDS_MINOR}
        refused = check("--seconds", "10", url=sandbox.url, key="k1:another secret")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.startswith("casino-brag: The wallet answered HTTP 401: look at")
    gone = check(url=sandbox.url)
    assert (gone.exit_code, gone.stdout) == (2, "")
    assert gone.stderr.startswith("casino-brag: The wallet does not answer: ")


def test_a_failed_check_tells_what_was_expected_seen_and_why(wallet: FaultyWallet) -> None:
    wallet.fault = Fault.AMOUNT_IS_NOT_COMPARED
    found = check("--only", "credit-gives-exactly", "--only", "debit-id-with-another-amount")
    assert found.exit_code == 1
    assert found.stdout.splitlines()[:-3] == [
        "wallet    https://wallet.example.com/brag",
        "operator  acme",
        "player    p-1, 5000 minor units of GBP",
        "",
        "Money",
        "  held       credit-gives-exactly: A credit gives its amount, to the minor unit, though it is more than the"
        " round's stake.",
        "",
        "Repeating",
        "  FAILED     debit-id-with-another-amount: A known id with another amount is refused as a mismatch, and"
        " moves nothing.",
        "             expected  debit to be refused with reason transaction_mismatch",
        '             seen      debit: HTTP 200 {"status": "done", "balance_minor": 4990}',
        "             why       Answering done would confirm a stake that was never taken.",
        "",
    ]
    assert found.stdout.splitlines()[-1] == "2 checks: 1 held, 1 failed, 0 not tried."


def test_a_check_that_was_not_tried_tells_why_and_fails_nothing(wallet: FaultyWallet) -> None:
    found = check("--only", "second-key-is-accepted")
    assert found.exit_code == 0
    assert "             because   no second key was given\n" in found.stdout


def test_machines_get_the_same(wallet: FaultyWallet) -> None:
    wallet.fault = Fault.ONE_KEY_IS_LIVE
    found = check("--second-key", f"k2:{KEYS['k2']}", "--json")
    assert found.exit_code == 1
    document = json.loads(found.stdout)
    assert [one["name"] for one in document["checks"]] == list(NAMES)
    (failed,) = (one for one in document["checks"] if one["outcome"] == "failed")
    assert failed == {
        "group": "Signatures",
        "name": "second-key-is-accepted",
        "says": "A call signed with the operator's other live key is accepted.",
        "why": "Keys are rotated while rounds are played; both are live for a while.",
        "outcome": "failed",
        "expected": "balance to be done",
        "seen": "balance: HTTP 401 {}",
    }
    assert document["counts"] == {"held": len(NAMES) - 1, "failed": 1, "not tried": 0}
    assert document["balance_left_minor"] == FUNDS_MINOR
    assert not any(secret in found.output for secret in KEYS.values())


def test_secrets_may_come_from_the_environment(wallet: FaultyWallet) -> None:
    found = check(
        "--second-key",
        "k2",
        "--only",
        "second-key-is-accepted",
        key="k1",
        CASINO_BRAG_WALLET_SECRET=KEYS["k1"],
        CASINO_BRAG_WALLET_SECOND_SECRET=KEYS["k2"],
    )
    assert found.exit_code == 0, found.output
    assert found.stdout.endswith("1 checks: 1 held, 0 failed, 0 not tried.\n")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"key": "k1"}, "put the secret into CASINO_BRAG_WALLET_SECRET"),
        ({"key": ":secret"}, "is not made of visible ASCII characters"),
        ({"url": "wallet.example.com/brag"}, "write it like https://wallet.example.com/brag"),
        ({"url": "https://wallet.example.com/brag?site=1"}, "is no address of a wallet"),
        ({"url": "ftp://wallet.example.com"}, "is no address of a wallet"),
    ],
    ids=["no secret", "no key id", "no scheme", "a query", "another scheme"],
)
def test_what_cannot_be_called_is_wrong_usage(options: dict[str, str], told: str) -> None:
    found = check(**options)
    assert (found.exit_code, found.stdout) == (2, "")
    assert told in found.stderr


def test_a_check_that_there_is_not_is_wrong_usage() -> None:
    found = check("--only", "debit-takes-roughly")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "debit-takes-exactly" in found.stderr


def test_what_a_wallet_sends_cannot_drive_a_terminal() -> None:
    shown = str(Reply(Operation.DEBIT, 500, b"\x1b[2J\xff" + b"x" * 1_000))
    assert shown.isprintable()
    assert len(shown) < 400
