"""The OpenAPI document: valid, complete, and in the words of the contract."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from marshmallow import class_registry
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from casino_brag.errors import MEANINGS, Code
from tests.inprocess import openapi_document

DOCUMENT = openapi_document()
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}

EVERYWHERE = {Code.METHOD_NOT_ALLOWED}
"""Codes that belong to no operation: an address answers them before it is known which one is meant."""

MOVE_NO_MONEY = {
    "/v1/operator/sessions",
    "/v1/operator/games/{game}/disable",
    "/v1/operator/games/{game}/drain",
    "/v1/operator/games/{game}/enable",
    "/v1/integrity/verify",
    "/v1/audit/verify",
    "/v1/simulations",
    "/v1/simulations/{simulation_id}/cancel",
    "/v1/paytables",
    "/v1/paytables/{game}/unschedule",
    *(
        f"/v1/paytables/{{game}}/drafts/{{number}}/{what}"
        for what in ("preview", "submit", "approve", "reject")
    ),
    *(f"/v1/paytables/{{game}}/versions/{{version}}/{what}" for what in ("activate", "retire")),
}
"""Addresses whose POST can be sent twice without moving money twice."""

OTHER_THAN_JSON = {
    "/v1/audit/checkpoints/latest": "text/plain",
    "/v1/paytables/{game}/versions/{version}/file": "application/toml",
}
"""Addresses that answer with something as it is: a signed note, a paytable's file."""

BODIES = {"post", "put"}
"""Methods that come with a body."""

WITHOUT_A_BODY = {"/v1/integrity/verify", "/v1/simulations/{simulation_id}/cancel"}
"""Addresses whose POST says all by itself."""

CONTRACT = {
    "OpenRoundRequest": "ante_minor pair_bonus_minor game client_seed commitment",
    "DecisionRequest": "decision",
    "Round": "round_id game paytable state opened_at currency wagers player_cards player_category decisions"
    " balance_minor settled_at decision dealer_cards dealer_category dealer_qualified result total_staked_minor"
    " total_payout_minor net_minor celebrate payout_state commitment client_seed proof next_commitment",
    "Commitment": "number value round_id",
    "Revealed": "seed deal_index href",
    "Proof": "protocol round_id state game rules_digest rng_digest commitment seed client_seed client_seeds deal_index"
    " discards player_cards dealer_cards audit inclusion",
    "Inclusion": "leaf_index tree_size proof checkpoint verifier_keys",
    "Chained": "number value previous",
    "Evidence": "leaf_hash entry",
    "Paytable": "version digest",
    "Wager": "spot stake_minor payout_minor reason",
    "DecisionCost": "decision cost_minor",
    "RoundPage": "items next_cursor",
    "GamePage": "items next_cursor",
    "Game": "game rules ranking pays paytable limits rtp interruption_policy change",
    "Figure": "wager value exact denominator strategy",
    "Limits": "ante pair_bonus payout_max_minor maximum_win_minor",
    "Session": "player mode currency exponent balance_minor limits jurisdiction net_position_minor elapsed_seconds"
    " open_round client_seeds next_commitment next_commitments",
    "SessionRequest": "player currency mode game jurisdiction channel language test return_url",
    "OpenedSession": "session_id token launch_url expires_at",
    "MovementRequest": "amount_minor currency",
    "Balance": "balance_minor currency",
    "GamePaytables": "game active scheduled open_drafts",
    "DraftRequest": "game text from_version from_draft",
    "SaveRequest": "text",
    "PreviewRequest": "text jurisdictions certificate",
    "SubmitRequest": "jurisdictions certificate note",
    "ApproveRequest": "digest",
    "ReasonRequest": "reason",
    "ActivateRequest": "reason at",
    "DraftDetail": "draft_id game number state text revision started_from created_by editors created_at changed_at"
    " submitted_by submitted_at digest document jurisdictions certificate note decided_by decided_at decision_reason"
    " version problems",
    "VersionDetail": "game version digest state draft published_at approved_by jurisdictions certificate note"
    " activated_at scheduled_at scheduled_by retired_at paytable",
    "Preview": "digest problems guards compared_with figures best_play rules",
    "Happening": "entry_id occurred_at type actor authoriser reason before after payload",
    "Problem": "type title status detail code retryable errors",
}
"""Names that callers rely on; others may be added."""

ENUMS = {
    ("Round", "state"): "reserving awaiting_decision deciding settled cancelled voided",
    ("Round", "result"): "fold not_qualified win tie lose",
    ("Round", "decision"): "play fold",
    ("Round", "payout_state"): "paid pending",
    ("Round", "player_category"): "high_card pair flush run running_flush prial",
    ("Wager", "spot"): "ante play ante_bonus pair_bonus",
    ("Proof", "state"): "settled voided expired",
    ("Proof", "client_seeds"): "allowed off",
    ("Session", "mode"): "real demo",
    ("DraftDetail", "state"): "draft submitted approved rejected",
    ("VersionDetail", "state"): "approved scheduled active retired",
}


class Operation(NamedTuple):
    """An operation of the document with the parameters of its path."""

    method: str
    path: str
    content: dict[str, Any]
    parameters: list[dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


OPERATIONS = [
    Operation(method, path, content, [*item.get("parameters", []), *content.get("parameters", [])])
    for path, item in DOCUMENT["paths"].items()
    for method, content in item.items()
    if method != "parameters"
]
every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=str)


def values_of(name: str, node: Any = DOCUMENT) -> Iterator[Any]:
    """Every value that has this name, anywhere in the document."""
    if isinstance(node, dict):
        if name in node:
            yield node[name]
        for value in node.values():
            yield from values_of(name, value)
    elif isinstance(node, list):
        for value in node:
            yield from values_of(name, value)


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(DOCUMENT)] == []


def test_every_reference_leads_to_a_schema_and_every_schema_is_referred_to() -> None:
    references = set(values_of("$ref"))
    schemas = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert references == schemas


def test_every_pattern_means_the_same_to_every_reader() -> None:
    """Patterns of JSON Schema are those of ECMA 262: `\\Z` is a letter there, and without anchors a part may match."""
    patterns = set(filter(None, values_of("pattern")))
    assert patterns
    assert [pattern for pattern in patterns if not re.fullmatch(r"\^(?!.*\\[AZ]).*\$", pattern)] == []


@every_operation
def test_success_is_json_and_failure_is_a_problem(operation: Operation) -> None:
    statuses = operation.content["responses"]
    assert any(status.startswith("2") for status in statuses)
    for status, response in statuses.items():
        content = response.get("content", {})
        if status.startswith("2"):
            forms = {one["name"]: one["schema"].get("enum") for one in operation.parameters}.get("format")
            also = [f"text/{form}" for form in forms or () if form != "json"]
            form = OTHER_THAN_JSON.get(operation.path, "application/json")
            assert list(content) == ([] if status == "204" else [form, *also])
        elif operation.path == "/readyz" and status == "503":
            assert content == {"application/json": {"schema": {"$ref": "#/components/schemas/Health"}}}
        else:
            assert re.fullmatch("[45][0-9][0-9]", status)  # never `default`
            assert content == PROBLEM
            codes = re.findall("`([a-z_]+)`", response["description"])
            assert codes
            assert {MEANINGS[Code(code)].status for code in codes} == {int(status)}


def test_every_code_is_documented_by_an_operation_or_belongs_to_none() -> None:
    documented = {
        Code(code)
        for operation in OPERATIONS
        for status, response in operation.content["responses"].items()
        if not status.startswith("2")
        for code in re.findall("`([a-z_]+)`", response["description"])
    }
    assert documented.isdisjoint(EVERYWHERE)
    assert documented | EVERYWHERE == set(Code)


def test_the_codes_and_their_meanings_stand_in_one_order_of_precedence() -> None:
    assert list(MEANINGS) == list(Code)
    assert DOCUMENT["components"]["schemas"]["Problem"]["properties"]["code"]["enum"] == [*Code]


@pytest.mark.parametrize("schema", CONTRACT)
def test_the_names_of_the_contract_are_there(schema: str) -> None:
    properties = DOCUMENT["components"]["schemas"][schema]["properties"]
    assert set(CONTRACT[schema].split()) <= set(properties)


@pytest.mark.parametrize(("schema", "name"), ENUMS)
def test_closed_sets_have_the_members_of_the_contract(schema: str, name: str) -> None:
    assert set(DOCUMENT["components"]["schemas"][schema]["properties"][name]["enum"]) == set(
        ENUMS[schema, name].split()
    )


def test_amounts_are_integers_whose_names_say_that_they_are_minor_units() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        for name, shape in schema.get("properties", {}).items():
            assert shape.get("type") != "number", name
            if name.endswith("_minor"):
                of_each = shape.get("additionalProperties", shape)  # one amount, or one for each currency
                assert "integer" in of_each["type"], name
            elif re.search("balance|stake|payout|amount|limit$", name):
                assert "integer" not in json.dumps(shape.get("type", "")), name


@every_operation
def test_a_signed_call_names_the_headers_it_is_signed_with(operation: Operation) -> None:
    assert set(DOCUMENT["components"]["securitySchemes"]) == {"session", "signature", "staff"}
    signed = {"X-Operator", "X-Key-Id", "X-Timestamp", "X-Nonce"}
    headers = {one["name"] for one in operation.parameters if one["in"] == "header" and one["required"]}
    assert (signed <= headers) == (operation.content.get("security") == [{"signature": []}])


@every_operation
def test_what_may_overwrite_somebody_elses_change_has_to_name_what_was_read(operation: Operation) -> None:
    needed = [one["required"] for one in operation.parameters if one["name"] == "If-Match"]
    assert needed == ([True] if {"428", "412"} <= operation.content["responses"].keys() else [])
    assert operation.method != "put" or needed


def test_every_example_is_of_its_schema() -> None:
    """Request bodies and answers; of the paytables each that changes something has one."""
    looked_at = set()
    for operation in OPERATIONS:
        answers = operation.content["responses"].values()
        for holder in (operation.content.get("requestBody", {}), *answers):
            for media in holder.get("content", {}).values():
                if "example" in media:
                    name = media["schema"]["$ref"].rpartition("/")[2]
                    schema: Any = class_registry.get_class(
                        name if name.endswith("Request") else f"{name}Schema"
                    )
                    assert schema().validate(media["example"]) == {}
                    looked_at.add(str(operation))
    changing = {
        str(operation)
        for operation in OPERATIONS
        if operation.path.startswith("/v1/paytables") and operation.method in BODIES
    }
    assert changing <= looked_at


@every_operation
def test_a_post_that_moves_money_needs_an_idempotency_key(operation: Operation) -> None:
    keys = [one for one in operation.parameters if one["name"] == "Idempotency-Key"]
    if operation.method == "post" and operation.path not in MOVE_NO_MONEY:
        assert [(one["in"], one["required"]) for one in keys] == [("header", True)]
        assert "idempotency_key_missing" in operation.content["responses"]["422"]["description"]
    else:
        assert keys == []


@every_operation
def test_every_operation_and_parameter_is_described(operation: Operation) -> None:
    assert operation.content["summary"]
    assert len(operation.content["tags"]) == 1
    named = set(re.findall(r"\{(\w+)\}", operation.path))
    assert {one["name"] for one in operation.parameters if one["in"] == "path"} == named
    for one in operation.parameters:
        assert one["in"] == "path" or one.get("description") or one["name"] in ("limit",), one["name"]


def test_what_a_query_can_say_is_documented() -> None:
    queries = {
        str(operation): {one["name"] for one in operation.parameters if one["in"] == "query"}
        for operation in OPERATIONS
    }
    assert {operation: names for operation, names in queries.items() if names} == {
        "GET /v1/rounds": {"cursor", "limit"},
        "GET /v1/commitments": {"cursor", "game", "limit"},
        "GET /v1/operator/players/{player}/balance": {"currency"},
        "GET /v1/operator/rounds": {
            *("cursor", "limit", "format", "player", "state", "game", "from", "to", "mode", "test"),
        },
        "GET /v1/operator/reports/game-performance": {"from", "to", "period", "format"},
        "GET /v1/operator/reports/interrupted": {"cursor", "limit", "format", "minutes"},
        "GET /v1/operator/reports/alterations": {"cursor", "limit", "format", "from", "to", "period"},
        "GET /v1/audit/checkpoints": {"cursor", "limit"},
        "GET /v1/audit/proof/consistency": {"old", "new"},
        "GET /v1/rtp": {"game", "from", "to"},
        "GET /v1/audit/proof/inclusion": {"round_id", "entry_id", "size"},
        "GET /v1/audit/entries": {
            *("cursor", "limit", "format", "from", "to", "type", "actor"),
            *("operator_id", "player_id", "session_id", "round_id"),
        },
        "GET /v1/paytables/{game}/drafts": {"cursor", "limit", "state"},
        "GET /v1/paytables/{game}/history": {"cursor", "limit"},
        "GET /v1/paytables/{game}/versions/{version}/par-sheet": {"format"},
        "GET /v1/simulations": {"cursor", "limit"},
        "GET /v1/reports/{name}": {"from", "to", "period", "operator", "type", "format"},
    }


@every_operation
def test_what_reads_a_body_says_what_is_wrong_with_one(operation: Operation) -> None:
    if operation.method in BODIES and operation.path not in WITHOUT_A_BODY:
        assert list(operation.content["requestBody"]["content"]) == ["application/json"]
        assert operation.content["requestBody"]["required"] is True
        assert {"400", "413", "415", "422"} <= set(operation.content["responses"])
    else:
        assert "requestBody" not in operation.content


@pytest.mark.parametrize(
    "schema", [name for name in DOCUMENT["components"]["schemas"] if name.endswith("Request")]
)
def test_every_text_of_a_request_is_of_a_known_set_or_length(schema: str) -> None:
    unbounded = [
        name
        for name, shape in DOCUMENT["components"]["schemas"][schema]["properties"].items()
        if shape["type"] == "string"
        and not {"enum", "maxLength"} & shape.keys()
        and shape.get("format") != "date-time"
        and re.search(r"[*+]|,\}", shape.get("pattern", "+"))
    ]
    assert unbounded == []
