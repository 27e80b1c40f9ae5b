"""Answers that are given once, and the requests they are kept for."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.config import shipped
from casino_brag.errors import MEANINGS, Code, ServiceError
from casino_brag.wallet.answers import Answer, Known, Outcome, Request, body_around_balance, refusal

values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5)
documents = st.dictionaries(st.text().filter(lambda name: name != "balance_minor"), values, max_size=5)


@given(document=documents, balance=st.integers(0, 2**53 - 1))
def test_a_balance_put_between_the_two_halves_makes_one_document(
    document: dict[str, Any], balance: int
) -> None:
    head, tail = body_around_balance(document)
    assert json.loads(f"{head}{balance}{tail}") == document | {"balance_minor": balance}


def test_a_request_is_told_from_every_other_by_its_fingerprint() -> None:
    requests = [
        Request.of("k", method, path, body)
        for method in ("POST", "PUT")
        for path in ("/v1/rounds", "/v1/rounds/1/decision")
        for body in ({}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1}, {"a": "1"}, {"a": True}, {"a": None})
    ]
    assert len({request.fingerprint for request in requests}) == len(requests)


def test_neither_the_key_nor_the_order_of_fields_is_part_of_what_is_asked() -> None:
    first = Request.of("k", "POST", "/p", {"a": 1, "b": 2})
    assert first.fingerprint == Request.of("other", "POST", "/p", {"b": 2, "a": 1}).fingerprint
    assert first.key == "k"


def test_what_is_known_answers_the_same_request_and_no_other() -> None:
    request = Request.of("k", "POST", "/p", {"a": 1})
    assert Known(None, None, None).answer_to(request) is None
    assert Known(request.fingerprint, 201, "{}").answer_to(request) == Answer(201, "{}", replayed=True)
    with pytest.raises(ServiceError) as refused:
        Known(b"other", 201, "{}").answer_to(request)
    assert refused.value.code is Code.IDEMPOTENCY_KEY_REUSED


def test_every_outcome_of_the_database_is_an_answer_or_a_refusal() -> None:
    moving_money = re.compile("wallet|rounds|commitments|voids")
    files = [file for file in shipped("migrations").glob("*.sql") if moving_money.search(file.name)]
    assert len(files) == 5
    text = "\n".join(file.read_text() for file in files)
    outcomes = set(re.findall(r"(?:THEN|ELSE) '([a-z_]+)'\s", text))
    outcomes -= {"deposit", "withdrawal", "cancelling", "house", "escrow"}
    answers = {"moved", "opened", "settled", "replayed"}
    prepared_again = {"paytable_changed", "commitment_changed"}
    of_their_own = {"made", "reserved"}
    assert answers | prepared_again | of_their_own < outcomes
    for outcome in outcomes - answers - prepared_again - of_their_own:
        error = refusal(outcome)
        assert MEANINGS[error.code].status in (401, 409, 422, 429, 503)
        assert error.detail.endswith(".")


def test_an_outcome_without_an_answer_is_raised() -> None:
    assert Outcome("moved", Answer(201, "{}", replayed=False)).answer_or_refusal().status == 201
    with pytest.raises(ServiceError) as refused:
        Outcome("insufficient_funds", None).answer_or_refusal()
    assert refused.value.code is Code.INSUFFICIENT_FUNDS
    with pytest.raises(KeyError):
        Outcome("unheard_of", None).answer_or_refusal()
