"""The pages at /docs: complete, well-formed, and needing nothing from anywhere else."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
import requests

from casino_brag.errors import Code
from tests.inprocess import openapi_document
from tests.running import CALL_SECONDS, RunningService

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """What a page holds: its tags, its anchors, where it leads, its text; AssertionError where tags do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.anchors: list[str] = []
        self.references: list[str] = []
        self.styles: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} {name}"
            if name == "id":
                self.anchors.append(value or "")
            elif name in ("href", "src", "action", "data", "srcset", "poster"):
                self.references.append(value or "")
            elif name == "style":
                self.styles.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> ends nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.styles.append(data)
        else:
            self.text += data


@pytest.fixture(scope="module", params=["/docs", "/docs/problems"])
def page(service: RunningService, request: pytest.FixtureRequest) -> Page:
    answer = requests.get(service.base + request.param, timeout=CALL_SECONDS)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = dict(
        part.strip().partition(" ")[::2] for part in answer.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    return Page(answer.text)


def test_a_page_needs_nothing_from_outside(page: Page) -> None:
    assert page.tags.isdisjoint(
        {"script", "link", "img", "iframe", "object", "embed", "form", "base", "audio", "video"}
    )
    assert [reference for reference in page.references if not re.match(r"#|/(?!/)", reference)] == []
    assert not re.search(r"url\(|@import", " ".join(page.styles))


def test_every_link_of_a_page_leads_somewhere(service: RunningService, page: Page) -> None:
    assert page.references
    assert len(page.anchors) == len(set(page.anchors))
    for reference in set(page.references):
        if reference.startswith("#"):
            assert reference[1:] in page.anchors, reference
        else:
            assert requests.get(service.base + reference, timeout=CALL_SECONDS).status_code == 200


def test_the_reference_names_every_operation_parameter_and_shape(service: RunningService) -> None:
    page = Page(requests.get(service.base + "/docs", timeout=CALL_SECONDS).text)
    document = openapi_document()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                assert re.search(rf"{method.upper()}\s+{re.escape(path)}\s", page.text), path
                assert operation["summary"] in page.text
                assert all(parameter["name"] in page.text for parameter in operation.get("parameters", []))
    for name, shape in document["components"]["schemas"].items():
        assert name in page.anchors
        assert all(member in page.text for member in shape.get("properties", {}))
    assert "None" not in page.text
    assert "Undefined" not in page.text


def test_the_problems_stand_in_their_order_of_precedence(service: RunningService) -> None:
    page = Page(requests.get(service.base + "/docs/problems", timeout=CALL_SECONDS).text)
    assert page.anchors == [code.value for code in Code]


def test_the_front_door_leads_to_the_documentation(service: RunningService) -> None:
    answer = requests.get(service.base + "/", timeout=CALL_SECONDS, allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/docs")
