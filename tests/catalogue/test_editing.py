"""The file of a paytable is changed field by field, and whatever else it says stays as it was."""

from __future__ import annotations

import re
from difflib import unified_diff
from json import dumps
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casino_brag.catalogue.editing import fields_of, text_of, with_fields
from casino_brag.catalogue.guards import check_text
from casino_brag.config import shipped
from casino_brag.errors import Code, ServiceError
from casino_brag.game.paytable import Paytable
from casino_brag.game.paytable_file import LINE_LENGTH_MAX, PaytableError
from tests.paytables import paytables

FILES = {file.stem: file.read_text() for file in sorted(shipped("paytables").glob("*.toml"))}
FIELDS = [(game, key) for game, text in FILES.items() for key in fields_of(text)]

every_game = pytest.mark.parametrize("game", FILES)


def changed_lines(before: str, after: str) -> list[str]:
    lines = unified_diff(before.split("\n"), after.split("\n"), n=0, lineterm="")
    return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


def flat(document: Any, key: str = "") -> dict[str, str]:
    if isinstance(document, dict):
        return {
            k: v
            for name, inner in document.items()
            for k, v in flat(inner, f"{key}.{name}".strip(".")).items()
        }
    if isinstance(document, list) and isinstance(document[0], dict):
        return {k: v for n, inner in enumerate(document) for k, v in flat(inner, f"{key}[{n}]").items()}
    return {key: ", ".join(document) if isinstance(document, list) else str(document)}


@every_game
def test_fields_are_named_as_the_problems_of_a_paytable_name_them(game: str) -> None:
    assert fields_of(FILES[game]) == flat(Paytable.parse(FILES[game], game=game).document())


@every_game
def test_a_text_without_changes_is_the_same_text(game: str) -> None:
    text = FILES[game]
    assert with_fields(text, {}) is text
    assert with_fields(text, fields_of(text)) == text


@pytest.mark.parametrize("game", FILES)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_field_that_is_changed_changes_its_line_and_no_other(game: str, data: st.DataObject) -> None:
    text = FILES[game]
    key = data.draw(st.sampled_from(sorted(fields_of(text))))
    typed = data.draw(st.one_of(st.integers(0, 10**6).map(str), st.text(min_size=1)))
    after = with_fields(text, {key: typed})
    if not typed.strip() or typed.strip() == fields_of(text)[key]:
        return
    removed, added = changed_lines(text, after)
    assert (removed[0], added[0]) == ("-", "+")
    assert added.endswith(removed.partition("#")[2])
    assert fields_of(after) | {key: ""} == fields_of(text) | {key: ""}
    assert with_fields(after, {key: fields_of(text)[key]}) == text


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.sampled_from([key for game, key in FIELDS if game == "three-card-brag"]), st.text())
)
def test_whatever_is_typed_into_a_form_can_be_read_back(typed: dict[str, str]) -> None:
    after = with_fields(FILES["three-card-brag"], typed)
    read = fields_of(after)
    for key, value in typed.items():
        if key != "ranking.categories":
            assert read.get(key, "") == value.strip()
    check_text("three-card-brag", after)


@settings(max_examples=40, deadline=None)
@given(paytables())
def test_a_paytable_that_never_had_a_file_is_written_as_one(paytable: Paytable) -> None:
    assert Paytable.parse(text_of(paytable), game=paytable.game) == paytable


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"pair_bonus.pays.flush": "3"}, 2),
        ({"rounding": "down"}, 1),
        ({"ranking.best_prial": ""}, 1),
        ({"limits.GBP.payout_max": " "}, 1),
        ({"pair_bonus.pays.pair": ""}, 2),
        ({"ante_bonus": ""}, 3),
        (
            {
                "ante_bonus.paid": "",
                "ante_bonus.pays.run": "",
                "ante_bonus.pays.running_flush": "",
                "ante_bonus.pays.prial": "",
            },
            3,
        ),
        (
            {
                "limits.SEK.ante.min": "5",
                "limits.SEK.ante.max": "500",
                "limits.SEK.ante.step": "5",
                "limits.SEK.pair_bonus.min": "5",
                "limits.SEK.pair_bonus.max": "50",
                "limits.SEK.pair_bonus.step": "5",
                "limits.SEK.payout_max": "50000",
            },
            4,
        ),
        (
            {
                "claims[1].figure": "rtp",
                "claims[1].wager": "pair_bonus",
                "claims[1].value": "97.86 %",
                "claims[1].source": "a leaflet",
            },
            5,
        ),
        ({"claims[0]": ""}, 5),
        ({"dealer.qualifies_with": "K", "title": "Brag"}, 4),
        ({"ranking.categories": "high_card, pair, run, flush, running_flush, prial"}, 2),
        (
            {
                "pair_bonus.pays.flush": "7/2",
                "limits.GBP.pair_bonus.min": "10",
                "limits.GBP.pair_bonus.step": "10",
                "limits.EUR": "",
                "limits.USD": "",
                "limits.JPY": "",
                "limits.KWD": "",
                "limits.XBT": "",
            },
            None,
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_a_form_can_change_is_a_paytable_still(changes: dict[str, str], lines: int | None) -> None:
    text = FILES["three-card-brag"]
    after = with_fields(text, changes)
    checked = check_text("three-card-brag", after)
    assert checked.problems == {}
    if lines is not None:
        assert len([line for line in changed_lines(text, after) if line[1:].strip()]) == lines
    present = fields_of(after)
    assert all(present.get(key, "") == value.strip() for key, value in changes.items())


def test_a_bonus_that_was_not_there_is_added() -> None:
    after = with_fields(
        FILES["double-play-brag"],
        {"ante_bonus.paid": "win", "ante_bonus.pays.running_flush": "1", "ante_bonus.pays.prial": "1"},
    )
    checked = check_text("double-play-brag", after)
    assert checked.paytable is not None
    assert checked.paytable.document()["ante_bonus"] == {
        "paid": "win",
        "pays": {"running_flush": 1, "prial": 1},
    }


@pytest.mark.parametrize(
    "key",
    [
        "",
        ".",
        "a..b",
        "title.x",
        "title[0]",
        "play[0].x",
        "claims.x",
        "claims[7].figure",
        "claims[x]",
        "a[1]b",
    ],
)
def test_a_key_that_leads_nowhere_is_refused(key: str) -> None:
    with pytest.raises(ServiceError) as refused:
        with_fields(FILES["three-card-brag"], {key: "1"})
    assert refused.value.code is Code.INVALID
    assert list(refused.value.errors or {}) == [key]


@pytest.mark.parametrize("text", ["a = ", "a = 1\na = 2", "[a", "a = 1979-99-99"])
def test_a_text_that_is_no_toml_has_no_fields(text: str) -> None:
    with pytest.raises(PaytableError):
        fields_of(text)
    with pytest.raises(PaytableError):
        with_fields(text, {"title": "x"})


@pytest.mark.parametrize(
    ("text", "changes", "after"),
    [
        ("play.multiple = 1", {"title": "Brag"}, 'play.multiple = 1\ntitle = "Brag"\n'),
        ("[play]\nmultiple = 1", {"play.multiple": "2"}, "[play]\nmultiple = 2\n"),
        (
            "claims = []\n",
            {"claims[0].figure": "rtp", "claims[0].wager": "main"},
            'claims = [{figure = "rtp", wager = "main"}]\n',
        ),
        (
            "claims = [{value = 1}]\n",
            {"claims[1].value": "98 %"},
            'claims = [{value = 1}, {value = "98 %"}]\n',
        ),
    ],
)
def test_a_value_is_added_where_the_layout_is_another(text: str, changes: dict[str, str], after: str) -> None:
    assert with_fields(text, changes) == after


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("limits = {GBP = {ante = {min = 1}}}", "limits.EUR.ante.min"),
        ("claims = [1]", "claims[0].figure"),
        (FILES["three-card-brag"], "claims[0]"),
    ],
)
def test_a_value_that_the_layout_has_no_room_for_is_refused(text: str, key: str) -> None:
    with pytest.raises(ServiceError) as refused:
        with_fields(text, {key: "1"})
    assert refused.value.errors == {key: [f"{key!r} cannot be set in this text"]}


def test_what_would_make_a_text_too_long_is_refused() -> None:
    with pytest.raises(ServiceError):
        with_fields(FILES["three-card-brag"], {"title": "x" * LINE_LENGTH_MAX})


names = st.one_of(
    st.sampled_from(
        ["title", "play", "multiple", "pays", "limits", "GBP", "ante", "min", "claims", "figure", "ranking"]
    ),
    st.text("ab.\"'\\\n[]é\u2028#=", max_size=3).map(dumps),
    st.text("ab.[]#=é", max_size=3).map(lambda name: f"'{name}'"),
)
keys = st.lists(names, min_size=1, max_size=3).map(".".join)
plain = st.one_of(
    st.integers(-(10**50), 10**50).map(str),
    st.integers(0, 16**900).map(hex),
    st.floats().map(repr),
    st.sampled_from(["+nan", "-inf", "1e999", "0b1", "true", "false", '"""\na\n[b]\n"""', "'''c = 1\n'''"]),
    st.dates().map(str),
    st.times().map(str),
    st.datetimes().map(lambda time: f"{time.isoformat()}Z"),
    st.text(max_size=5).map(dumps),
)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(keys, inner, max_size=3).map(
            lambda table: f"{{{', '.join(f'{key} = {value}' for key, value in table.items())}}}"
        )
    ),
    max_leaves=6,
)
lines = st.one_of(
    st.builds("{} = {}".format, keys, values),
    keys.map("[{}]".format),
    keys.map("[[{}]]".format),
    st.sampled_from(["[limits.GBP]", "[[claims]]", "claims = []", "limits = {}", "# a comment", ""]),
)
texts = st.lists(lines, max_size=8).map("\n".join)
changes = st.dictionaries(
    st.sampled_from(
        [
            "title",
            "play",
            "play.multiple",
            "limits.GBP.ante.min",
            "limits.EUR.ante.min",
            "limits.GBP",
            "ranking.categories",
            "claims",
            "claims[0]",
            "claims[0].figure",
            "claims[1].figure",
        ]
    ),
    st.sampled_from(["", "1", "3/2", "a, b", '"', "\\", "\n", "é"]),
    max_size=3,
)


@settings(max_examples=600, deadline=None)
@given(texts, changes)
def test_any_text_is_read_and_changed_or_refused_in_words(text: str, changes: dict[str, str]) -> None:
    check_text("three-card-brag", text)
    try:
        before = fields_of(text)
        after = fields_of(with_fields(text, changes))
    except (PaytableError, ServiceError):
        return
    tables = tuple(re.split(r"[.\[]", key)[0] for key in changes)
    assert {key: value for key, value in before.items() if not key.startswith(tables)} == {
        key: value for key, value in after.items() if not key.startswith(tables)
    }
