"""JSON bodies are read as every reader would read them, or refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.errors import Code, ServiceError
from casino_brag.web.api.strict_json import DIGITS_MAX, loads

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10 ** (DIGITS_MAX - 1)) + 1, 10**DIGITS_MAX - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


@given(value=values, ascii_only=st.booleans())
def test_what_is_plain_is_read_as_it_was_written(value: Any, ascii_only: bool) -> None:
    assert loads(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    "text",
    ["1.0", "1e2", "1E2", "100.00", "-0", "-0.0", "1" * (DIGITS_MAX + 1), "-" + "1" * DIGITS_MAX, "1" * 5000],
)
def test_a_number_that_is_not_plainly_whole_is_no_integer(text: str) -> None:
    assert type(loads(text.encode())) is float


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-1", -1), ("9007199254740993", 9007199254740993)])
def test_a_plain_whole_number_is_exact(text: str, value: int) -> None:
    read = loads(text.encode())
    assert (type(read), read) == (int, value)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", '{"a": NaN}', "[[Infinity]]"])
def test_what_is_no_number_in_json_is_refused(constant: str) -> None:
    assert refusal(constant.encode()).code is Code.INVALID


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 1}', '{"a": 1, "a": 2}', '[{"x": {"a": 1, "b": 2, "a": 3}}]', '{"\\u0061": 1, "a": 1}'],
)
def test_a_name_that_is_given_twice_is_refused_by_name(text: str) -> None:
    refused = refusal(text.encode())
    assert refused.code is Code.INVALID
    assert refused.errors == {"a": ["Given twice."]}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"{}}",
        b"{} {}",
        b"{'a': 1}",
        b"{a: 1}",
        b'{"a": 1,}',
        b"[1,]",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"0x1",
        b"\xff",
        b"\xef\xbb\xbf{}",
        '{"a": 1}'.encode("utf-16"),
        b'"\x00"',
        b'"\n"',
        b"//\n{}",
        b"undefined",
        b"True",
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    assert refusal(body).code is Code.MALFORMED_REQUEST


@given(body=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_and_nothing_else(body: bytes) -> None:
    with suppress(ServiceError):
        loads(body)


def refusal(body: bytes) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        loads(body)
    return refused.value
