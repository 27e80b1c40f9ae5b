"""Live play is added up from the log: all of it, once, and exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import errors as pg

from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.config import shipped
from casino_brag.db.embedded import Role
from casino_brag.errors import ServiceError
from casino_brag.game.cards import Card
from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.watch import accumulating
from casino_brag.watch.accumulating import File, accumulate, attend
from casino_brag.watch.alerts import Suspension
from casino_brag.watch.evidence import Evidence
from casino_brag.watch.settled import Settled
from tests.inprocess import AppHouse, app_house_in
from tests.running import Operator, together
from tests.watch.played import add_up, buckets, order, recomputed, void

PLAYS = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["real", "real", "demo"]),
        "test": st.booleans(),
        "channel": st.sampled_from([None, "web", "app"]),
        "game": st.sampled_from(["three-card-brag", "double-play-brag"]),
        "ante_minor": st.sampled_from([5, 100, 100, 1_550]),
        "pair_bonus_minor": st.sampled_from([0, 5, 500]),
        "decision": st.sampled_from(["play", "play", "fold"]),
        "voided": st.sampled_from([None, None, "open", "settled"]),
        "added_up_before": st.booleans(),
    }
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("watch")) as house:
        yield house


def play(house: AppHouse, operator: Operator, wanted: dict[str, Any]) -> None:
    named = {name: wanted[name] for name in ("mode", "test", "game")}
    if wanted["channel"] is not None:
        named["channel"] = wanted["channel"]
    player = (
        operator.player(**named)
        if wanted["mode"] == "demo"
        else operator.real_player(100_000, **{name: value for name, value in named.items() if name != "mode"})
    )
    opened = player.open(wanted["ante_minor"], wanted["pair_bonus_minor"])
    assert opened.status_code == 201, opened.text
    round_id = opened.json()["round_id"]
    if wanted["voided"] == "open":
        void(operator, round_id)
        return
    assert player.decide(round_id, wanted["decision"]).status_code == 200
    if wanted["voided"] == "settled":
        if wanted["added_up_before"]:
            add_up(house)
        void(operator, round_id)


def test_nothing_played_adds_up_to_nothing(house: AppHouse) -> None:
    add_up(house)
    with house.connect() as conn:
        assert buckets(conn) == recomputed(conn)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plays=st.lists(PLAYS, max_size=8), leaves=st.sampled_from([1, 7, 20_000]))
def test_any_mix_of_plays_adds_up_to_what_the_rounds_say(
    house: AppHouse, plays: list[dict[str, Any]], leaves: int
) -> None:
    for wanted in plays:
        play(house, house.operator, wanted)
    add_up(house, leaves=leaves)
    with house.connect() as conn:
        assert buckets(conn) == recomputed(conn)


def test_every_kind_of_play_is_kept_apart(house: AppHouse) -> None:
    common = {
        "channel": "web",
        "game": "three-card-brag",
        "ante_minor": 100,
        "pair_bonus_minor": 5,
        "decision": "play",
    }
    for mode, test, voided in (
        ("real", False, None),
        ("real", False, "settled"),
        ("demo", False, None),
        ("real", True, None),
    ):
        wanted = {"mode": mode, "test": test, "voided": voided, "added_up_before": True}
        play(house, house.operator, common | wanted)
    add_up(house)
    with house.connect() as conn:
        found = buckets(conn)
        assert found == recomputed(conn)
        assert {(key[2], key[3]) for key in found} == {
            (wager, kind) for wager in ("main", "pair_bonus") for kind in ("real", "demo", "test", "voided")
        }


def test_what_was_dealt_is_counted_card_by_card(house: AppHouse) -> None:
    add_up(house)
    with house.connect() as conn:
        rounds = conn.execute(
            "SELECT r.paytable_version_id, CASE WHEN r.state = 'voided' THEN 'voided' WHEN s.test THEN 'test'"
            " ELSE r.mode END, r.player_cards || r.dealer_cards, r.settlement"
            " FROM round AS r JOIN session AS s USING (session_id) WHERE r.decision IS NOT NULL"
        ).fetchall()
        dealt = conn.execute(
            "SELECT paytable_version_id, play, sum(rounds)::int FROM rtp_dealt GROUP BY 1, 2"
        ).fetchall()
        counted = conn.execute("SELECT player_categories, dealer_categories, cards FROM rtp_dealt").fetchall()
        numbers = conn.execute("SELECT sum(cardinality(deal_indexes)) FROM rtp_deals").fetchone()
    assert {key: rounds_ for *key_, rounds_ in dealt if (key := tuple(key_)) and rounds_} == dict(
        Counter((version, kind) for version, kind, *_ in rounds)
    )
    for column, name in enumerate(("player_category", "dealer_category")):
        by_category = Counter(settlement[name] for *_, settlement in rounds)
        assert [sum(row[column][place] for row in counted) for place in range(6)] == [
            by_category[category] for category in Category
        ]
    by_place = Counter(
        (place, Card.parse(card).index) for _, _, cards, _ in rounds for place, card in enumerate(cards)
    )
    assert [sum(row[2][place] for row in counted) for place in range(312)] == [
        by_place[divmod(place, 52)] for place in range(312)
    ]
    assert numbers == (len(rounds),)


class Killed(Exception):
    """Stands for whatever ends a worker."""


@pytest.mark.parametrize("at", ["pending", "batch_of", "is_alert"])
def test_whatever_ends_it_nothing_is_lost_or_added_twice(
    house: AppHouse, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    played_once(house)
    order(house)

    def killed(*_: Any, **__: Any) -> Any:
        raise Killed

    with house.connect() as conn:
        before = buckets(conn)
        monkeypatch.setattr(accumulating, at, killed)
        with pytest.raises(Killed):
            attend(house.service.database.connection, house.service.house)
        assert buckets(conn) == before
        monkeypatch.undo()
        add_up(house)
        assert buckets(conn) == recomputed(conn) != before


def test_a_connection_that_is_cut_loses_nothing(house: AppHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    played_once(house)
    order(house)

    def cut(before: Any, now: Any) -> bool:
        with house.connect(Role.SUPERUSER) as superuser:
            superuser.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'casino-brag' AND state = 'idle in transaction'"
            )
        return False

    monkeypatch.setattr(accumulating, "is_alert", cut)
    with pytest.raises(ServiceError):
        attend(house.service.database.connection, house.service.house)
    monkeypatch.undo()
    add_up(house)
    with house.connect() as conn:
        assert buckets(conn) == recomputed(conn)


def test_workers_side_by_side_add_everything_up_once(house: AppHouse) -> None:
    for _ in range(12):
        played_once(house)
    order(house)

    def work() -> None:
        with house.service.database.connection() as conn:
            for _ in range(40):
                accumulate(conn, house.service.house.shelf, Suspension.DRAIN, leaves=3)

    together([work] * 3)
    add_up(house)
    with house.connect() as conn:
        assert buckets(conn) == recomputed(conn)


@pytest.mark.parametrize(
    ("first", "end"), [(0, 1), (1, 0), (-1, 1), ("next", "beyond"), ("next", 0), ("beyond", "beyond")]
)
def test_leaves_that_are_not_the_next_are_refused(house: AppHouse, first: Any, end: Any) -> None:
    add_up(house)
    with house.connect() as conn:
        row = conn.execute("SELECT next_leaf FROM rtp_cursor").fetchone()
        assert row is not None
        known = {"next": row[0], "beyond": row[0] + 1_000}
        with pytest.raises(pg.RestrictViolation, match="are not the next"):
            conn.execute(
                "SELECT rtp_accumulate(%s, %s, '[]', '[]', '[]', dealt_at, dealt_id, '[]') FROM rtp_cursor",
                [known.get(first, first), known.get(end, end)],
            )


def played_once(house: AppHouse) -> None:
    assert house.operator.real_player(10_000).played("play", ante_minor=100)["state"] == "settled"


def test_a_settlement_that_is_ordered_after_midnight_counts_as_the_next_days() -> None:
    paytable = Paytable.load(shipped("paytables") / "three-card-brag.toml")
    version = PaytableVersion(UUID(int=1), paytable.game, 1, paytable.digest, paytable, ())
    midnight = datetime(2026, 11, 30, tzinfo=UTC)

    def settled(seconds: int) -> Settled:
        moment = midnight + timedelta(seconds=seconds)
        wagers = [
            {"spot": "ante", "stake_minor": 100, "payout_minor": 200},
            {"spot": "play", "stake_minor": 100, "payout_minor": 200},
        ]
        player, dealer = ["As", "Kd", "Jc"], ["Qs", "Jd", "9h"]
        return Settled(
            1, "real", moment, moment, 0, "play", player, dealer, wagers, version.version_id, UUID(int=2), "GBP", None
        )  # fmt: skip

    file = File(version, None, Evidence.none(), Evidence.none())
    for batch in ([-2, 1, -1], [-1], [2]):
        file = file.after_settled([settled(seconds) for seconds in batch])
    assert file.begun_at == midnight - timedelta(seconds=2)
    assert (file.now.rounds, file.now.impossible, file.now.bets["main"].day) == (5, 0, 1)
