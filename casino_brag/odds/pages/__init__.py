"""A PAR sheet as a page for people: Markdown to keep beside a paytable, HTML to read and print.

Both show the same parts, which :mod:`casino_brag.odds.pages.sheet` makes.  Every text is escaped here, because
titles and claims are an operator's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import fill
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from casino_brag.game.paytable import Paytable
from casino_brag.odds.pages.parts import (
    Block,
    Commands,
    Headlines,
    Page,
    Setting,
    Table,
    Terms,
    Text,
    Warn,
    numbers,
    words,
)
from casino_brag.odds.pages.sheet import page
from casino_brag.odds.pages.shown import Document

__all__ = ["html", "markdown", "rendered"]

_TEMPLATES: Final = Environment(
    loader=PackageLoader("casino_brag.odds"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_MARKUP: Final = re.compile(r"[\\`*_\[\]<>|~&#]")
_LINE_LENGTH: Final = 110
_LONGEST_BAR: Final = 30


def html(paytable: Paytable, document: Document) -> str:
    """A PAR sheet as one HTML file, which loads nothing and runs nothing; ``document`` is the paytable's own.

    >>> from casino_brag.odds.par_sheet import par_sheet
    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> html(paytable, par_sheet(paytable)).splitlines()[0]
    '<!doctype html>'
    """
    return rendered(page(paytable, document))


def rendered(shown: Page) -> str:
    """Any page of parts as one HTML file, fit to print, which loads nothing and runs nothing.

    >>> "<h1>A &lt; B</h1>" in rendered(Page("A < B", (), ()))
    True
    """
    return _TEMPLATES.get_template("par_sheet.html.j2").render(page=shown)


def markdown(paytable: Paytable, document: Document) -> str:
    """A PAR sheet as Markdown, legible as it is: a table's row a line, bars made of block characters.

    >>> from casino_brag.odds.par_sheet import par_sheet
    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> markdown(paytable, par_sheet(paytable)).splitlines()[0]
    '# PAR sheet: 3 Card Brag'
    """
    shown = page(paytable, document)
    identity = "\n".join(f"- {label}: `{text}`" for label, text in shown.identity)
    parts = [f"# {_escaped(shown.title)}", identity]
    for section in shown.sections:
        parts.append(f"## {_escaped(section.title)}")
        for block in section.blocks:
            parts.extend(_markdown(block))
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block) -> Iterator[str]:
    match block:
        case Text(text):
            yield _wrapped(_escaped(text))
        case Warn(title, sentences):
            paragraphs = (f"**{_escaped(title)}**", *map(_escaped, sentences))
            yield "\n>\n".join(_wrapped(f"> {text}", "> ") for text in paragraphs)
        case Headlines(figures):
            yield _rows(Table("", words("figure") + numbers("value") + words("meaning"), figures))
        case Terms(terms):
            gap = "\n" if all(len(paragraphs) == 1 for _, paragraphs in terms) else "\n\n"
            yield gap.join(_term(term, *paragraphs) for term, paragraphs in terms)
        case Commands(lines):
            yield "\n".join(("```sh", *lines, "```"))
        case Table(title):
            yield f"**{_escaped(title)}**"
            yield _rows(block)


def _term(term: str, first: str, *others: str) -> str:
    paragraphs = (f"- **{_escaped(term)}.** {_escaped(first)}", *(f"  {_escaped(text)}" for text in others))
    return "\n\n".join(_wrapped(text, "  ") for text in paragraphs)


def _rows(table: Table) -> str:
    """All columns but a last one of words are padded, so that they stand under each other."""
    settings = [setting for _, setting in table.columns]
    heads = tuple(heading for heading, _ in table.columns)
    rows = [
        tuple(
            f"`{cell}`" if setting is Setting.CODE else _escaped(cell)
            for cell, setting in zip(row, settings, strict=True)
        )
        for row in table.rows
    ]
    if table.plot is not None:
        settings.append(Setting.WORDS)
        heads += (table.plot.title,)
        rows = [(*row, bar) for row, bar in zip(rows, _bars(table), strict=True)]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    if settings[-1] is not Setting.NUMBER:
        widths[-1] = 0
    rules = tuple(
        "-" * max(2, width - 1) + (":" if setting is Setting.NUMBER else "-")
        for width, setting in zip(widths, settings, strict=True)
    )
    return "\n".join(
        "| "
        + " | ".join(
            cell.rjust(width) if setting is Setting.NUMBER else cell.ljust(width)
            for cell, width, setting in zip(row, widths, settings, strict=True)
        )
        + " |"
        for row in (heads, rules, *rows)
    )


def _bars(table: Table) -> Iterator[str]:
    assert table.plot is not None
    for value, (_, length) in zip(table.plot.values, table.plot.spans(), strict=True):
        bar = "█" * round(_LONGEST_BAR * length) or ("▏" if length else "")
        yield f"−{bar}" if value < 0 else bar


def _wrapped(text: str, indent: str = "") -> str:
    """Escaped text in lines, all but the first of them indented."""
    return fill(text, _LINE_LENGTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text)
