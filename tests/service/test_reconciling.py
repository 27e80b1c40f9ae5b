"""Reconciling: our books beside a wallet's statement, with what somebody tampered with on either side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.operators_wallet import Casino, casino
from tests.running import RunningService
from tests.terminal import command


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Casino]:
    """A casino where some rounds were played, one of them is open, and a debit was refused."""
    with (
        RunningService.start(tmp_path_factory.mktemp("reconciled"), workers=1) as service,
        casino(tmp_path_factory.mktemp("books"), service) as found,
    ):
        for decision in ("play", "fold", "play"):
            assert found.player().played(decision, pair_bonus_minor=50)["payout_state"] == "paid"
        assert found.player().open(100).status_code == 201
        assert found.player(10).open(100).status_code == 409
        yield found


def reconciled(
    house: Casino, lines: list[str] | None, directory: Path, *more: str
) -> tuple[int, dict[str, Any]]:
    """The exit code and the findings of the command, of a statement of these lines."""
    words = ["wallet", "reconcile", house.operator.name, "--json", *more]
    words += ["--data-dir", str(house.service.data_dir)]
    if lines is not None:
        text = "\ufeff" + "\n".join(lines) + "\n"  # as spreadsheets write it
        (directory / "statement.csv").write_text(text, encoding="utf-8", errors="surrogateescape")
        words += ["--statement", str(directory / "statement.csv")]
    ran = command(*words)
    return ran.code, json.loads(ran.out) if ran.out else {"error": ran.err}


@pytest.fixture(scope="module")
def statement(house: Casino) -> list[str]:
    lines = [
        f"{line['transaction_id']},{line['amount_minor']},{line['state']},{line['wager']}"
        for line in house.wallet.statement()
    ]
    return ["transaction_id,amount_minor,state,wager", *lines]


def test_books_that_agree_are_said_to(house: Casino, statement: list[str], tmp_path: Path) -> None:
    code, found = reconciled(house, statement, tmp_path)
    assert (code, found["agrees"], found["differing"], found["unfinished"]) == (0, True, 0, [])
    assert found["compared"] == len(statement) - 1
    debits = [total for total in found["totals"] if (total["direction"], total["state"]) == ("debit", "done")]
    assert debits[0]["amount_minor"] == house.wallet.books()["debited_done"]
    assert found["ledger_difference_minor"] == {"GBP": 0}
    code, found = reconciled(house, None, tmp_path)
    assert (code, found["compared"]) == (0, None)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda lines: lines[:-2] + lines[-1:], "we had it done, the wallet does not know it"),
        (lambda lines: [*lines, f"{uuid4()},100,done,ante"], "the wallet knows it, we do not"),
        (lambda lines: [lines[0], lines[1].replace(",100,", ",101,"), *lines[2:]], "the amounts differ"),
        (
            lambda lines: [lines[0], lines[1].replace(",done,", ",cancelled,"), *lines[2:]],
            "one side has it done, the other has not",
        ),
        (
            lambda lines: [line.replace(",refused,", ",done,") for line in lines],
            "one side has it done, the other has not",
        ),
    ],
)
def test_every_kind_of_difference_is_found(
    house: Casino, statement: list[str], tmp_path: Path, change: Any, what: str
) -> None:
    code, found = reconciled(house, change(statement), tmp_path)
    assert (code, found["agrees"]) == (1, False)
    assert [difference["what"] for difference in found["differences"]] == [what]


def test_a_statement_of_a_day_is_compared_with_that_day(
    house: Casino, statement: list[str], tmp_path: Path
) -> None:
    code, found = reconciled(house, statement[:1], tmp_path, "--from", "2020-01-01", "--to", "2020-01-02")
    assert (code, found["totals"], found["compared"]) == (0, [], 0)


@pytest.mark.parametrize(
    "lines",
    [
        ["transaction_id,amount_minor"],
        [""],
        ["transaction_id,amount_minor,state", "nonsense,100,done"],
        ["transaction_id,amount_minor,state", f"{uuid4()},1.5,done"],
        ["transaction_id,amount_minor,state", f"{uuid4()},100,perhaps"],
        ["transaction_id,amount_minor,state", f"{uuid4()},-1,done"],
        ["transaction_id,amount_minor,state", f"{uuid4()},{2**63},done"],
        ["transaction_id,amount_minor,state", f"{uuid4()},1,{'done' * 100_000}"],
        ["transaction_id,amount_minor,state", "\udcff"],
        ["transaction_id,amount_minor,state", *["2f0e8f4e-0000-7000-8000-000000000000,1,done"] * 2],
    ],
)
def test_a_statement_that_cannot_be_read_is_told_by_line(
    house: Casino, tmp_path: Path, lines: list[str]
) -> None:
    code, found = reconciled(house, lines, tmp_path)
    assert code == 1
    assert found["error"].startswith("casino-brag: ")
    assert "statement" in found["error"]
    assert "Traceback" not in found["error"]
