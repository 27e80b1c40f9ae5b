"""Paytables in the console: written with their consequences in view, submitted, approved, put in force."""

from __future__ import annotations

import re
import secrets
from html import unescape

import pytest
import requests

from casino_brag.catalogue.jurisdictions import names
from casino_brag.config import shipped
from casino_brag.game.paytable import Paytable
from casino_brag.staff.people import Role
from casino_brag.web.console.drafting import CHOICES
from casino_brag.web.console.pictures import strategy_map
from tests.colleagues import Colleague, colleague
from tests.inprocess import AppHouse
from tests.web.pages import Page, faults

GAME = "three-card-brag"
TEXT = (shipped("paytables") / f"{GAME}.toml").read_text()
HOSTILE = "<script>alert('brag')</script>"


@pytest.fixture
def editor(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.EDITOR).signed_in()


@pytest.fixture
def approver(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.APPROVER).signed_in()


@pytest.fixture
def operations(app_house: AppHouse) -> Colleague:
    return colleague(app_house, Role.OPERATIONS).signed_in()


def begun(editor: Colleague, text: str = TEXT, game: str = GAME) -> str:
    """The path of a new draft with this text."""
    answer = editor.post("/paytables/new", game=game, text=text)
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"].removeprefix("/console")


def typed(page: str) -> dict[str, str]:
    """What a browser would send of the editor's form as it stands."""
    form = page[page.index('<form id="editor"') : page.index("</form>", page.index('<form id="editor"'))]
    values = dict(Page(form).fields)
    for name, options in re.findall(
        r'<select id="[^"]*" name="([^"]*)"[^>]*>(.*?)</select>', form, re.DOTALL
    ):
        chosen = re.search(r'<option value="([^"]*)" selected', options)
        values[name] = unescape(chosen[1]) if chosen else ""
    for name, text in re.findall(r'<textarea[^>]*name="([^"]*)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL):
        values[name] = unescape(text)
    values.pop("new_currency", None)
    return values


def edited(editor: Colleague, path: str, button: str, **changes: str) -> requests.Response:
    """The answer to the editor's form with these changes and one of its buttons."""
    return editor.send(path, **{**typed(editor.get(path).text), **changes, "do": button})


def text_of(editor: Colleague, path: str) -> str:
    return editor.get(f"{path}/file").text


def revised() -> str:
    """The game's file with limits that no version before had."""
    return TEXT.replace("max = 300000", f"max = {5 * (1_000 + secrets.randbelow(50_000_000))}", 1).replace(
        "payout_max = 5000000\n", "", 1
    )


def submitted(editor: Colleague, text: str) -> str:
    path = begun(editor, text)
    answer = editor.post(f"{path}/submit", jurisdictions="none", revision="1", note="Other limits.")
    assert answer.status_code == 303, answer.text
    return path


def digest_on(page: str) -> str:
    found = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
    assert found, page
    return found[1]


def approved(editor: Colleague, approver: Colleague, text: str) -> str:
    """The path of a version that these two made."""
    path = submitted(editor, text)
    answer = approver.post(f"{path}/approve", of=path, digest=digest_on(approver.get(path).text))
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"].removeprefix("/console")


def test_every_page_of_paytables_is_sound_for_everybody_who_sees_it(
    app_house: AppHouse, editor: Colleague, approver: Colleague, operations: Colleague
) -> None:
    version = approved(editor, approver, revised())
    open_draft, waiting, broken = begun(editor), submitted(editor, revised()), begun(editor, "title = 3")
    number = version.rsplit("/", 1)[1]
    for path in (
        "/paytables",
        f"/paytables/{GAME}",
        f"/paytables/{GAME}/history",
        f"/paytables/{GAME}/versions/1",
        version,
        f"{version}/par-sheet",
        open_draft,
        f"{open_draft}?tab=text",
        waiting,
        broken,
        f"/paytables/{GAME}/compare",
        f"/paytables/{GAME}/compare?old=v1&new=v{number}",
        f"/paytables/{GAME}/compare?old=v1&new={broken.replace(f'/paytables/{GAME}/drafts/', 'd')}",
    ):
        for person in (editor, approver, operations):
            answer = person.get(path)
            assert answer.status_code in (200, 422), (path, person.roles, answer.text)
            assert faults(answer.text) == [], (path, person.roles)
    for path in ("/paytables/new", f"{open_draft}/submit"):
        assert faults(editor.get(path).text) == [], path


def test_a_field_that_is_changed_changes_its_value_alone_and_keeps_every_comment(editor: Colleague) -> None:
    path = begun(editor)
    answer = edited(editor, path, "save", **{"f:pair_bonus.pays.flush": "3"})
    assert answer.status_code == 303, answer.text
    assert text_of(editor, path) == TEXT.replace("pair = 1, flush = 4", "pair = 1, flush = 3")


def test_a_form_that_nobody_touched_saves_nothing(editor: Colleague) -> None:
    path = begun(editor)
    answer = edited(editor, path, "save")
    assert answer.headers["Location"].endswith("?tab=fields")
    assert "Revision 1." in editor.get(path).text
    assert text_of(editor, path) == TEXT


def test_a_preview_shows_what_a_change_brings_and_writes_nothing(
    app_house: AppHouse, editor: Colleague
) -> None:
    path = begun(editor)
    form = typed(editor.get(path).text)
    with app_house.connect() as conn:
        before = conn.execute("SELECT count(*) FROM audit_entry").fetchone()
        answer = editor.send(f"{path}/preview", **{**form, "f:pair_bonus.pays.flush": "3"})
        assert conn.execute("SELECT count(*) FROM audit_entry").fetchone() == before
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert "92.904977 %" in answer.text, "the return of the Pair Bonus"
    assert "▼ 4.959276" in answer.text, "less than under the version in force"
    assert re.search(r"Pair Bonus, flush</th><td>4 → 3<", answer.text), "the rule that differs"
    assert faults(answer.text) == []
    assert text_of(editor, path) == TEXT


def test_a_preview_says_how_play_changes(editor: Colleague) -> None:
    path = begun(editor)
    answer = editor.send(f"{path}/preview", **{**typed(editor.get(path).text), "f:play.multiple": "2"})
    assert "was Q-6-4" in answer.text
    assert "hands are decided otherwise than under version 1, in force" in answer.text
    assert 'class="changed"' in answer.text


def test_a_preview_refuses_no_text(editor: Colleague) -> None:
    path = begun(editor)
    form = typed(editor.get(path).text)
    for text in ("", "[", "title = 3", "claims = 3", "\0", "x" * 60_000, "limits = [1, 2]\nplay = 3"):
        for tab in ("text", "fields"):
            answer = editor.send(f"{path}/preview", **{**form, "text": text, "tab": tab})
            assert answer.status_code == 200, (text[:20], tab, answer.text)
            assert re.search("One thing to mend|[0-9]+ things to mend", answer.text)


FIELDS = sorted(
    {
        "ranking.categories",
        *(key for key in CHOICES if "." in key and key != "dealer.not_qualified"),
        "dealer.not_qualified.ante",
        "dealer.not_qualified.play",
        "play.multiple",
        "ante.pays",
        "play.pays.prial",
        "ante_bonus.pays.run",
        "pair_bonus.pays.high_card",
        "limits.GBP.ante.min",
        "limits.XBT.pair_bonus.step",
        "limits.JPY.payout_max",
        "claims[0].figure",
        "claims[0].value",
    }
)


@pytest.mark.parametrize("key", FIELDS)
def test_whatever_is_typed_into_a_field_is_told_at_it_and_stays(editor: Colleague, key: str) -> None:
    path, name = begun(editor), f"f:{key}"
    for value in ("-1", HOSTILE, '" # "', "9" * 40, "é\u2028'''"):
        shown = edited(editor, path, "tab:fields", **{name: value})
        assert shown.status_code == 200, shown.text
        assert HOSTILE not in shown.text
        assert faults(shown.text) == []
        assert typed(shown.text)[name] == value
        told = re.search(rf'id="error-{re.escape(name)}"[^>]*>([^<]+)<', shown.text)
        assert told, (value, "nothing is told at the field")
    assert text_of(editor, path) == TEXT, "nothing was saved"


def test_markup_in_a_title_is_shown_as_what_it_is_wherever_the_title_stands(
    editor: Colleague, approver: Colleague
) -> None:
    text = revised().replace('title = "3 Card Brag"', f'title = "{HOSTILE}"')
    version = approved(editor, approver, text)
    draft = begun(editor, text)
    for path in (version, f"{version}/par-sheet", draft, f"{draft}?tab=text", f"{draft}/submit"):
        page = editor.get(path).text
        assert HOSTILE not in page
        assert "&lt;script&gt;" in page
        assert faults(page) == []


def test_hands_change_places_and_only_there(editor: Colleague) -> None:
    path = begun(editor)
    shown = edited(editor, path, "up:flush").text
    assert typed(shown)["f:ranking.categories"] == "high_card, pair, run, flush, running_flush, prial"
    assert edited(editor, path, "up:prial").status_code == 200, "there is no place above the first"
    assert text_of(editor, path) == TEXT, "nothing was saved"


@pytest.mark.parametrize("bonus", ["ante_bonus", "pair_bonus"])
def test_a_bonus_is_switched_off_and_on(editor: Colleague, bonus: str) -> None:
    path = begun(editor)
    off = edited(editor, path, f"drop:{bonus}").text
    assert not [name for name in typed(off) if name.startswith(f"f:{bonus}.")]
    assert "to mend" not in off
    on = editor.send(path, **{**typed(off), "do": f"add:{bonus}"}).text
    assert typed(on)[f"f:{bonus}.pays.prial"]
    assert "to mend" not in on


def test_currencies_and_claims_are_added_and_removed(editor: Colleague) -> None:
    path = begun(editor)
    shown = edited(editor, path, "add:currency", new_currency="chf").text
    assert typed(shown)["f:limits.CHF.ante.min"] == "100"
    shown = editor.send(path, **{**typed(shown), "do": "drop:limits.EUR"}).text
    shown = editor.send(path, **{**typed(shown), "do": "add:claim"}).text
    assert typed(shown)["f:claims[1].value"] == "98 %"
    shown = editor.send(path, **{**typed(shown), "do": "drop:claims[0]"}).text
    answer = editor.send(path, **{**typed(shown), "do": "save"})
    assert answer.status_code == 303, answer.text
    paytable = Paytable.parse(text_of(editor, path), game=GAME)
    assert "CHF" in paytable.limits
    assert "EUR" not in paytable.limits
    assert [claim.source for claim in paytable.claims] == ["where it is printed"]


@pytest.mark.parametrize("code", ["", "gb", "G B P", "GBP", HOSTILE])
def test_a_currency_that_cannot_be_added_is_told_at_its_field(editor: Colleague, code: str) -> None:
    path = begun(editor)
    shown = edited(editor, path, "add:currency", new_currency=code)
    assert shown.status_code == 422
    assert 'id="error-new_currency"' in shown.text
    assert HOSTILE not in shown.text


def test_what_was_typed_goes_along_from_the_fields_to_the_text_and_back(editor: Colleague) -> None:
    path = begun(editor)
    shown = edited(editor, path, "tab:text", **{"f:play.multiple": "7"}).text
    assert "multiple = 7 " in typed(shown)["text"]
    text = typed(shown)["text"].replace("multiple = 7 ", "multiple = 8 ")
    shown = editor.send(path, **{**typed(shown), "text": text, "do": "tab:fields"}).text
    assert typed(shown)["f:play.multiple"] == "8"
    assert "Not saved" in shown
    assert text_of(editor, path) == TEXT


def test_a_text_that_is_no_toml_is_kept_and_shown_as_text(editor: Colleague) -> None:
    path = begun(editor)
    shown = edited(editor, f"{path}", "save", tab="text", text="play = [\n")
    assert shown.status_code == 303, "an unfinished text may be saved"
    page = editor.get(path).text
    assert typed(page)["text"] == "play = [\n"
    assert "not valid TOML" in page
    answer = editor.post(f"{path}/submit", jurisdictions="none", revision="2", note="Why not.")
    assert answer.status_code == 422
    assert "Why not." in answer.text


def test_who_saves_second_sees_both_texts_and_loses_nothing(app_house: AppHouse, editor: Colleague) -> None:
    other = colleague(app_house, Role.EDITOR).signed_in()
    path = begun(editor)
    mine = typed(editor.get(path).text)
    assert edited(other, path, "save", **{"f:play.multiple": "2"}).status_code == 303
    stale = editor.send(path, **{**mine, "f:pair_bonus.pays.flush": "3", "do": "save"})
    assert stale.status_code == 412
    assert "flush = 3" in stale.text
    assert "multiple = 2" in stale.text
    assert other.name in stale.text
    assert faults(stale.text) == []
    assert "multiple = 2" in text_of(editor, path)
    kept = re.search(r'<textarea id="field-text"[^>]*>\n(.*?)</textarea>', stale.text, re.DOTALL)
    assert kept is not None
    forked = editor.send(
        path, _csrf=mine["_csrf"], tab="text", revision="2", text=unescape(kept[1]), do="fork"
    )
    copy = forked.headers["Location"].removeprefix("/console")
    assert text_of(editor, copy) == TEXT.replace("pair = 1, flush = 4", "pair = 1, flush = 3")
    assert f"{editor.name}, {other.name}" in editor.get(copy).text, (
        "who wrote what it was made of has a hand in it"
    )


def test_what_was_typed_into_a_draft_that_was_submitted_meanwhile_is_still_there(editor: Colleague) -> None:
    path = begun(editor, revised())
    mine = typed(editor.get(path).text)
    assert (
        editor.post(f"{path}/submit", jurisdictions="none", revision="1", note="Limits.").status_code == 303
    )
    late = editor.send(path, **{**mine, "f:pair_bonus.pays.flush": "3", "do": "save"})
    assert late.status_code == 409
    assert typed(late.text)["f:pair_bonus.pays.flush"] == "3"
    assert "Begin another draft with it" in late.text


def test_a_submission_says_what_is_missing_at_its_fields_and_keeps_the_rest(editor: Colleague) -> None:
    path = begun(editor, revised())
    answer = editor.post(f"{path}/submit", jurisdictions="gb", revision="1", certificate=" ", note="")
    assert answer.status_code == 422
    for name in ("note", "certificate"):
        assert f'id="error-{name}"' in answer.text
    assert re.search(r'<a href="#field-note">Why</a>', answer.text)
    nowhere = editor.post(f"{path}/submit", revision="1", note="Limits.").text
    assert "tick one or more of Great Britain, Malta" in nowhere
    assert re.search(r'value="gb" checked', answer.text)
    assert faults(answer.text) == []


def test_what_a_player_would_win_by_is_not_submitted(editor: Colleague) -> None:
    path = begun(editor, revised().replace("flush = 4, run = 6", "flush = 9, run = 6"))
    assert "to mend" in editor.get(path).text
    answer = editor.post(f"{path}/submit", jurisdictions="none", revision="1", note="Generous.")
    assert answer.status_code == 422
    assert "of what is staked" in answer.text


def test_a_version_takes_three_steps_by_two_persons_and_a_roll_back_is_another(
    app_house: AppHouse, editor: Colleague, approver: Colleague, operations: Colleague
) -> None:
    version = approved(editor, approver, revised())
    page = operations.get(version).text
    assert "in force" in page
    answer = operations.post(f"{version}/activate", of=version, when="now", reason="The season begins.")
    assert answer.status_code == 303, answer.text
    game = operations.get(f"/paytables/{GAME}").text
    assert "The season begins." in game
    assert approver.name in game
    assert "Roll back to version 1" in operations.get(f"/paytables/{GAME}/versions/1").text
    back = operations.post(
        f"/paytables/{GAME}/versions/1/activate",
        of=f"/paytables/{GAME}/versions/1",
        when="now",
        reason="The season ends.",
    )
    assert back.status_code == 303, back.text


def test_a_change_at_a_time_is_announced_and_called_off(
    editor: Colleague, approver: Colleague, operations: Colleague
) -> None:
    version = approved(editor, approver, revised())
    wrong = operations.post(f"{version}/activate", of=version, when="at", at="tomorrow", reason="Later.")
    assert wrong.status_code == 422
    assert 'id="error-at"' in wrong.text
    assert 'value="Later."' in wrong.text
    past = operations.post(f"{version}/activate", of=version, when="at", at="2020-01-01T00:00", reason="x")
    assert past.status_code == 422
    with operations.house.connect() as conn:
        row = conn.execute("SELECT to_char(now() + interval '2 days', 'YYYY-MM-DD\"T\"HH24:MI')").fetchone()
    assert row is not None
    right = operations.post(f"{version}/activate", of=version, when="at", at=row[0], reason="Later.")
    assert right.status_code == 303, right.text
    game = f"/paytables/{GAME}"
    assert "comes into force at" in editor.get(game).text
    assert "comes into force at" in editor.get("/paytables").text
    answer = operations.post(f"{game}/unschedule", of=game, reason="Not yet.")
    assert answer.status_code == 303
    assert "Not yet." in editor.get(game).text
    retired = operations.post(f"{version}/retire", of=version, reason="Never.")
    assert retired.status_code == 303, retired.text
    assert "badge-retired" in editor.get(version).text


def test_who_wrote_a_draft_does_not_approve_it_by_the_console(
    app_house: AppHouse, approver: Colleague
) -> None:
    both = colleague(app_house, Role.EDITOR, Role.APPROVER).signed_in()
    path = submitted(both, revised())
    page = both.get(path).text
    assert "/approve" not in page
    digest = digest_on(approver.get(path).text)
    answer = both.post(f"{path}/approve", of=path, digest=digest)
    assert answer.status_code == 403
    assert "badge-submitted" in both.get(path).text


def test_another_digest_than_the_one_that_was_submitted_is_not_approved(
    editor: Colleague, approver: Colleague
) -> None:
    path = submitted(editor, revised())
    for digest in ("", "0" * 64):
        answer = approver.post(f"{path}/approve", of=path, digest=digest)
        assert answer.status_code == 412
        assert faults(answer.text) == []
    assert "badge-submitted" in approver.get(path).text


def test_an_approval_asks_for_a_code_when_the_last_one_is_old(
    app_house: AppHouse, editor: Colleague, approver: Colleague
) -> None:
    path = submitted(editor, revised())
    with app_house.connect() as conn:
        conn.execute(
            "UPDATE staff_session SET proved_at = now() - interval '11 minutes' WHERE staff_id = %s",
            [approver.staff_id],
        )
    page = approver.get(path).text
    assert 'name="code"' in page
    digest = digest_on(page)
    for code in ("", "000000"):
        refused = approver.post(f"{path}/approve", of=path, digest=digest, code=code)
        assert refused.status_code == 422
        assert 'id="error-code"' in refused.text
        assert faults(refused.text) == []
    answer = approver.post(f"{path}/approve", of=path, digest=digest, code=approver.code())
    assert answer.status_code == 303, answer.text


def put_in_force(operations: Colleague, version: str) -> None:
    """Puts a version in force, unless it is."""
    if "badge-active" in operations.get(version).text:
        return
    answer = operations.post(f"{version}/activate", of=version, when="now", reason="A test.")
    assert answer.status_code == 303, answer.text


def test_where_a_game_would_no_longer_be_offered_is_told_before_it_is_submitted_approved_and_in_force(
    editor: Colleague, approver: Colleague, operations: Colleague
) -> None:
    put_in_force(operations, f"/paytables/{GAME}/versions/1")
    path = begun(editor, revised())
    shown = editor.get(f"{path}/submit").text
    assert len(re.findall(r'name="jurisdictions" value="[a-z]+" checked', shown)) == len(names())
    lost = "No longer offered in: Great Britain"
    typed = {"jurisdictions": "none", "revision": "1"}
    assert lost in editor.post(f"{path}/submit", **typed, note="").text
    assert editor.post(f"{path}/submit", **typed, note="Fewer.").status_code == 303
    page = approver.get(path).text
    assert lost in page
    answer = approver.post(f"{path}/approve", of=path, digest=digest_on(page))
    version = answer.headers["Location"].removeprefix("/console")
    assert lost in operations.get(version).text
    put_in_force(operations, version)
    narrow = editor.get(f"{begun(editor, revised())}/submit").text
    assert re.findall(r'name="jurisdictions" value="([a-z]+)" checked', narrow) == ["none"]
    same = submitted(editor, revised())
    put_in_force(operations, f"/paytables/{GAME}/versions/1")
    assert lost in approver.get(same).text, "against what is in force when it is looked at"


def test_claims_are_judged_where_odds_are_edited_and_on_every_page_of_them(
    editor: Colleague, approver: Colleague
) -> None:
    text = revised().replace('value = "98 %"', 'value = "98.5 %"')
    path = begun(editor, text)
    judged = re.compile(r"98\.5 %</td><td><strong>97\.996138 %</strong>.*Does not hold", re.DOTALL)
    form = typed(editor.get(path).text)
    for page in (editor.send(f"{path}/preview", **form), editor.get(f"{path}/submit")):
        assert judged.search(page.text), page.text
    version = approved(editor, approver, text)
    assert judged.search(editor.get(version).text)
    assert "Does not hold" not in editor.get(begun(editor)).text


def test_a_draft_is_discarded_by_an_editor_with_a_reason(app_house: AppHouse, editor: Colleague) -> None:
    path = begun(editor)
    assert "Discard this draft…" in editor.get(path).text
    unsaid = editor.post(f"{path}/reject", of=path, reason=" ")
    assert unsaid.status_code == 422
    assert faults(unsaid.text) == []
    other = colleague(app_house, Role.EDITOR).signed_in()
    assert other.post(f"{path}/reject", of=path, reason="Begun twice.").status_code == 303
    page = editor.get(path).text
    assert "badge-rejected" in page
    assert "Begun twice." in page
    assert "Discard this draft" not in page


def test_what_was_approved_and_never_in_force_is_shown_until_it_is(
    editor: Colleague, approver: Colleague, operations: Colleague
) -> None:
    version = approved(editor, approver, revised())
    waits = re.compile(
        rf'href="/console{version}">Version {version.rsplit("/", 1)[1]}</a> is approved and waits to be put in force'
    )
    pages = ("/paytables", f"/paytables/{GAME}", "/approvals")
    for path in pages:
        assert waits.search(operations.get(path).text), path
    put_in_force(operations, version)
    for path in pages:
        assert not waits.search(operations.get(path).text), path


def test_a_button_that_acts_at_once_has_no_ellipsis(editor: Colleague, approver: Colleague) -> None:
    page = approver.get(submitted(editor, revised())).text
    assert re.search(r"<button[^>]*>Approve [0-9a-f]+</button>", page)
    assert "Reject…" in page


def test_what_is_in_force_is_compared_with_the_newest_of_another_content(
    editor: Colleague, approver: Colleague, operations: Colleague
) -> None:
    def chosen() -> list[str]:
        return re.findall(r'<option value="([^"]*)" selected', editor.get(f"/paytables/{GAME}/compare").text)

    version = approved(editor, approver, revised())
    number = version.rsplit("/", 1)[1]
    assert chosen()[1] == f"v{number}"
    other = begun(editor, revised()).rsplit("/", 1)[1]
    put_in_force(operations, version)
    begun(editor, editor.get(f"{version}/file").text)
    begun(editor, "title = 3")
    assert chosen() == [f"v{number}", f"d{other}"]


def test_limits_say_what_a_minor_unit_is(editor: Colleague) -> None:
    assert "In minor units: 300000 is 3,000.00 GBP." in editor.get(begun(editor)).text


def test_a_rejection_needs_a_reason_and_shows_it(editor: Colleague, approver: Colleague) -> None:
    path = submitted(editor, revised())
    assert approver.post(f"{path}/reject", of=path, reason=" ").status_code == 422
    assert approver.post(f"{path}/reject", of=path, reason="Too dear.").status_code == 303
    page = editor.get(path).text
    assert "badge-rejected" in page
    assert "Too dear." in page
    again = editor.post(f"/paytables/{GAME}/drafts", of=path, from_draft=path.rsplit("/", 1)[1])
    assert text_of(editor, again.headers["Location"].removeprefix("/console")) == text_of(editor, path)


def test_two_sides_that_cannot_be_compared_are_told_at_their_fields(editor: Colleague) -> None:
    broken = begun(editor, "title = 3").rsplit("/", 1)[1]
    for old, new in (("v1", f"d{broken}"), ("v1", "x"), ("v1", HOSTILE)):
        answer = editor.get(f"/paytables/{GAME}/compare", params={"old": old, "new": new})
        assert answer.status_code == 422
        assert 'id="error-new"' in answer.text
        assert HOSTILE not in answer.text
    assert editor.get(f"/paytables/{GAME}/compare?old=v1&new=v999").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/paytables/nothing",
        f"/paytables/{GAME}/drafts/999999",
        f"/paytables/{GAME}/drafts/99999999999999999999",
        f"/paytables/{GAME}/versions/999999",
        f"/paytables/{GAME}/versions/0",
        f"/paytables/{GAME}/history?cursor=x",
        "/paytables/%00",
        "/paytables/%00/drafts/1",
    ],
)
def test_what_there_is_not_is_a_page_that_says_so(editor: Colleague, path: str) -> None:
    answer = editor.get(path)
    assert answer.status_code == 404, answer.text
    assert faults(answer.text) == []


def test_the_picture_of_the_strategy_has_a_square_for_each_shape_and_says_what_changes() -> None:
    paytable = Paytable.load(shipped("paytables") / f"{GAME}.toml")
    other = Paytable.load(shipped("paytables") / "double-play-brag.toml")
    picture = strategy_map(other, paytable)
    squares = sum(
        path.count("z") for mark, path in picture.paths.items() if mark not in ("half", "changed", "stroke")
    )
    assert squares == 741
    assert picture.hands_changed == sum(row.now_played + row.now_folded for row in picture.rows) == 2160
    assert sum(row.hands for row in picture.rows) == 22_100
    told = [value for block in picture.blocks for value in block.advantages.split(",") if value]
    assert len(told) == 741
