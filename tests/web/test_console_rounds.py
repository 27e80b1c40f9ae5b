"""The console's rounds: found, replayed card by card, proven, and voided by two persons."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from html import unescape
from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest

from casino_brag.catalogue.operators import Funding, set_wallet
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.rounds.voiding import Voiding, VoidPolicy, void_round
from casino_brag.staff.people import Role
from casino_brag.web.console.looks import card_name
from casino_brag.web.console.pages import rounds
from tests.colleagues import Colleague, colleague
from tests.inprocess import AppHouse, app_house_in, deal_next
from tests.running import Player
from tests.sandbox_wallet import sandbox_wallet
from tests.web.pages import Page, faults

GAME = "three-card-brag"
PRIAL, QUEEN_HIGH = "3c 3d 3h", "Qc 9d 4h"
ABSENT = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("console-rounds")) as started:
        yield started


@pytest.fixture(scope="module")
def auditor(house: AppHouse) -> Colleague:
    return colleague(house, Role.AUDITOR).signed_in()


@pytest.fixture(scope="module")
def operations(house: AppHouse) -> Colleague:
    return colleague(house, Role.OPERATIONS).signed_in()


@pytest.fixture
def player(house: AppHouse) -> Player:
    return house.operator.real_player(1_000_000)


def ids(page: str) -> list[str]:
    return re.findall(r'href="/console/rounds/([0-9a-f-]{36})"', page)


def opened(player: Player) -> str:
    return str(player.open(100, 50).json()["round_id"])


def standings(page: str) -> dict[str, str]:
    """How each part that was derived anew stands, by its name."""
    part = page.partition('id="checks"')[2].partition("</section>")[0]
    return dict(re.findall(r'<th scope="row">([^<]+)<.*?badge-([a-z_]+)"', part, re.S))


class TestPermissions:
    @pytest.mark.parametrize("role", Role)
    @pytest.mark.parametrize("path", ["", ".csv", "/{}", "/{}/proof.json", "/{}/void"])
    def test_rounds_are_for_auditors_and_operations_and_voids_for_operations(
        self, house: AppHouse, player: Player, role: Role, path: str
    ) -> None:
        known = player.played("fold")["round_id"]
        allowed = {Role.OPERATIONS} if "void" in path else {Role.AUDITOR, Role.OPERATIONS}
        answer = colleague(house, role).signed_in().get("/rounds" + path.format(known))
        assert (answer.status_code == 200) == (role in allowed)
        assert answer.status_code in (200, 403)

    @pytest.mark.parametrize("path", ["/{}", "/{}/proof.json", "/{}/void"])
    def test_a_round_that_there_is_not_is_not_found(self, operations: Colleague, path: str) -> None:
        assert operations.get("/rounds" + path.format(ABSENT)).status_code == 404


class TestSearch:
    def test_the_list_is_sound_and_newest_first(self, auditor: Colleague, player: Player) -> None:
        first, second = player.played("fold")["round_id"], player.played("fold")["round_id"]
        page = auditor.get("/rounds").text
        assert faults(page) == []
        assert ids(page)[:2] == [second, first]

    def test_each_filter_finds_what_it_names(
        self, house: AppHouse, auditor: Colleague, player: Player, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        operator = house.new_operator()
        other = operator.real_player(1_000_000)
        deal_next(monkeypatch, PRIAL, QUEEN_HIGH)
        won = other.played("play")["round_id"]
        waiting = opened(other)
        folded = player.played("fold")["round_id"]
        with house.connect() as conn:
            row = conn.execute(
                "SELECT p.reference FROM round AS r JOIN player AS p USING (player_id) WHERE r.round_id = %s",
                [won],
            ).fetchone()
        assert row is not None
        name = row[0]
        assert ids(auditor.get(f"/rounds?operator={operator.name}").text) == [waiting, won]
        assert ids(auditor.get(f"/rounds?player={name}").text) == [waiting, won]
        assert ids(auditor.get(f"/rounds?player={name}&operator={operator.name}&result=win").text) == [won]
        assert ids(auditor.get(f"/rounds?operator={operator.name}&state=awaiting_decision").text) == [waiting]
        assert folded in ids(auditor.get(f"/rounds?game={GAME}&version=1").text)
        assert ids(auditor.get("/rounds?version=77").text) == []
        assert ids(auditor.get("/rounds?until=2020-01-01").text) == []
        assert "No activity" in auditor.get("/rounds?since=2999-01-01").text

    def test_demonstration_and_test_sessions_are_listed_where_they_are_wanted(
        self, house: AppHouse, auditor: Colleague
    ) -> None:
        demo = house.operator.player().played("fold")["round_id"]
        test = house.operator.real_player(10_000, test=True).played("fold")["round_id"]
        assert demo not in ids(auditor.get("/rounds").text)
        assert demo in ids(auditor.get("/rounds?mode=demo").text)
        assert test not in ids(auditor.get("/rounds").text)
        assert test in ids(auditor.get("/rounds?test=yes").text)

    def test_demonstrations_that_are_left_out_are_said_to_be_and_led_to(
        self, house: AppHouse, auditor: Colleague
    ) -> None:
        operator = house.new_operator()
        demo = operator.player().played("fold")["round_id"]
        page = auditor.get(f"/rounds?operator={operator.name}").text
        assert "One demonstration round is left out" in page
        led = re.search(r'href="/console(/rounds\?[^"]*mode=demo)"', page)
        assert led
        assert ids(auditor.get(unescape(led[1])).text) == [demo]

    def test_an_id_opens_its_round(self, auditor: Colleague, player: Player) -> None:
        known = player.played("fold")["round_id"]
        answer = auditor.get(f"/rounds?round=%20{known}", allow_redirects=False)
        assert answer.headers["Location"] == f"/console/rounds/{known}"

    @pytest.mark.parametrize(
        ("field", "typed"),
        [
            ("round", "twelve"),
            ("round", ABSENT),
            ("operator", "nobody"),
            ("version", "one"),
            ("version", "-1"),
            ("state", "asleep"),
            ("result", "luck"),
            ("mode", "monopoly"),
            ("since", "yesterday"),
            ("until", "9999-12-31"),
        ],
    )
    def test_what_makes_no_sense_is_told_at_its_field_and_kept(
        self, auditor: Colleague, field: str, typed: str
    ) -> None:
        page = auditor.get("/rounds", params={field: typed}).text
        assert f'id="error-{field}"' in page
        assert f'value="{typed}"' in page
        assert faults(page) == []

    def test_markup_that_is_typed_is_shown_and_does_nothing(self, auditor: Colleague) -> None:
        page = auditor.get("/rounds", params={"player": '"><script>alert(1)</script>'}).text
        assert "<script>alert" not in page
        assert Page(page).fields["player"] == '"><script>alert(1)</script>'

    def test_older_rounds_are_a_link_away(
        self, house: AppHouse, auditor: Colleague, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        operator = house.new_operator()
        another = operator.real_player(100_000)
        known = [another.played("fold")["round_id"] for _ in range(5)]
        monkeypatch.setattr(rounds, "SHOWN", 2)
        seen: list[str] = []
        path = f"/rounds?operator={operator.name}"
        while path:
            page = auditor.get(path).text
            seen += ids(page)
            further = re.search(r'rel="next" href="/console([^"]+)"', page)
            path = further[1].replace("&amp;", "&") if further else ""
        assert seen == known[::-1]

    def test_the_table_has_the_rounds_that_were_asked_for_and_whose_they_are(
        self, house: AppHouse, auditor: Colleague
    ) -> None:
        operator = house.new_operator()
        known = operator.real_player(100_000).played("fold")["round_id"]
        answer = auditor.get(f"/rounds.csv?operator={operator.name}")
        (row,) = csv.DictReader(StringIO(answer.text, newline=""))
        assert (row["round_id"], row["operator"]) == (known, operator.name)
        assert auditor.get("/rounds.csv?operator=nobody").status_code == 422


class TestARound:
    def test_a_played_round_is_told_card_by_card(
        self, auditor: Colleague, player: Player, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deal_next(monkeypatch, PRIAL, QUEEN_HIGH)
        known = player.played("play", ante_minor=100, pair_bonus_minor=50)["round_id"]
        page = auditor.get(f"/rounds/{known}").text
        assert faults(page) == []
        for told in (
            "3 of clubs",
            "queen of clubs",
            "Prial",
            "qualifies",
            "Beat dealer",
            "40 to 1",
            "Paying category",
        ):
            assert told in page, told
        assert "The better one: <strong>play</strong>" in page
        assert "20.50 GBP" in page, "the Pair Bonus pays 40 to 1, and its stake comes back"

    def test_a_decision_that_costs_is_told_with_what_it_costs(
        self, auditor: Colleague, player: Player, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deal_next(monkeypatch, "2c 4d 6h", "Qc 9d 4h")
        page = auditor.get(f"/rounds/{player.played('play')['round_id']}").text
        assert "The better one: <strong>fold</strong>" in page
        assert "The choice cost" in page

    def test_its_records_are_derived_anew_and_agree(self, auditor: Colleague, player: Player) -> None:
        page = auditor.get(f"/rounds/{player.played('play')['round_id']}").text
        assert standings(page) == dict.fromkeys(
            ("Rules", "Commitment", "Deal", "Settlement", "Money", "Audit log"), "agrees"
        )

    @pytest.mark.parametrize(
        ("change", "part"),
        [
            (
                "UPDATE round SET total_payout_minor = total_payout_minor + 1 WHERE round_id = %s",
                "Settlement",
            ),
            ("UPDATE round SET dealer_cards = '{2c,2d,2h}' WHERE round_id = %s", "Deal"),
            ("UPDATE commitment SET value = sha256('') WHERE round_id = %s", "Commitment"),
            ("UPDATE transfer SET amount_minor = 7 WHERE cause_id = %s AND kind = 'ante'", "Money"),
            (
                "UPDATE audit_entry SET payload = '{}' WHERE round_id = %s AND type = 'round.opened'",
                "Audit log",
            ),
        ],
    )
    def test_what_was_altered_disagrees_where_it_was(
        self, house: AppHouse, auditor: Colleague, player: Player, change: str, part: str
    ) -> None:
        known = player.played("fold")["round_id"]
        with house.connect(DatabaseRole.SUPERUSER) as conn, conn.transaction():
            conn.execute(
                "ALTER TABLE commitment DROP CONSTRAINT IF EXISTS commitment_reveals_what_was_committed"
            )
            conn.execute(f"ALTER TABLE {change.split()[1]} DISABLE TRIGGER USER")
            assert conn.execute(change, [known]).rowcount == 1
        page = auditor.get(f"/rounds/{known}").text
        assert standings(page)[part] == "disagrees"
        assert standings(page)["Rules"] == "agrees"
        assert faults(page) == []

    def test_an_open_round_shows_neither_what_the_dealer_holds_nor_the_seed(
        self, house: AppHouse, auditor: Colleague, operations: Colleague, player: Player
    ) -> None:
        known = opened(player)
        pages = [who.get(f"/rounds/{known}").text for who in (auditor, operations)]
        pages += [auditor.get(path).text for path in ("/rounds?state=awaiting_decision", "/rounds.csv")]
        pages += [operations.get(f"/rounds/{known}/void").text]
        assert auditor.get(f"/rounds/{known}/proof.json").status_code == 409
        proof = player.decide(known, "fold").json()
        with house.connect() as conn:
            row = conn.execute(
                "SELECT r.player_cards, r.dealer_cards, c.seed, c.sealed_seed, r.sealed_deal FROM round AS r"
                " JOIN commitment AS c USING (round_id) WHERE r.round_id = %s",
                [known],
            ).fetchone()
        assert row is not None
        _, dealer, seed, *sealed = row
        settled = auditor.get(f"/rounds/{known}").text
        names = [card_name(card) for card in dealer]
        assert all(name in settled for name in names)
        assert seed.hex() in settled
        for page in pages:
            assert not any(value.hex() in page for value in (seed, *map(bytes, sealed)))
            assert str(proof["proof"]["deal_index"]) not in page
        for page in pages[:2]:
            assert not any(name in page for name in names)
            assert standings(page)["Commitment"] == standings(page)["Deal"] == "hidden"
            assert "three cards face down" in page

    def test_an_open_round_says_what_is_held_and_what_follows_if_nothing_happens(
        self, auditor: Colleague, player: Player
    ) -> None:
        page = auditor.get(f"/rounds/{opened(player)}").text
        assert "Unfinished since" in page
        assert "1.50 GBP" in page
        assert "If nothing happens" in page

    def test_what_an_operators_wallet_was_asked_is_shown(
        self, house: AppHouse, auditor: Colleague, tmp_path: Path
    ) -> None:
        operator = house.new_operator()
        signs = (operator.key_id, operator.secret)
        with sandbox_wallet(tmp_path, signs, options=("--fund", "100000")) as wallet:
            with house.connect() as conn:
                set_wallet(conn, operator.name, wallet.url, Funding.TWO_DEBITS, actor="system:tests")
            known = operator.player(player="ann", mode="real").played("play", ante_minor=100)["round_id"]
        page = auditor.get(f"/rounds/{known}").text
        assert faults(page) == []
        assert "What the operator's wallet was asked" in page
        for told in ("Stake, ante", "Stake, play", "Settlement, payout"):
            assert told in page, told
        assert set(standings(page).values()) == {"agrees"}

    def test_its_proof_is_a_file_as_its_player_gets_it(self, auditor: Colleague, player: Player) -> None:
        known = player.played("fold")["round_id"]
        answer = auditor.get(f"/rounds/{known}/proof.json")
        assert "attachment" in answer.headers["Content-Disposition"]
        assert json.loads(answer.text) == player.proof(known).json()

    def test_its_entries_are_links_for_those_who_may_follow_them(
        self, auditor: Colleague, operations: Colleague, player: Player
    ) -> None:
        known = player.played("fold")["round_id"]
        for who, linked in ((auditor, True), (operations, False)):
            page = who.get(f"/rounds/{known}").text
            assert "<code>round.settled</code>" in page
            assert ("/console/audit/entries/" in page) is linked

    def test_a_round_voided_before_its_decision_says_why_and_shows_what_it_revealed(
        self, house: AppHouse, auditor: Colleague, player: Player
    ) -> None:
        known = opened(player)
        with house.connect() as conn:
            row = conn.execute("SELECT operator_id, now() FROM round WHERE round_id = %s", [known]).fetchone()
            assert row is not None
            said = Voiding("<b>A fault</b>", "staff:a", "staff:b", VoidPolicy.REFUND, row[1])
            void_round(conn, house.service.house, row[0], UUID(known), said)
        page = auditor.get(f"/rounds/{known}").text
        assert faults(page) == []
        assert "&lt;b&gt;A fault&lt;/b&gt;" in page
        assert "the void revealed it" in page
        assert standings(page) == {
            "Rules": "agrees",
            "Commitment": "agrees",
            "Deal": "agrees",
            "Settlement": "not_derived",
            "Money": "agrees",
            "Audit log": "agrees",
        }


class TestVoiding:
    def test_one_proposes_another_approves_and_both_are_on_record(
        self, house: AppHouse, operations: Colleague, player: Player
    ) -> None:
        known = opened(player)
        answer = operations.post(
            f"/rounds/{known}/void", policy="refund", reason="The table lost power.", code=operations.code()
        )
        assert answer.headers["Location"] == f"/console/rounds/{known}", answer.text
        page = operations.get(f"/rounds/{known}").text
        assert faults(page) == []
        assert "waits for an approver" in page
        assert "Propose a void" not in page
        proposal = re.search(r"/console/proposals/([0-9a-f-]{36})", page)
        assert proposal
        approver = colleague(house, Role.APPROVER).signed_in()
        decided = approver.post(
            f"/proposals/{proposal[1]}/approve", of=f"/proposals/{proposal[1]}", reason=""
        )
        assert decided.status_code == 303, decided.text
        with house.connect() as conn:
            row = conn.execute(
                "SELECT r.state, e.actor, e.authoriser, e.reason FROM round_record AS r JOIN audit_entry AS e"
                " USING (round_id) WHERE round_id = %s AND e.type = 'round.voided'",
                [known],
            ).fetchone()
        named = (f"staff:{operations.name}", f"staff:{approver.name}", "The table lost power.")
        assert row == ("voided", *named)
        page = operations.get(f"/rounds/{known}").text
        assert all(name in page for name in named)
        assert faults(page) == []

    def test_what_is_wrong_is_told_at_its_field_and_nothing_is_lost(
        self, operations: Colleague, player: Player
    ) -> None:
        known = opened(player)
        answer = operations.post(f"/rounds/{known}/void", policy="all of it", reason=" ")
        assert answer.status_code == 422
        assert 'id="error-policy"' in answer.text
        assert 'id="error-reason"' in answer.text
        assert faults(answer.text) == []
        long = "<i>long</i> " * 60
        answer = operations.post(f"/rounds/{known}/void", policy="better", reason=long)
        assert "&lt;i&gt;long&lt;/i&gt; " * 60 in answer.text
        assert '<option value="better" selected>' in answer.text

    def test_the_same_is_not_proposed_twice(self, operations: Colleague, player: Player) -> None:
        known = player.played("fold")["round_id"]
        typed = {"policy": "refund", "reason": "A complaint was upheld."}
        assert operations.post(f"/rounds/{known}/void", **typed).status_code == 303
        again = operations.post(f"/rounds/{known}/void", **typed)
        assert again.status_code == 409
        assert "A complaint was upheld." in again.text

    def test_without_a_recent_code_it_asks_for_one(self, house: AppHouse, player: Player) -> None:
        known = opened(player)
        stale = colleague(house, Role.OPERATIONS).signed_in()
        with house.connect() as conn:
            conn.execute(
                "UPDATE staff_session SET proved_at = now() - interval '1 hour' WHERE staff_id = %s",
                [stale.staff_id],
            )
        typed = {"policy": "refund", "reason": "Why not."}
        refused = stale.post(f"/rounds/{known}/void", **typed)
        assert refused.status_code == 422
        assert 'id="error-code"' in refused.text
        assert stale.post(f"/rounds/{known}/void", **typed, code=stale.code()).status_code == 303
