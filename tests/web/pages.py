"""What holds of every page, however it is made: markup that closes, names that lead somewhere, nothing inline."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "path", "rect", "source", "wbr"}
NAMED = ("for", "aria-describedby", "aria-labelledby")
TYPED = {"input", "select", "textarea"}


class Page(HTMLParser):
    """A page taken apart; `faults` says what is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[str] = []
        self.fields: dict[str, str] = {}
        self._open: list[str] = []
        self._wanted: list[str] = []
        self._labelled: set[str] = set()
        self._unnamed: list[tuple[str | None, bool]] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]
        self.faults += [f"#{name} is there twice" for name in set(self.ids) if self.ids.count(name) > 1]
        self.faults += [f"#{name} is named and not there" for name in self._wanted if name not in self.ids]
        for name, labelled in self._unnamed:
            if not labelled and name not in self._labelled:
                self.faults.append(f"the field {name} has no label")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        for name in NAMED:
            self._wanted += given.get(name, "").split()
        if tag == "label" and "for" in given:
            self._labelled.add(given["for"])
        if tag == "script":
            self.scripts.append(given.get("src", ""))
            if not given.get("src", "").startswith("/console/static/"):
                self.faults.append("a script that is not a file of ours")
        self.faults += [
            f"{name} stands in <{tag}>" for name in given if name == "style" or name.startswith("on")
        ]
        if tag == "style":
            self.faults.append("<style> stands in the page")
        if tag in TYPED and given.get("type") not in ("hidden", "submit") and "hidden" not in given:
            self._unnamed.append((given.get("id"), "label" in self._open or "aria-label" in given))
        if tag in TYPED and "name" in given and (given.get("type") not in ("radio", "checkbox")):
            self.fields.setdefault(given["name"], given.get("value", ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1:]}")
            if tag in self._open:
                while self._open.pop() != tag:
                    pass
            return
        self._open.pop()


def faults(text: str) -> list[str]:
    """What is wrong with a page's markup."""
    return Page(text).faults
