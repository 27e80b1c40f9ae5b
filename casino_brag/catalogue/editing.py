"""The text of a paytable's file, read and changed field by field, with the comments and the layout kept.

A field is named by its dotted key, as the problems of a paytable name it: ``pair_bonus.pays.flush``,
``limits.GBP.ante.max``, ``claims[0].value``.  Its value is text, as it is typed into a form: numbers by their digits,
texts without quotes, lists with commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array

from casino_brag.errors import Code, ServiceError
from casino_brag.game.paytable import Paytable
from casino_brag.game.paytable_file import PaytableError, read_toml_text

_STEP: Final = re.compile(r"([^.\[\]]+)(?:\[([0-9]{1,3})\])?(?:\.|$)")
_WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,17}")
_NUMBERS: Final = re.compile(r"play\.multiple|(\w+\.)pays(\.\w+)?|limits\..*")
"""The keys whose values are numbers where they can be; all others are texts, whatever they look like."""
_NOT_DONE: Final = (TOMLKitError, LookupError, ValueError, TypeError, AttributeError)
"""What tomlkit raises where a text's layout, or what stands there already, has no room for a value."""


def text_of(paytable: Paytable) -> str:
    """A file for a paytable that came without one.

    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> Paytable.parse(text_of(paytable), game=paytable.game) == paytable
    True
    """
    document = tomlkit.document()
    document.add(tomlkit.comment("Written from the record of a version, whose own file was not kept."))
    document.add(tomlkit.nl())
    for name, value in sorted(
        paytable.document().items(), key=lambda named: named[0] in ("limits", "claims")
    ):
        document[name] = _item(value)
    return tomlkit.dumps(document)


def fields_of(text: str) -> dict[str, str]:
    """Every value of a file by its dotted key, as a form shows it; PaytableError where the text is no TOML.

    >>> fields_of('title = "Brag" # what players see\\npair_bonus = { pays = { flush = 4 } }')
    {'title': 'Brag', 'pair_bonus.pays.flush': '4'}
    """
    return dict(_leaves(read_toml_text(text, "paytable")[0]))


def with_fields(text: str, changes: Mapping[str, str]) -> str:
    """The text with other values, and all else as it was; PaytableError where the text is no TOML.

    A blank value takes the field away, or the whole table that the key names, and with the last field of a table the
    table.  What is not there yet is added.  Values are not judged: what will not do is told when the text is read.
    `invalid` for a key that leads nowhere, and where the text's layout has no room for the value: it is to be changed
    by hand then.

    >>> print(with_fields("[ante]\\npays = 1 # to 1\\n", {"ante.pays": "3/2"}), end="")
    [ante]
    pays = "3/2" # to 1
    """
    present = fields_of(text)
    wanted = {key: value.strip() for key, value in changes.items()}
    wanted = {
        key: value for key, value in wanted.items() if key not in present or value != present[key].strip()
    }
    if not wanted:
        return text
    key = next(iter(wanted))
    try:
        document, changed = tomlkit.parse(text if text.endswith("\n") else f"{text}\n"), False
        for key, value in wanted.items():
            if value:
                _put(document, _steps(key), _typed(key, value))
                changed = True
            else:
                changed |= _take(document, _steps(key))
        if not changed:
            return text
        after = tomlkit.dumps(document)
        done = fields_of(after) == dict(_leaves(document.unwrap()))
    except (*_NOT_DONE, PaytableError) as error:
        raise _not_to_be_set(key) from error
    if not done:
        raise _not_to_be_set(key)
    return after


def _not_to_be_set(key: str) -> ServiceError:
    sentence = f"{key!a} cannot be set in this text"
    return ServiceError(Code.INVALID, "Such a field cannot be set.", errors={key: [sentence]})


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{key}[{place}]")
    elif isinstance(value, list):
        yield key, ", ".join(map(_shown, value))
    else:
        yield key, _shown(value)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _steps(key: str) -> list[str | int]:
    steps: list[str | int] = []
    end = 0
    while match := _STEP.match(key, end):
        end = match.end()
        steps += [match[1]] if match[2] is None else [match[1], int(match[2])]
    if end != len(key) or not key:
        raise KeyError(key)
    return steps


def _typed(key: str, value: str) -> Any:
    if key == "ranking.categories":
        return _item([part.strip() for part in value.split(",")])
    return tomlkit.item(int(value) if _NUMBERS.fullmatch(key) and _WHOLE.fullmatch(value) else value)


def _put(inside: Any, steps: list[str | int], value: Any, depth: int = 0) -> None:
    """Sets a value, and makes what is not there yet of what it is in; LookupError where that cannot be."""
    step, rest = steps[0], steps[1:]
    expected: Any = list if isinstance(step, int) else Mapping
    if not isinstance(inside, expected):
        raise KeyError(step)
    if not rest:
        inside[step] = value
        return
    if isinstance(step, int):
        if step == len(inside):
            inside.append(tomlkit.table() if isinstance(inside, AoT) else tomlkit.inline_table())
    elif step not in inside:
        inside[step] = _container(rest[0], depth)
    _put(inside[step], rest, value, depth + 1)


def _container(first: str | int, depth: int) -> Any:
    """What holds fields in the file itself, or a currency's in its limits; deeper tables are written in a line."""
    if isinstance(first, int):
        return tomlkit.aot()
    a_currency = depth == 1 and first in ("ante", "pair_bonus", "payout_max")
    return tomlkit.table() if depth == 0 or a_currency else tomlkit.inline_table()


def _take(inside: Any, steps: list[str | int]) -> bool:
    """Takes a value away, and every table that is empty without it; whether there was one."""
    step, rest = steps[0], steps[1:]
    if isinstance(inside, list):
        if not isinstance(step, int) or step >= len(inside):
            return False
    elif not isinstance(inside, Mapping) or step not in inside:
        return False
    if rest and not _take(inside[step], rest):
        return False
    if not rest or not inside[step]:
        del inside[step]
    return True


def _item(value: Any, depth: int = 0) -> Any:
    """A value of a document as TOML, laid out as in the files that are shipped."""
    if isinstance(value, Mapping):
        plain = depth >= 1 and not any(isinstance(inner, Mapping) for inner in value.values())
        table: MutableMapping[str, Any] = tomlkit.inline_table() if plain else tomlkit.table()
        for name, inner in value.items():
            table[name] = _item(inner, depth + 1)
        return table
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        tables: AoT = tomlkit.aot()
        for inner in value:
            tables.append(_item(inner))
        return tables
    if isinstance(value, list):
        array: Array = tomlkit.array()
        array.extend(value)
        return array
    return tomlkit.item(value)
