"""Paytable files that will not do: the start says where and why, the game is closed, and only that game."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from casino_brag.config import shipped
from tests.running import Operator, RunningService, code_of

BRAG, DOUBLE = "three-card-brag", "double-play-brag"


def edit(file: Path, old: str, new: str) -> int:
    """Replaces a text that stands in a file once; the number of its line."""
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


# Each breaks a paytable, and returns what is to be said behind the file's name.


def remove(file: Path) -> str:
    file.unlink()
    return ": cannot be read: No such file"


def empty(file: Path) -> str:
    file.write_text("")
    return ": the file is empty"


def cut_a_text_short(file: Path) -> str:
    line = edit(file, 'title = "3 Card Brag" ', 'title = "3 Card Brag ')
    return f":{line}: title: not valid TOML"


def fill_with_bytes(file: Path) -> str:
    file.write_bytes(b"\xff\xfe\x00\x01" * 100)
    return ":1: this line is not UTF-8"


def misspell_a_key(file: Path) -> str:
    line = edit(file, "paid = ", "payed = ")
    return f":{line}: ante_bonus.payed: "


def favour_players(file: Path) -> str:
    edit(file, "{ run = 1, running_flush = 4, prial = 5 }", "{ run = 20, prial = 50 }")
    line = edit(file, "pays = { high_card", "pays = { high_card")
    return f":{line}: play.pays: "


def name_another_game(file: Path) -> str:
    line = edit(file, f'game = "{file.stem}"', 'game = "another-brag"')
    return f":{line}: game: "


BREAKS: dict[str, Callable[[Path], str]] = {
    f"brag-{break_.__name__.replace('_', '-')}": break_
    for break_ in (
        remove,
        empty,
        cut_a_text_short,
        fill_with_bytes,
        misspell_a_key,
        favour_players,
        name_another_game,
    )
}


@dataclass
class Broken:
    """A service whose games were open until their files were broken, each in its own way."""

    service: RunningService
    operator: Operator
    paytables: Path
    expected: dict[str, str]
    printed: str


def make_whole(paytables: Path) -> None:
    """The shipped paytables, and a copy of one for each way to break it."""
    shutil.copytree(shipped("paytables"), paytables)
    text = (paytables / f"{BRAG}.toml").read_text()
    for game in BREAKS:
        (paytables / f"{game}.toml").write_text(text.replace(f'game = "{BRAG}"', f'game = "{game}"'))


def restart(service: RunningService) -> str:
    """Starts the service anew; what it printed meanwhile."""
    before = len(service.log())
    assert service.stop() == 0
    service.launch()
    return service.log()[before:]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broken]:
    directory = tmp_path_factory.mktemp("broken")
    paytables = directory / "paytables"
    make_whole(paytables)
    with RunningService.start(directory, workers=2, paytables=paytables) as service:
        assert "is not open" not in service.log()
        operator = service.operator()
        expected = {game: break_(paytables / f"{game}.toml") for game, break_ in BREAKS.items()}
        yield Broken(service, operator, paytables, expected, restart(service))


@pytest.mark.parametrize("game", BREAKS)
def test_a_paytable_that_will_not_do_closes_its_game(broken: Broken, game: str) -> None:
    assert f"{game} is not open:\n" in broken.printed
    file = broken.paytables / f"{game}.toml"
    assert f"\n  {file}{broken.expected[game]}" in broken.printed
    refused = broken.operator.player(game=game).open(100)
    assert (refused.status_code, code_of(refused)) == (409, "game_unavailable")


@pytest.mark.parametrize("game", [BRAG, DOUBLE])
def test_the_other_games_stay_open(broken: Broken, game: str) -> None:
    assert f"{game} is not open" not in broken.printed
    assert broken.printed.count(" is not open:") == len(BREAKS)
    assert "Traceback" not in broken.printed
    assert requests.get(broken.service.base + "/readyz", timeout=10).status_code == 200
    player = broken.operator.player(game=game)
    assert player.decide(player.open(100).json()["round_id"], "play").status_code == 200


def test_a_closed_game_is_shown_as_closed(broken: Broken) -> None:
    games = requests.get(broken.service.base + "/v1/games", timeout=10).json()["items"]
    states = {game["game"]: game["state"] for game in games}
    assert states == dict.fromkeys(BREAKS, "disabled") | {BRAG: "enabled", DOUBLE: "enabled"}


def test_mended_games_open_again_and_without_any_nothing_is_dealt(broken: Broken) -> None:
    shutil.rmtree(broken.paytables)
    make_whole(broken.paytables)
    assert "is not open" not in restart(broken.service)
    games = [BRAG, DOUBLE, *BREAKS]
    players = [broken.operator.player(game=game) for game in games]
    waiting = [player.open(100).json() for player in players]

    shutil.rmtree(broken.paytables)
    broken.paytables.mkdir()
    printed = restart(broken.service)
    assert [game for game in games if f"{game} is not open:" not in printed] == []
    assert "No game is open" in printed
    base = broken.service.base
    ready = requests.get(base + "/readyz", timeout=10)
    assert (ready.status_code, ready.json()["obstacles"]) == (503, ["No game is enabled."])
    assert requests.get(base + "/healthz", timeout=10).status_code == 200
    for player, round_ in zip(players, waiting, strict=True):
        assert player.again().decide(round_["round_id"], "play").status_code == 200
        assert code_of(player.again().open(100)) == "game_unavailable"
    assert broken.service.broken_laws() == {}


def test_a_first_start_without_paytables_says_where_it_looked(tmp_path: Path) -> None:
    empty = tmp_path / "paytables"
    empty.mkdir()
    with RunningService.start(tmp_path, workers=1, paytables=empty) as service:
        assert "No game is open" in service.log()
        assert str(empty) in service.log()
        ready = requests.get(service.base + "/readyz", timeout=10)
        assert (ready.status_code, ready.json()["obstacles"]) == (503, ["No game is enabled."])
        assert requests.get(service.base + "/v1/games", timeout=10).json()["items"] == []


def test_a_directory_that_is_not_there_closes_no_game(service: RunningService, tmp_path: Path) -> None:
    """It is a slip of the pen far more often than a wish to close everything."""
    nowhere = tmp_path / "no-such-directory"
    with pytest.raises(subprocess.CalledProcessError) as refused:
        service.command("paytables", "publish", "--paytables", str(nowhere))
    assert str(nowhere) in refused.value.stderr
    games = requests.get(service.base + "/v1/games", timeout=10).json()["items"]
    assert {game["state"] for game in games} == {"enabled"}
