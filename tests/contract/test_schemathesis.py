"""The running service under generated requests, judged by its own OpenAPI document."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from requests.auth import AuthBase
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from casino_brag.catalogue.signing import signature
from tests.inprocess import openapi_document
from tests.running import Operator, Player, RunningService

EXAMPLES = 40
CALL_SECONDS = 30
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
    allow_header_conformance,
    negative_data_rejection,
    missing_required_header,
]

EXISTING: dict[str, Any] = {
    "player": "generated",
    "game": "three-card-brag",
    "currency": "GBP",
    "ante_minor": 100,
    "pair_bonus_minor": 50,
    "amount_minor": 10,
    "number": 1,
    "version": 1,
}

document = openapi_document()
schema = schemathesis.openapi.from_dict(document)
rejection = schema.config.checks.negative_data_rejection
rejection.expected_statuses = [*rejection.expected_statuses, "413"]  # of a text that is too long, by far
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)


@dataclass
class Bearer(AuthBase):
    """A player's front-end, or somebody of staff."""

    token: str

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.token}"
        return request


@dataclass
class Signed(AuthBase):
    """An operator's back end: signs the request as it will be sent."""

    operator: Operator

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        body = request.body or b""
        sent = body.encode() if isinstance(body, str) else body
        stamp, nonce = str(int(time.time())), secrets.token_hex(16)
        assert request.method is not None
        signed = signature(self.operator.secret, request.method, request.path_url, stamp, nonce, sent)
        request.headers.update(
            {
                "X-Operator": self.operator.name,
                "X-Key-Id": self.operator.key_id,
                "X-Timestamp": stamp,
                "X-Nonce": nonce,
                "X-Signature": signed,
            }
        )
        return request


@dataclass
class World:
    """Callers, and things that exist for generated requests to find."""

    service: RunningService
    player: Player
    operator: Operator
    staff: Player
    rounds: list[str]
    turn: int = 0

    def send(self, case: schemathesis.Case[Any], *, proven: bool = True) -> schemathesis.Response:
        """Sends a generated request; of those that follow the document, every second one means something.

        A request whose headers are what is wrong with it is sent with these, and proves nothing.
        """
        self.turn += 1
        assert case.meta is not None
        if self.turn % 2 and case.meta.generation.mode.is_positive:
            self._give_meaning(case)
        proven = proven and not case.meta.is_negative_at(ParameterLocation.HEADER)
        auth = {
            "session": Bearer(self.player.token),
            "signature": Signed(self.operator),
            "staff": Bearer(self.staff.token),
            None: None,
        }[needs(case)]
        answer = case.call(base_url=self.service.base, auth=auth if proven else None, timeout=CALL_SECONDS)
        if answer.status_code == 201 and case.path == "/v1/rounds":
            assert self.player.decide(answer.json()["round_id"], "fold").status_code == 200
        return answer

    def _give_meaning(self, case: schemathesis.Case[Any]) -> None:
        existing = EXISTING | {"round_id": self.rounds[self.turn // 2 % len(self.rounds)]}
        if "session_id" in case.path_parameters:
            existing["session_id"] = self.operator.open_session().json()["session_id"]
        for values in (case.path_parameters, case.query, case.body):
            if isinstance(values, dict):
                values.update((name, value) for name, value in existing.items() if name in values)


def needs(case: schemathesis.Case[Any]) -> str | None:
    """The security scheme of the case's operation."""
    security = case.operation.definition.raw.get("security", [])
    return next(iter(security[0])) if security else None


@pytest.fixture(scope="module")
def world(service: RunningService) -> World:
    operator = service.operator()
    operator.deposit(EXISTING["player"], 10_000_000)
    wanted = {"player": EXISTING["player"], "currency": "GBP", "mode": "real"}
    token = operator.send("POST", "/v1/operator/sessions", wanted).json()["token"]
    player = Player(service.base, token)
    settled, waiting = (
        player.post("/v1/rounds", {"ante_minor": 100, "game": game}).json()["round_id"]
        for game in ("three-card-brag", "double-play-brag")
    )
    assert player.decide(settled, "fold").status_code == 200
    # No approver: with one about, files would publish nothing in a service that other tests use too.
    staff = service.staff("editor", "auditor", "operations")
    return World(service, player, operator, staff, [settled, waiting])


def test_the_running_service_publishes_this_document(service: RunningService) -> None:
    assert requests.get(service.base + "/openapi.json", timeout=CALL_SECONDS).json() == document


@schema.parametrize()
@bounded
def test_every_answer_is_one_that_the_document_promises(case: schemathesis.Case[Any], world: World) -> None:
    case.validate_response(world.send(case), checks=CHECKS)


@schema.include(func=lambda context: "security" in context.operation.definition.raw).parametrize()
@bounded
def test_without_proof_of_the_caller_nothing_is_done(case: schemathesis.Case[Any], world: World) -> None:
    answer = world.send(case, proven=False)
    assert answer.status_code >= 400 or case.method == "OPTIONS", answer.text
    case.validate_response(answer, checks=CHECKS)
