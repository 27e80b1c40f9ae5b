"""JSON read strictly: what two readers could understand differently is refused, and so is what is not JSON."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from casino_brag.errors import Code, ServiceError

DIGITS_MAX: Final = 20


def loads(body: bytes) -> Any:
    """The value of a JSON text.

    Raises `ServiceError`: malformed_request for what is no JSON, and invalid for a name given twice, NaN and
    infinities.  A number that is written with a fraction, an exponent, a sign before zero or more than `DIGITS_MAX`
    digits becomes a float, so that no field for whole numbers takes it.

    >>> loads(b'{"ante_minor": 100, "pair_bonus_minor": 1e2}')
    {'ante_minor': 100, 'pair_bonus_minor': 100.0}
    """
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_number, parse_int=_whole
        )
    except (ValueError, RecursionError) as broken:
        raise ServiceError(Code.MALFORMED_REQUEST, "The body is not JSON in UTF-8.") from broken


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in pairs:
        if name in read:
            raise ServiceError(
                Code.INVALID, "A field is given twice. Give each once.", errors={name[:64]: ["Given twice."]}
            )
        read[name] = value
    return read


def _no_number(constant: str) -> NoReturn:
    raise ServiceError(Code.INVALID, f"{constant} is no number in JSON. Give amounts as whole minor units.")


def _whole(digits: str) -> int | float:
    return float("nan") if len(digits) > DIGITS_MAX or digits == "-0" else int(digits)
