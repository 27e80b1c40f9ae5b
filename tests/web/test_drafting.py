"""A paytable's text is spread over the fields of a form, and its buttons change it."""

from __future__ import annotations

import pytest

from casino_brag.catalogue.editing import fields_of
from casino_brag.config import shipped
from casino_brag.game.paytable import CLAIMS_MAX, CURRENCIES_MAX
from casino_brag.web.console.drafting import PREFIX, done_to, spread, typed
from casino_brag.web.console.forms import Form

TEXT = (shipped("paytables") / "three-card-brag.toml").read_text()


def empty() -> Form:
    return Form({f"{PREFIX}title": ["as it was"], "new_currency": ["SEK"]}, sent=True)


def test_every_value_of_a_text_has_its_field() -> None:
    form = empty()
    assert spread(form, TEXT)
    assert form.named(PREFIX) == fields_of(TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"[limits.C{place:03d}]\npayout_max = 1\n" for place in range(CURRENCIES_MAX + 1)),
        "[[claims]]\nvalue = 1\n" * (CLAIMS_MAX + 1),
        "[ranking]\ncategories = ['a', 'b', 'c', 'd', 'e', 'f', 'g']\n",
    ],
    ids=["currencies", "claims", "categories"],
)
def test_a_text_with_more_than_a_page_can_show_has_no_fields(text: str) -> None:
    form = empty()
    assert not spread(form, text)
    assert (form.value("text"), form.named(PREFIX)) == (text, {})


@pytest.mark.parametrize(
    "value", ["0x" + "f" * 900, "nan", "-inf", "1979-05-27", "07:32:00", "[]", "[1, {a = [[]]}]"]
)
def test_a_value_of_any_kind_is_shown_in_a_field_and_left_as_it_is(value: str) -> None:
    form, text = empty(), f"title = {value}\n"
    assert spread(form, text)
    form.put("tab", "fields")
    assert typed(form).text == text


@pytest.mark.parametrize(
    "button", ["add:claim", "add:currency", "add:ante_bonus", "up:pair", "drop:limits.GBP"]
)
@pytest.mark.parametrize(
    "text",
    [
        "claims = []",
        "claims = [1]",
        "limits = {GBP = {ante = {min = 1}}}",
        "limits = 1",
        "ante_bonus = 1",
        "[ranking]\n",
    ],
)
def test_a_button_makes_another_text_that_can_be_read_or_says_why_not(text: str, button: str) -> None:
    done = done_to(text, button, empty())
    fields_of(done.text)
    if done.errors:
        assert done.text == text
        assert all(sentence.endswith("mend the text") for sentence in done.errors["text"])
