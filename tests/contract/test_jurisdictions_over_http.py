"""What a jurisdiction asks for, as the server sees to it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from casino_brag.catalogue import jurisdictions
from casino_brag.rounds import opening
from tests.inprocess import AppHouse
from tests.running import Player, code_of, together


def test_the_session_says_what_the_jurisdiction_asks_for(app_house: AppHouse) -> None:
    for name in jurisdictions.names():
        session = app_house.player(jurisdiction=name).get("/v1/session").json()
        assert session["jurisdiction"] == name
        assert session["jurisdiction_flags"] == jurisdictions.jurisdiction(name).flags()


def test_an_unknown_jurisdiction_is_refused(app_house: AppHouse) -> None:
    answer = app_house.operator.open_session(jurisdiction="atlantis")
    assert code_of(answer) == "invalid"
    assert list(answer.json()["errors"]) == ["jurisdiction"]


def test_in_great_britain_a_round_begins_five_seconds_after_the_last(app_house: AppHouse) -> None:
    player = app_house.player(jurisdiction="gb")
    opened = player.open(100)
    # The Play decision is never made to wait.
    assert player.decide(opened.json()["round_id"], "play").status_code == 200
    early = player.open(100, key="again")
    assert code_of(early) == "too_soon"
    assert 1 <= int(early.headers["Retry-After"]) <= 5
    assert early.json()["retryable"] is True
    start_earlier(app_house, opened.json()["round_id"], seconds=4.9)
    # The time ended while we were looking, or it has a little left: the header says when it is over.
    later = player.open(100, key="again")
    assert later.status_code == 201 or later.headers["Retry-After"] == "1"
    start_earlier(app_house, opened.json()["round_id"], seconds=-4.9)


def test_of_two_starts_at_the_same_instant_in_two_games_one_is_too_soon(app_house: AppHouse) -> None:
    games = [game["game"] for game in app_house.player().get("/v1/games").json()["items"]]
    assert len(games) >= 2
    wanted = {"player": "hasty", "currency": "GBP", "mode": "demo", "jurisdiction": "gb"}
    token = app_house.operator.send("POST", "/v1/operator/sessions", wanted).json()["token"]
    player = Player(app_house.base, token)
    answers = together([lambda game=game: player.open(100, game=game) for game in games[:2]])  # type: ignore[misc]
    assert sorted(answer.status_code for answer in answers) == [201, 429]
    assert code_of(max(answers, key=lambda answer: answer.status_code)) == "too_soon"


def test_a_clock_that_was_set_back_makes_nobody_wait(app_house: AppHouse) -> None:
    player = app_house.player(jurisdiction="gb")
    round_id = player.played("fold")["round_id"]
    start_earlier(app_house, round_id, seconds=-600)
    assert player.open(100).status_code == 201
    start_earlier(app_house, round_id, seconds=600)


def test_elsewhere_rounds_follow_each_other_at_once(app_house: AppHouse) -> None:
    player = app_house.player(jurisdiction="mga")
    for _ in range(3):
        assert player.played("fold")["state"] == "settled"


def test_a_win_is_celebrated_by_the_jurisdictions_rule(app_house: AppHouse) -> None:
    for name in ("gb", "mga"):
        seen = set()
        for _ in range(12):
            player = app_house.player(jurisdiction=name)
            settled = player.played("play")
            rule = jurisdictions.jurisdiction(name).celebrates
            assert settled["celebrate"] is rule(settled["total_staked_minor"], settled["total_payout_minor"])
            seen.add(settled["celebrate"])
        assert seen == {True, False}


def test_a_game_below_the_floor_and_stakes_above_the_limit_are_not_taken(
    app_house: AppHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = replace(
        jurisdictions.jurisdiction("none"),
        title="Testland",
        rtp_floor_main=Fraction(99, 100),
        stake_max_minor={},
    )
    monkeypatch.setattr(opening, "jurisdiction", lambda _: strict)
    player = app_house.player()
    below = player.open(100)
    assert code_of(below) == "game_unavailable"
    assert "Testland" in below.json()["detail"]
    monkeypatch.setattr(
        opening, "jurisdiction", lambda _: replace(strict, rtp_floor_main=None, stake_max_minor={"GBP": 399})
    )
    assert code_of(player.open(200)) == "stake_out_of_limits"  # with the Play that may follow it is 400
    assert player.open(150).status_code == 201


def start_earlier(app_house: AppHouse, round_id: str, *, seconds: float) -> None:
    """Has a round begun earlier than it did, which only the owner of the tables can bring about."""
    with app_house.connect() as conn, conn.transaction():
        conn.execute("ALTER TABLE round DISABLE TRIGGER USER")
        conn.execute(
            "UPDATE round SET opened_at = opened_at - make_interval(secs => %s) WHERE round_id = %s",
            [seconds, round_id],
        )
        conn.execute("ALTER TABLE round ENABLE ALWAYS TRIGGER round_settled_is_final")
        conn.execute("ALTER TABLE round ENABLE ALWAYS TRIGGER round_settles_what_was_accepted")
        conn.execute("ALTER TABLE round ENABLE ALWAYS TRIGGER round_is_kept")
        conn.execute("ALTER TABLE round ENABLE ALWAYS TRIGGER round_is_voided_on_record")
