"""Commitments as players see them: shown before the stakes, numbered without a gap, revealed after, never swapped."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections import Counter
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
import requests

from casino_brag.db.embedded import EmbeddedServer
from casino_brag.game.cards import PACK
from casino_brag.rng import seeds
from tests.receipts import problems_of
from tests.running import CALL_SECONDS, Operator, Player, RunningService, code_of, together

GAME, VARIANT = "three-card-brag", "double-play-brag"
IN_ITS_WAY = {"round_open", "request_in_progress", "busy"}
"""What a request may be told when another one of the same player was first."""


def series(service: RunningService, player: Player) -> list[tuple[int, bool]]:
    """The numbers of a player's commitments in the session's game and mode, and whether each is over."""
    with service.connect() as conn:
        return conn.execute(
            "SELECT number, ended_at IS NOT NULL FROM commitment JOIN session USING (player_id, mode, game)"
            " WHERE token_hash = sha256(%s) ORDER BY number",
            [player.token.encode()],
        ).fetchall()


def counted(service: RunningService) -> tuple[Any, ...]:
    """How many commitments there are, how many are over, and how often one is mentioned on record."""
    with service.connect() as conn:
        row = conn.execute(
            "SELECT count(*), count(ended_at),"
            " (SELECT count(*) FROM audit_entry WHERE type LIKE 'commitment.%') FROM commitment"
        ).fetchone()
    assert row is not None
    return tuple(row)


# What is shown, and when


def test_a_round_is_dealt_from_what_the_session_showed_before(operator: Operator) -> None:
    player = operator.player()
    before = player.get("/v1/session").json()
    shown = before["next_commitment"]
    assert before["next_commitments"] == {GAME: shown}
    assert set(shown) == {"number", "value", "round_id"}
    assert shown["number"] == 1
    opened = player.open(100).json()
    assert (opened["commitment"], opened["round_id"]) == (shown, shown["round_id"])
    assert "proof" not in opened
    waiting = player.get("/v1/session").json()
    assert waiting["open_round"]["commitment"] == shown
    assert (waiting["next_commitment"], waiting["next_commitments"]) == (None, {})
    settled = player.decide(opened["round_id"], "fold").json()
    assert settled["commitment"] == shown
    assert settled["proof"]["href"] == f"/v1/rounds/{shown['round_id']}/proof"
    assert settled["next_commitment"]["number"] == 2
    assert settled["next_commitment"] == player.next_commitment()
    read = player.get(f"/v1/rounds/{shown['round_id']}").json()
    assert read["proof"] == settled["proof"]
    assert "next_commitment" not in read
    receipt = player.get(settled["proof"]["href"]).json()
    assert settled["proof"].items() <= (receipt | {"href": settled["proof"]["href"]}).items()
    assert problems_of(receipt, commitment=shown["value"]) == []


def test_a_session_of_no_game_shows_a_commitment_for_each(operator: Operator) -> None:
    player = operator.player_of_any_game()
    session = player.get("/v1/session").json()
    games = {game["game"] for game in player.get("/v1/games").json()["items"]}
    assert session["next_commitment"] is None
    assert set(session["next_commitments"]) == games
    assert len(games) > 1
    for game, shown in session["next_commitments"].items():
        assert shown["number"] == 1
        opened = player.open(100, game=game).json()
        assert opened["commitment"] == shown
        assert set(player.get("/v1/session").json()["next_commitments"]) == games - {game}
        settled = player.decide(opened["round_id"], "fold").json()
        assert player.get("/v1/session").json()["next_commitments"][game] == settled["next_commitment"]


def test_the_commitments_of_many_rounds_are_one_chain(service: RunningService, operator: Operator) -> None:
    player = operator.player()
    shown, receipts = [player.next_commitment()], []
    for decision in ["play", "fold"] * 5:
        settled = player.played(decision, commitment=shown[-1]["value"])
        receipts.append(player.proof(settled["round_id"]).json())
        shown.append(settled["next_commitment"])
    assert [commitment["number"] for commitment in shown] == list(range(1, 12))
    for before, after in zip(shown, receipts[1:], strict=False):
        assert after["commitment"]["previous"] == before["value"]
    assert problems_of(*receipts) == []
    (problem,) = problems_of(*receipts[:4], *receipts[5:])
    assert problem.startswith("DOES NOT HOLD: chain: number 5 is missing")
    assert series(service, player) == [(number, number < 11) for number in range(1, 12)]
    assert service.broken_laws() == {}


def test_each_player_game_and_mode_has_a_series_of_its_own(operator: Operator) -> None:
    name = secrets.token_hex(6)
    assert operator.deposit(name, 10_000).status_code == 201
    sessions = [
        operator.player(player=name),
        operator.player(player=name, mode="real"),
        operator.player(player=name, game=VARIANT),
        operator.player(),
    ]
    assert len({session.next_commitment()["value"] for session in sessions}) == len(sessions)
    for rounds, session in enumerate(sessions, start=1):
        for number in range(1, rounds + 1):
            assert session.played()["commitment"]["number"] == number
    assert [session.next_commitment()["number"] for session in sessions] == [2, 3, 4, 5]


def test_two_sessions_of_a_player_stand_in_one_series(operator: Operator) -> None:
    name = secrets.token_hex(6)
    one, other = operator.player(player=name), operator.player(player=name)
    shown = one.next_commitment()
    assert other.next_commitment() == shown
    round_id = one.open(100, commitment=shown["value"]).json()["round_id"]
    assert other.next_commitment() is None
    assert code_of(other.open(100, commitment=shown["value"])) == "round_open"
    following = other.decide(round_id, "fold").json()["next_commitment"]
    assert one.next_commitment() == other.next_commitment() == following
    assert code_of(other.open(100, commitment=shown["value"])) == "commitment_stale"
    assert other.open(100, commitment=following["value"]).json()["commitment"] == following


def test_rounds_are_listed_newest_first_whenever_they_were_committed_to(operator: Operator) -> None:
    player = operator.player_of_any_game()
    rounds = [player.played(game=game) for game in (GAME, GAME, VARIANT, GAME, VARIANT)]
    listed, path = [], "/v1/rounds?limit=2"
    while path:
        page = player.get(path).json()
        listed += page["items"]
        path = page["next_cursor"] and f"/v1/rounds?limit=2&cursor={page['next_cursor']}"
    assert [item["round_id"] for item in reversed(listed)] == [item["round_id"] for item in rounds]


def test_no_get_makes_a_commitment(service: RunningService, operator: Operator) -> None:
    player = operator.player()
    over, waiting = player.played()["round_id"], player.open(100).json()["round_id"]
    paths = [
        "/v1/session",
        "/v1/rounds",
        *(f"/v1/rounds/{round_id}{tail}" for round_id in (over, waiting, uuid4()) for tail in ("", "/proof")),
        "/v1/games",
        f"/v1/games/{GAME}",
        "/healthz",
        "/readyz",
        "/openapi.json",
    ]
    for path in paths:
        before = counted(service)
        for _ in range(2 * len(service.worker_pids())):
            assert player.again().get(path).status_code in {200, 404, 409}
        assert counted(service) == before, path


# A commitment that is named


def test_a_stale_commitment_takes_nothing_and_leaves_the_key_free(
    service: RunningService, operator: Operator
) -> None:
    player = operator.player()
    stale = player.played()["commitment"]
    present = player.next_commitment()
    strangers = operator.player().next_commitment()
    before = player.balance_minor(), counted(service)
    for value in (stale["value"], strangers["value"], secrets.token_hex(32)):
        assert code_of(player.open(100, key="k", commitment=value)) == "commitment_stale"
    assert (player.balance_minor(), counted(service)) == before
    assert player.next_commitment() == present
    opened = player.open(100, key="k", commitment=present["value"])
    assert (opened.status_code, opened.json()["commitment"]) == (201, present)
    assert "Idempotency-Replayed" not in opened.headers


@pytest.mark.parametrize(
    "value",
    ["", 63 * "a", 65 * "a", 64 * "A", 64 * "g", 64 * "a" + "\n", " " + 64 * "a", 0, None, [64 * "a"]],
)
def test_a_commitment_that_is_none_is_invalid(operator: Operator, value: object) -> None:
    player = operator.player()
    refused = player.open(100, commitment=value)
    assert code_of(refused) == "invalid"
    assert set(refused.json()["errors"]) == {"commitment"}
    assert player.get("/v1/session").json()["open_round"] is None


def test_replays_give_the_first_answer_to_the_byte(operator: Operator) -> None:
    player = operator.player()
    value = player.next_commitment()["value"]
    opened = player.open(100, key="open", commitment=value, client_seed="mine")
    decide = partial(player.decide, opened.json()["round_id"], "play")
    settled = decide(key="decide")
    assert player.played()["commitment"] == settled.json()["next_commitment"]
    for _ in range(4):
        again = player.again().open(100, key="open", commitment=value, client_seed="mine")
        assert (again.status_code, again.content) == (201, opened.content)
        for key in ("decide", secrets.token_hex(4)):
            repeated = decide(key=key)
            assert (repeated.content, repeated.headers["Idempotency-Replayed"]) == (settled.content, "true")
    for other in ({"commitment": value}, {"client_seed": "mine"}, {"commitment": value, "client_seed": "my"}):
        assert code_of(player.open(100, key="open", **other)) == "idempotency_key_reused"


# A player's own text


VISIBLE = "".join(map(chr, range(0x21, 0x7F)))


@pytest.mark.parametrize("text", ["x", VISIBLE, 128 * "~", None])
def test_a_client_seed_is_mixed_into_the_deal(operator: Operator, text: str | None) -> None:
    player = operator.player()
    shown = player.next_commitment()
    named = {} if text is None else {"client_seed": text}
    settled = player.played("play", **named)
    receipt = player.proof(settled["round_id"]).json()
    assert problems_of(receipt, commitment=shown["value"]) == []
    assert settled["client_seed"] == receipt["client_seed"] == text
    assert receipt["client_seeds"] == "allowed"
    of_round = bytes.fromhex(receipt["seed"]), UUID(receipt["round_id"]), receipt["rules_digest"]
    dealt, other = seeds.deal(*of_round, text), seeds.deal(*of_round, "another text")
    assert [str(PACK[number]) for number in dealt.cards] == settled["player_cards"] + settled["dealer_cards"]
    assert settled["proof"]["deal_index"] == dealt.index != other.index


@pytest.mark.parametrize(
    "text",
    ["", 129 * "x", "a b", " ", "tab\t", "end\n", "\x00", "\x1f", "\x7f", "é", "\U0001f0a1", 7, None, ["x"]],
)
def test_what_is_no_client_seed_is_invalid(operator: Operator, text: object) -> None:
    player = operator.player()
    refused = player.open(100, client_seed=text)
    assert code_of(refused) == "invalid"
    assert set(refused.json()["errors"]) == {"client_seed"}
    assert player.open(100).status_code == 201


def test_an_operator_switches_client_seeds_off_and_on(service: RunningService) -> None:
    operator = service.operator()
    player, bystander = operator.player(), service.operator().player()
    switch = partial(service.command, "operator", "client-seeds", operator.name)
    begun = player.open(100, client_seed="before").json()

    assert switch("off") == f"Client seeds of {operator.name} are off.\n"
    assert "as before" in switch("off")
    settled = player.decide(begun["round_id"], "fold").json()
    assert player.proof(settled["round_id"]).json()["client_seeds"] == "allowed", "it was, when it was dealt"
    shown = player.get("/v1/session").json()
    assert shown["client_seeds"] is False
    refused = player.open(100, client_seed="mine", key="k")
    assert (code_of(refused), set(refused.json()["errors"])) == ("invalid", {"client_seed"})
    without = player.open(100, key="k").json()
    assert without["commitment"] == shown["next_commitment"]
    assert bystander.played(client_seed="mine")["client_seed"] == "mine"

    assert switch("on") == f"Client seeds of {operator.name} are on.\n"
    player.decide(without["round_id"], "fold")
    receipt = player.proof(without["round_id"]).json()
    assert (receipt["client_seeds"], receipt["client_seed"]) == ("off", None)
    assert problems_of(receipt, commitment=shown["next_commitment"]["value"]) == []
    assert player.get("/v1/session").json()["client_seeds"] is True
    assert player.played(client_seed="mine")["client_seed"] == "mine"

    with service.connect() as conn:
        entries = conn.execute(
            "SELECT before, after FROM audit_entry JOIN operator USING (operator_id)"
            " WHERE type = 'operator.client_seeds_changed' AND name = %s ORDER BY occurred_at",
            [operator.name],
        ).fetchall()
    on, off = {"client_seeds": True}, {"client_seeds": False}
    assert entries == [(on, off), (off, on)]
    assert service.broken_laws() == {}


# Who may ask for a proof, and when


def test_a_proof_is_for_its_player_alone(operator: Operator, other_operator: Operator) -> None:
    name = secrets.token_hex(6)
    assert operator.deposit(name, 10_000).status_code == 201
    player, real = operator.player(player=name), operator.player(player=name, mode="real")
    over, waiting, unused = (
        player.played()["round_id"],
        player.open(100).json()["round_id"],
        operator.player(player=name, game=VARIANT).next_commitment()["round_id"],
    )
    for round_id in (waiting, unused):
        refused = player.proof(round_id)
        assert code_of(refused) == "proof_unavailable"
        assert "seed" not in refused.json()
    others = [real, operator.player(), other_operator.player(player=name)]
    for round_id in (over, waiting, unused):
        assert [code_of(other.proof(round_id)) for other in others] == ["round_not_found"] * 3
    assert code_of(player.proof(str(uuid4()))) == "round_not_found"
    assert code_of(Player(player.base, secrets.token_urlsafe(32)).proof(over)) == "unauthenticated"


def test_a_proof_is_given_on_a_session_that_has_ended(operator: Operator) -> None:
    session = operator.open_session().json()
    player = Player(operator.base, session["token"])
    over, waiting = player.played()["round_id"], player.open(100).json()["round_id"]
    before = player.proof(over)
    assert operator.send("DELETE", f"/v1/operator/sessions/{session['session_id']}").status_code < 300
    assert code_of(player.get("/v1/session")) == "session_expired"
    assert player.proof(over).content == before.content
    assert code_of(player.proof(waiting)) == "proof_unavailable"
    player.decide(waiting, "fold")
    assert problems_of(before.json(), player.proof(waiting).json()) == []


# Many at once


def tally(answers: list[requests.Response]) -> Counter[str]:
    """What many requests were told: their status where it went well, else the code."""
    return Counter(str(a.status_code) if a.ok else code_of(a) for a in answers)


def test_requests_of_a_player_at_once_leave_one_series_without_a_gap(
    service: RunningService, operator: Operator
) -> None:
    name = secrets.token_hex(6)
    sessions = together([partial(operator.player, player=name)] * 25)
    (shown,) = {session.next_commitment()["value"] for session in sessions}
    player = sessions[0]
    assert series(service, player) == [(1, False)]

    opened = together([partial(s.open, 100, commitment=shown) for s in [*sessions, *sessions[1:]]])
    told = tally(opened)
    assert told.pop("201") == 1
    assert set(told) <= IN_ITS_WAY, told
    (round_id,) = [answer.json()["round_id"] for answer in opened if answer.ok]
    assert series(service, player) == [(1, False)]

    decided = together([partial(s.decide, round_id, "play") for s in sessions])
    told = tally(decided)
    assert len({answer.content for answer in decided if answer.ok}) == 1
    assert told.pop("200") >= 1
    assert set(told) <= IN_ITS_WAY, told
    assert series(service, player) == [(1, True), (2, False)]
    assert service.broken_laws() == {}


def test_all_that_a_player_can_do_at_once_leaves_one_series_without_a_gap(
    service: RunningService, operator: Operator
) -> None:
    name = secrets.token_hex(6)
    twins = [operator.player(player=name) for _ in range(8)]

    def play(player: Player) -> None:
        for _ in range(6):
            opened = player.open(5)
            waiting = player.get("/v1/session").json()["open_round"]
            round_id = opened.json()["round_id"] if opened.ok else (waiting or {}).get("round_id")
            if round_id is not None:
                answer = player.decide(round_id, "fold")
                assert answer.ok or code_of(answer) in IN_ITS_WAY
            assert opened.ok or code_of(opened) in IN_ITS_WAY
            assert operator.open_session(player=name).status_code in {201, 409, 503}

    together([partial(play, twin) for twin in twins])
    rounds = len(twins[0].get("/v1/rounds?limit=200").json()["items"])
    last = rounds if twins[0].next_commitment() is None else rounds + 1
    assert [number for number, _ in series(service, twins[0])] == list(range(1, last + 1))
    assert rounds >= 6
    assert service.broken_laws() == {}


# The database that is started anew


def wait_for_every_worker(service: RunningService, *players: Player) -> None:
    """Waits until every worker has found the database again, as far as many requests in a row can tell.

    Each player asks on the connection that is used afterwards too, which stays with one worker, and on another.
    """
    deadline, streak = time.monotonic() + CALL_SECONDS, 0
    while streak < 4 * len(service.worker_pids()):
        assert time.monotonic() < deadline, "the service does not find its database again"
        asking = [*players, *(player.again() for player in players)]
        streak = streak + 1 if all(player.get("/v1/session").ok for player in asking) else 0


def test_nothing_is_dealt_from_a_commitment_of_another_run_of_the_database(
    own_service: RunningService,
) -> None:
    service, operator = own_service, own_service.operator()
    names = [secrets.token_hex(6) for _ in range(4)]
    naming, silent, playing, returning = (operator.player(player=name) for name in names)
    shown = [player.next_commitment() for player in (naming, silent, returning)]
    opened = playing.open(100, commitment=playing.next_commitment()["value"]).json()

    os.kill(int((service.data_dir / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
    with EmbeddedServer.attach(service.data_dir):
        wait_for_every_worker(service, naming, silent, playing, returning)
        before = counted(service)
        for player in (naming, silent, returning):
            assert player.next_commitment() is None
            assert player.get("/v1/session").json()["next_commitments"] == {}
        assert counted(service) == before, "looking makes none"

        # A round that is open is finished.
        settled = playing.decide(opened["round_id"], "play").json()
        receipt = playing.proof(opened["round_id"]).json()
        assert problems_of(receipt, commitment=opened["commitment"]["value"]) == []
        assert playing.played(commitment=settled["next_commitment"]["value"])["commitment"]["number"] == 2

        # The others are not dealt from what was shown.
        assert code_of(naming.open(100, commitment=shown[0]["value"])) == "commitment_stale"
        assert naming.played(commitment=naming.next_commitment()["value"])["commitment"]["number"] == 2
        assert silent.played()["commitment"]["number"] == 2
        together([partial(operator.player, player=names[3])] * 25)
        assert series(service, returning) == [(1, True), (2, False)]
        assert returning.played(commitment=returning.next_commitment()["value"])["commitment"]["number"] == 2
        for player, commitment in zip((naming, silent, returning), shown, strict=True):
            receipt = player.proof(commitment["round_id"]).json()
            assert receipt["state"] == "expired"
            assert problems_of(receipt, commitment=commitment["value"]) == []
        assert service.broken_laws() == {}


# The list


def listed(player: Player, query: str = "") -> dict[str, Any]:
    answer = player.get(f"/v1/commitments{query}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_every_commitment_of_a_series_is_listed_with_what_became_of_it(operator: Operator) -> None:
    player = operator.player()
    shown = [player.next_commitment()]
    for _ in range(3):
        shown.append(player.played()["next_commitment"])
    waiting = listed(player)["items"]
    assert [{name: item[name] for name in shown[0]} for item in waiting] == shown[::-1]
    assert [item["state"] for item in waiting] == ["waiting", "settled", "settled", "settled"]
    assert player.open(100).status_code == 201
    assert listed(player)["items"][0]["state"] == "in_play"
    assert all(player.proof(item["round_id"]).status_code == 200 for item in waiting[1:])
    pages, cursor = [], ""
    while True:
        page = listed(player, f"?limit=3{cursor}")
        pages.append([item["number"] for item in page["items"]])
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert pages == [[4, 3, 2], [1]]


def test_commitments_are_listed_for_their_player_and_game(operator: Operator) -> None:
    name = secrets.token_hex(6)
    of_none = operator.send(
        "POST", "/v1/operator/sessions", {"player": name, "currency": "GBP", "mode": "demo"}
    )
    player = Player(operator.base, of_none.json()["token"])
    refused = player.get("/v1/commitments")
    assert (code_of(refused), refused.json()["errors"].keys()) == ("invalid", {"game"})
    games = [listed(player, f"?game={game}")["items"] for game in ("three-card-brag", "double-play-brag")]
    assert [len(items) for items in games] == [1, 1]
    assert games[0][0]["value"] != games[1][0]["value"]
    assert listed(player, "?game=no-such-game") == {"items": [], "next_cursor": None}
    assert code_of(operator.player().get("/v1/commitments?game=double-play-brag")) == "invalid"
    assert listed(operator.player())["items"][0]["value"] not in {items[0]["value"] for items in games}
    for query in ("?cursor=0", "?cursor=x", "?limit=0", "?limit=201", "?mode=real"):
        assert code_of(player.get(f"/v1/commitments{query}&game=three-card-brag")) == "invalid"
