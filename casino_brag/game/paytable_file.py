"""Reading a paytable file so that every mistake in it is reported at once, with its line.

:class:`Table` hands out checked values.  What is wrong is noted in the :class:`Report` and a stand-in value
is handed out instead, so that reading goes on; nothing made of stand-ins gets out, because
:meth:`Report.raise_problems` ends every reading.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from stat import S_ISREG
from typing import Final, TypeVar

FILE_BYTES_MAX: Final = 64 * 1024
"""The size of the largest paytable file that is read; a real one has about 2 KiB."""

LINES_MAX: Final = 2_000
"""The most lines that are read; a real file has about 90."""

LINE_LENGTH_MAX: Final = 1_000
"""The most characters of one line.  A key of many parts takes memory by their square, and nobody reads such lines."""

NESTING_MAX: Final = 16
"""The most tables and lists within each other; a paytable has three."""

VALUES_MAX: Final = 2_000
"""The most values of a file, tables and lists among them; 100 currencies and 50 claims are about 1,300."""

PROBLEMS_MAX: Final = 200
"""So many problems are told of one file; reading ends at the last of them."""

ODDS_MAX: Final = 999_999
"""The largest numerator and denominator of odds."""

_E = TypeVar("_E", bound=StrEnum)
_FRACTION: Final = re.compile(r"([0-9]{1,6})/([1-9][0-9]{0,5})")
_ANY_TEXT: Final = re.compile(r".*")
_TOML_LINE: Final = re.compile(r"\(at line ([0-9]+), column [0-9]+\)")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a paytable, and what to do about it.

    ``line`` counts from 1 and is None when the paytable did not come from a file or the whole file is meant;
    ``key`` is dotted, ``claims[0].figure``, and empty when the whole file is meant.

    >>> str(Problem("paytables/x.toml", 12, "ante.pays", "missing: give odds"))
    'paytables/x.toml:12: ante.pays: missing: give odds'
    >>> str(Problem("paytables/x.toml", None, "", "there is no such file"))
    'paytables/x.toml: there is no such file'
    """

    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class PaytableError(Exception):
    """A paytable that cannot be used; ``problems`` holds everything found wrong with it, in file order."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class Report:
    """The problems found so far in one paytable."""

    def __init__(self, file: str, lines: Mapping[str, int] | None = None) -> None:
        self._file = file
        self._lines = lines or {}
        self._problems: list[Problem] = []
        self._wrong: set[str] = set()  # every key with a problem, and every key around one
        self._tables: list[Table] = []

    def root(self, content: Mapping[str, object]) -> Table:
        """The whole paytable as a table."""
        return Table(content, "", self)

    def watch(self, table: Table) -> None:
        """Have a table's unknown keys reported in the end."""
        self._tables.append(table)

    def add(self, key: str, message: str) -> None:
        """Note a problem at a dotted key; its line is the key's, or else that of the table around it.

        PaytableError once there are ``PROBLEMS_MAX``, with one more that says so.
        """
        line = next((self._lines[around] for around in _outwards(key) if around in self._lines), None)
        self._problems.append(Problem(self._file, line, key, message))
        self._wrong.update(_outwards(key))
        if len(self._problems) == PROBLEMS_MAX:
            rest = f"these are the first {PROBLEMS_MAX} problems, and there may be more: mend these first"
            raise PaytableError((*self._in_order(), Problem(self._file, None, "", rest)))

    def clean(self, key: str) -> bool:
        """Whether nothing was found wrong at a key or inside it; the empty key is the whole paytable."""
        return key not in self._wrong

    def raise_problems(self) -> None:
        """PaytableError when anything is wrong."""
        for table in self._tables:
            table.report_unknown()
        self._tables.clear()
        if self._problems:
            raise PaytableError(self._in_order())

    def _in_order(self) -> tuple[Problem, ...]:
        return tuple(sorted(self._problems, key=lambda problem: problem.line or 0))


def _outwards(key: str) -> Iterator[str]:
    """A key and the keys of the tables around it, the whole paytable's last."""
    while key:
        yield key
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    yield ""


class Table:
    """One table of a paytable, from which checked values are taken by name."""

    def __init__(
        self, content: Mapping[str, object], key: str, report: Report, *, absent: bool = False
    ) -> None:
        self._content = content
        self._key = key
        self._report = report
        self._known: list[str] = []
        self.absent = absent
        """Stands in for a table that is missing or is no table, which has been reported: nothing more is."""
        report.watch(self)

    def __contains__(self, name: str) -> bool:
        self._known.append(name)
        return name in self._content

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def clean(self) -> bool:
        """Whether nothing was found wrong in this table."""
        return not self.absent and self._report.clean(self._key)

    def problem(self, name: str, message: str) -> None:
        """Note a problem with one of the table's keys, or with the whole table when the name is empty."""
        self._known.append(name)
        if not self.absent:
            self._report.add(self._dotted(name) if name else self._key, message)

    def report_unknown(self) -> None:
        """Note every key nobody asked for."""
        known = set(self._known)
        for name in [name for name in self._content if name not in known]:
            near = get_close_matches(name, map(str, known), n=1)
            self.problem(name, f"unknown key: {f'did you mean {near[0]!r}?' if near else 'remove it'}")

    def integer(self, name: str, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``; true and false are none."""
        value = self._content.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            self._known.append(name)
            return value
        self._refuse(name, f"a whole number from {low} to {high}")
        return low

    def text(
        self, name: str, *, longest: int, pattern: re.Pattern[str] = _ANY_TEXT, wanted: str | None = None
    ) -> str:
        """Printable text of 1 to ``longest`` characters, not all blank, that matches a pattern as a whole."""
        value = self._content.get(name)
        fits = isinstance(value, str) and value.strip() and len(value) <= longest and value.isprintable()
        if isinstance(value, str) and fits and pattern.fullmatch(value):
            self._known.append(name)
            return value
        self._refuse(name, wanted or f"one line of text, at most {longest} characters")
        return ""

    def choice(self, name: str, kind: type[_E]) -> _E:
        """A member of a closed set."""
        value = self._content.get(name)
        if isinstance(value, str) and value in [member.value for member in kind]:
            self._known.append(name)
            return kind(value)
        self._refuse(name, f"one of {', '.join(kind)}")
        return next(iter(kind))

    def each_once(self, name: str, kind: type[_E]) -> tuple[_E, ...]:
        """A list of all members of a closed set, each once, in any order."""
        value = self._content.get(name)
        if isinstance(value, list | tuple) and sorted(map(repr, value)) == sorted(
            repr(m.value) for m in kind
        ):
            self._known.append(name)
            return tuple(map(kind, value))
        self._refuse(name, f"a list with each of these once: {', '.join(kind)}")
        return tuple(kind)

    def odds(self, name: str, *, positive: bool = False) -> Fraction:
        """Odds "to 1": a whole number or a fraction written ``"3/2"``, from 0 up, or above 0."""
        value = self._content.get(name)
        match = _FRACTION.fullmatch(value) if isinstance(value, str) else None
        odds = None
        if match is not None:
            odds = Fraction(int(match[1]), int(match[2]))
        elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= ODDS_MAX:
            odds = Fraction(value)
        if odds is not None and (odds > 0 or not positive):
            self._known.append(name)
            return odds
        low = "above 0" if positive else "from 0"
        self._refuse(name, f"odds to 1, {low} to {ODDS_MAX}, as a whole number or a fraction such as '3/2'")
        return Fraction(0)

    def table(self, name: str) -> Table:
        """A table inside this one."""
        value = self._content.get(name)
        if isinstance(value, Mapping):
            self._known.append(name)
            return Table(value, self._dotted(name), self._report)
        self._refuse(name, "a table")
        return Table({}, self._dotted(name), self._report, absent=True)

    def tables(self, name: str) -> tuple[Table, ...]:
        """A list of tables; none when the key is missing."""
        if name not in self:
            return ()
        value = self._content[name]
        if isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
            keys = (f"{self._dotted(name)}[{position}]" for position in range(len(value)))
            return tuple(Table(item, key, self._report) for item, key in zip(value, keys, strict=True))
        self._refuse(name, f"tables, each headed [[{self._dotted(name)}]]")
        return ()

    def _dotted(self, name: str) -> str:
        return f"{self._key}.{name}" if self._key else name

    def _refuse(self, name: str, wanted: str) -> None:
        if name in self._content:
            self.problem(name, f"{_shown(self._content[name])} will not do: give {wanted}")
        else:
            self.problem(name, f"missing: give {wanted}")


def read_toml(path: Path) -> tuple[dict[str, object], Report]:
    """A TOML file's content and the report to read it with; PaytableError when it is not TOML."""
    return read_toml_text(read_text(path), str(path))


def read_text(path: Path) -> str:
    """The text of a file that may be a paytable's; PaytableError when it cannot be one."""
    file = str(path)
    try:
        if not S_ISREG(path.stat().st_mode):  # a pipe would be waited for without end
            raise _unreadable(file, None, "cannot be read: it is no regular file: give one that is")
        with path.open("rb") as stream:
            content = stream.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _unreadable(
            file, None, f"cannot be read: {error.strerror}: check the name and its rights"
        ) from error
    if not content.strip():
        raise _unreadable(file, None, "the file is empty: restore it")
    if len(content) > FILE_BYTES_MAX:
        raise _unreadable(file, None, f"the file is larger than {FILE_BYTES_MAX} bytes: shorten it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _unreadable(file, line, "this line is not UTF-8: save the file as UTF-8 text") from error


def read_toml_text(text: str, file: str) -> tuple[dict[str, object], Report]:
    """The content of TOML text and the report to read it with; PaytableError when it is not TOML.

    ``file`` is what the problems name as their place.

    >>> content, _ = read_toml_text("multiple = 2", "x.toml")
    >>> content
    {'multiple': 2}
    """
    lines = text.split("\n")
    _refuse_unwieldy(lines, file)
    try:
        content = tomllib.loads(text)
    except RecursionError as error:
        raise _unreadable(file, None, "lists are nested too deeply: restore the file") from error
    except ValueError as error:
        match = _TOML_LINE.search(str(error))
        line = int(match[1]) if match else len(lines)
        key = _KEY.match(lines[line - 1]) if match else None
        raise _unreadable(file, line, f"not valid TOML: {error}", _bare(key[1]) if key else "") from error
    report = Report(file, key_lines(text))
    for name, value in content.items():
        if _is_deeper(value, NESTING_MAX):
            report.add(name, f"more than {NESTING_MAX} tables or lists within each other: remove it")
    report.raise_problems()
    if _count(content) > VALUES_MAX:
        raise _unreadable(file, None, f"more than {VALUES_MAX} values: shorten the file")
    return content, report


def _refuse_unwieldy(lines: list[str], file: str) -> None:
    """PaytableError for a text that would take a reader of TOML long, or much memory, whatever it says."""
    if len(lines) > LINES_MAX:
        raise _unreadable(file, LINES_MAX + 1, f"more than {LINES_MAX} lines: shorten the file")
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_LENGTH_MAX:
            raise _unreadable(file, number, f"the line is longer than {LINE_LENGTH_MAX} characters: break it")


def _is_deeper(value: object, levels: int) -> bool:
    """Whether a value holds more than so many tables and lists within each other."""
    inside = _inside(value)
    return any(_is_deeper(inner, levels - 1) for inner in inside) if levels > 0 else bool(inside)


def _count(value: object) -> int:
    return 1 + sum(map(_count, _inside(value)))


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


_HEADER: Final = re.compile(r"\s*(\[\[?)([^\[\]#]+)\]\]?\s*(?:#.*)?")
_KEY: Final = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=""")


def key_lines(text: str) -> dict[str, int]:
    """The line, from 1, of every table header and of every key at the start of a line, by dotted key.

    Keys inside an inline table have none of their own; a reader falls back to the line of the table.

    >>> key_lines('title = "x"\\n[play]\\nmultiple = 1\\n[[claims]]\\nwager = "main"\\n')
    {'title': 1, 'play': 2, 'play.multiple': 3, 'claims[0]': 4, 'claims[0].wager': 5}
    """
    lines: dict[str, int] = {}
    counts: Counter[str] = Counter()
    prefix = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.fullmatch(line):
            name = _bare(header[2])
            if header[1] == "[[":
                counts[name] += 1
                name += f"[{counts[name] - 1}]"
            lines.setdefault(name, number)
            prefix = f"{name}."
        elif key := _KEY.match(line):
            lines.setdefault(prefix + _bare(key[1]), number)
    return lines


def _bare(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _shown(value: object) -> str:
    """A refused value as its writer would recognise it, cut to a readable length."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, int) and abs(value) >= 10**40:
        return "so large a number"
    text = repr(value) if isinstance(value, str | list | tuple | int | float) else str(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _unreadable(file: str, line: int | None, message: str, key: str = "") -> PaytableError:
    return PaytableError((Problem(file, line, key, message),))
