"""Rate limits."""

from __future__ import annotations

from pathlib import Path

from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.web.api.problems import ProblemApi
from casino_brag.web.rate import BURST_SECONDS, CALLERS_MAX, Buckets, limit
from tests.running import RunningService


@given(
    per_second=st.integers(1, 50),
    pauses=st.lists(st.floats(0, 2, allow_nan=False), min_size=1, max_size=300),
)
def test_nobody_gets_more_than_a_burst_and_the_rate(per_second: int, pauses: list[float]) -> None:
    buckets = Buckets(per_second)
    now, taken = 1000.0, 0
    for pause in pauses:
        now += pause
        taken += buckets.take("somebody", now)
    assert taken <= per_second * BURST_SECONDS + (now - 1000.0) * per_second + 1


@given(per_second=st.integers(1, 50))
def test_who_waits_a_second_may_go_on(per_second: int) -> None:
    buckets = Buckets(per_second)
    while buckets.take("somebody", 0.0):
        pass
    assert buckets.take("somebody", 1.0)


def test_callers_do_not_slow_each_other_and_are_forgotten_oldest_first() -> None:
    buckets = Buckets(1)
    while buckets.take("loud", 0.0):
        pass
    assert buckets.take("quiet", 0.0)
    for number in range(CALLERS_MAX):
        buckets.take(str(number), 0.0)
    assert buckets.take("loud", 0.0)


def test_a_caller_above_the_rate_gets_429_with_retry_after() -> None:
    app = Flask("rate")
    app.config |= {"OPENAPI_VERSION": "3.1.0", "API_TITLE": "rate", "API_VERSION": "v1"}
    ProblemApi(app)
    limit(app, 1)
    app.add_url_rule("/v1/thing", view_func=lambda: "here")
    client = app.test_client()
    answers = [
        client.get("/v1/thing", headers={"Authorization": "Bearer x"}) for _ in range(BURST_SECONDS + 1)
    ]
    assert [answer.status_code for answer in answers] == [200] * BURST_SECONDS + [429]
    assert answers[-1].headers["Retry-After"] == "1"
    assert answers[-1].json is not None
    assert (answers[-1].json["code"], answers[-1].json["retryable"]) == ("rate_limited", True)
    assert client.get("/v1/thing", headers={"Authorization": "Bearer y"}).status_code == 200


def test_the_rate_is_read_from_the_environment(tmp_path: Path) -> None:
    environment = {"CASINO_BRAG_RATE_PER_SECOND": "1"}
    with RunningService.start(tmp_path, workers=1, environment=environment) as running:
        player = running.operator().player()
        statuses = [player.get("/v1/session").status_code for _ in range(12)]
    assert statuses[0] == 200
    assert 429 in statuses
