"""The console's simulations: queued by a form, followed, cancelled, and shown beside the exact figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from casino_brag.catalogue.drafts import create_draft
from casino_brag.catalogue.simulations import (
    QUEUE_MAX,
    ROUNDS_MIN,
    Simulation,
    SimulationState,
    cancel_simulation,
    list_simulations,
    queue_simulation,
    read_simulation,
)
from casino_brag.cli.simulating import play_queue
from casino_brag.db.embedded import Role as DatabaseRole
from casino_brag.staff.people import Role
from tests.colleagues import Colleague, colleague
from tests.inprocess import AppHouse, app_house_in

GAME = "three-card-brag"
PATH = "/simulations"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppHouse]:
    with app_house_in(tmp_path_factory.mktemp("console-simulations")) as started:
        yield started


@pytest.fixture(scope="module")
def editor(house: AppHouse) -> Colleague:
    return colleague(house, Role.EDITOR).signed_in()


@pytest.fixture(autouse=True)
def nothing_waits(house: AppHouse, editor: Colleague) -> Iterator[None]:
    yield
    with house.connect() as conn:
        for found in list_simulations(conn, limit=200):
            if not found.state.is_over:
                cancel_simulation(conn, editor.person, found.simulation_id)


def queued(house: AppHouse, editor: Colleague, **wanted: Any) -> Simulation:
    with house.connect() as conn:
        return queue_simulation(conn, editor.person, GAME, **{"rounds": ROUNDS_MIN} | wanted)


def played(house: AppHouse, editor: Colleague, **wanted: Any) -> Simulation:
    found = queued(house, editor, **wanted)
    with house.connect(DatabaseRole.APP) as conn:
        play_queue(conn)
    return read(house, found.simulation_id)


def read(house: AppHouse, simulation_id: UUID) -> Simulation:
    with house.connect() as conn:
        return read_simulation(conn, simulation_id)


def typed(**others: str) -> dict[str, str]:
    return {"what": f"{GAME} version 1", "rounds": "1e6", "strategy": "max_expectation"} | others


def test_what_the_form_says_is_queued(house: AppHouse, editor: Colleague) -> None:
    answer = editor.post(
        PATH, **typed(rounds="10,000,000", strategy="fold_below", below="Q-6-4", seed="5a" * 48)
    )
    assert answer.status_code == 303
    found = read(house, UUID(answer.headers["Location"].rpartition("/")[2]))
    assert (found.game, found.version, found.rounds) == (GAME, 1, 10_000_000)
    assert (found.strategy, found.seed, found.queued_by) == ("fold_below:Q-6-4", b"\x5a" * 48, editor.name)


def test_a_draft_is_queued_by_a_link_from_it(house: AppHouse, editor: Colleague) -> None:
    with house.connect() as conn:
        number = create_draft(conn, editor.person, GAME, from_version=1).number
    shown = editor.get(f"{PATH}?game={GAME}&draft={number}").text
    assert re.search(rf'<option value="{GAME} draft {number}" selected>', shown)
    answer = editor.post(PATH, **typed(what=f"{GAME} draft {number}"))
    assert read(house, UUID(answer.headers["Location"].rpartition("/")[2])).draft == number


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("what", ""),
        ("what", f"{GAME} version 99"),
        ("what", f"{GAME} draft 99"),
        ("what", "<script>"),
        ("rounds", "many"),
        ("rounds", "99999"),
        ("rounds", "1e11"),
        ("rounds", "1e99"),
        ("rounds", "-5"),
        ("strategy", "best"),
        ("seed", "xyz"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_typed_is_lost(
    house: AppHouse, editor: Colleague, field: str, wrong: str
) -> None:
    answer = editor.post(PATH, **typed(below="K-7-2") | {field: wrong})
    assert answer.status_code == 422
    assert f'id="error-{field}"' in answer.text
    assert 'value="K-7-2"' in answer.text
    assert "<script>alert" not in answer.text
    assert "&lt;script&gt;" in answer.text or wrong != "<script>"
    with house.connect() as conn:
        assert not [found for found in list_simulations(conn) if not found.state.is_over]


def test_the_lowest_hand_is_asked_for_where_it_is_needed(editor: Colleague) -> None:
    answer = editor.post(PATH, **typed(strategy="fold_below", below="nothing"))
    assert answer.status_code == 422
    assert 'id="error-below"' in answer.text


def test_a_full_queue_is_told_and_what_was_typed_is_kept(house: AppHouse, editor: Colleague) -> None:
    for _ in range(QUEUE_MAX):
        queued(house, editor)
    answer = editor.post(PATH, **typed(rounds="1234567"))
    assert answer.status_code == 429
    assert 'value="1234567"' in answer.text
    assert f"{QUEUE_MAX} simulations wait already" in answer.text


def test_the_list_shows_how_far_each_is_and_refreshes_while_something_moves(
    house: AppHouse, editor: Colleague
) -> None:
    done = played(house, editor)
    at_rest = editor.get(f"{PATH}/list").text
    assert f"/console/simulations/{done.simulation_id}" in at_rest
    assert "hx-trigger" not in at_rest
    waiting = queued(house, editor)
    moving = editor.get(f"{PATH}/list").text
    assert moving.index(str(waiting.simulation_id)) < moving.index(str(done.simulation_id))
    assert "hx-trigger" in moving


def test_one_that_is_done_shows_its_verdict_its_figures_and_how_they_settled(
    house: AppHouse, editor: Colleague
) -> None:
    done = played(house, editor, rounds=500_000)
    shown = editor.get(f"{PATH}/{done.simulation_id}").text
    assert done.result is not None
    figures = done.result["figures"]
    for name in ("main_rtp", "main_house_edge", "pair_bonus_rtp", "total_rtp"):
        assert f"{100 * figures[name]['simulated']:.5f} %" in shown
        assert f"exact {100 * figures[name]['expected']:.6f} %" in shown
    assert done.conclusion is not None
    assert f'badge-{done.conclusion}">' in shown
    assert shown.count('<svg class="plot"') == 3
    assert shown.count('<tr><th scope="row">400 k</th>') == 3
    assert done.seed.hex() in shown
    assert "Cancel it" not in shown
    assert "hx-trigger" not in editor.get(f"{PATH}/{done.simulation_id}/now").text


def test_its_plot_is_drawn_from_numbers_in_percent(house: AppHouse, editor: Colleague) -> None:
    done = played(house, editor, rounds=300_000)
    told = editor.get(f"{PATH}/{done.simulation_id}/course").json()
    assert told["rounds"] == [100_000, 200_000, 300_000]
    assert told["figures"].keys() == {"main_rtp", "pair_bonus_rtp", "total_rtp"}
    main = told["figures"]["main_rtp"]
    assert main["expected"] == pytest.approx(97.99613840936029)
    assert len(main["simulated"]) == len(main["half_width"]) == 3
    assert main["half_width"] == sorted(main["half_width"], reverse=True)


def test_one_that_waits_says_so_and_is_cancelled_by_its_button(house: AppHouse, editor: Colleague) -> None:
    waiting = queued(house, editor)
    path = f"{PATH}/{waiting.simulation_id}"
    shown = editor.get(path).text
    assert "It waits for its turn" in shown
    assert "No rounds have been played yet." in shown
    assert editor.get(f"{path}/course").json() == {"rounds": [], "figures": {}}
    assert editor.post(f"{path}/cancel", of=path).status_code == 303
    assert read(house, waiting.simulation_id).state is SimulationState.CANCELLED
    assert "The simulation was cancelled." in editor.get(path).text


def test_what_has_ended_meanwhile_is_not_cancelled_and_that_is_said(
    house: AppHouse, editor: Colleague
) -> None:
    waiting = queued(house, editor)
    path = f"{PATH}/{waiting.simulation_id}"
    form = re.search(r'name="_csrf" value="([0-9a-f]+)"', editor.get(path).text)
    assert form
    with house.connect(DatabaseRole.APP) as conn:
        play_queue(conn)
    assert editor.send(f"{path}/cancel", _csrf=form[1]).status_code == 303
    assert read(house, waiting.simulation_id).state is SimulationState.DONE
    assert "has ended already" in editor.get(path).text


@pytest.mark.parametrize("role", list(Role))
def test_anybody_of_staff_may(house: AppHouse, role: Role) -> None:
    person = colleague(house, role).signed_in()
    assert person.get(PATH).status_code == 200
    assert person.post(PATH, **typed()).status_code == 303


def test_without_a_form_of_this_session_nothing_is_queued(house: AppHouse, editor: Colleague) -> None:
    assert editor.send(PATH, **typed()).status_code == 403
    assert editor.send(PATH, _csrf="00" * 32, **typed()).status_code == 403
    with house.connect() as conn:
        assert not [found for found in list_simulations(conn) if not found.state.is_over]


def test_an_unknown_one_is_not_found(editor: Colleague) -> None:
    for path in (f"{PATH}/{uuid4()}", f"{PATH}/{uuid4()}/now", f"{PATH}/{uuid4()}/course", f"{PATH}/nothing"):
        assert editor.get(path).status_code == 404
