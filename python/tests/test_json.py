from __future__ import annotations

import json
import sys
from decimal import Decimal
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals._json import dumps, encode, loads

digits = st.text("0123456789", min_size=1, max_size=40)


@st.composite
def numbers(draw: st.DrawFn) -> str:
    whole = draw(digits).lstrip("0") or "0"
    fraction = draw(st.just("") | digits.map(".{}".format))
    exponent = draw(st.just("") | st.integers(-400, 400).map("e{:+d}".format))
    return f"{draw(st.sampled_from(['', '-']))}{whole}{fraction}{exponent}"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(numbers())
def test_a_number_keeps_its_value_when_it_is_read_and_written(text: str) -> None:
    assert Decimal(dumps(loads(text))) == Decimal(text)


@given(values)
def test_a_value_that_is_written_is_read_as_the_same_value(value: object) -> None:
    assert loads(dumps(value)) == value
    assert loads(encode(value).decode(errors="surrogatepass")) == value


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_is_read_as_the_same_number(value: Decimal) -> None:
    assert Decimal(str(loads(dumps(value)))) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [("12", int), ("-1234567890123456789012", int), ("0.1", float), ("1e3", float), ("0.10", float), ("-0.0", float)],
)
def test_a_number_is_an_int_or_a_float_if_that_is_exact(text: str, expected: type) -> None:
    assert type(loads(text)) is expected


@pytest.mark.parametrize("text", ["0.12345678901234567890", "1e400", "1e-400", "100000000000000000000.1"])
def test_a_decimal_that_a_float_would_round_is_a_decimal(text: str) -> None:
    assert loads(f"[{text}]") == [Decimal(text)]
    assert type(loads(text)) is Decimal


def test_an_integer_of_more_digits_than_python_converts_is_exact() -> None:
    text = "7" * (sys.get_int_max_str_digits() + 1)
    assert dumps(loads(text)) == text


def test_a_decimal_is_written_as_a_number_and_a_text_that_looks_like_one_is_not() -> None:
    assert dumps({"a": Decimal("1.50"), "b": "1.50", "c": Decimal("1E+400")}) == '{"a":1.50,"b":"1.50","c":1E+400}'


def test_any_mapping_is_an_object() -> None:
    assert dumps({"a": MappingProxyType({"b": Decimal(1)})}) == '{"a":{"b":1}}'


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("-Infinity"), float("nan"), {1, 2}, {"a": object()}])
def test_a_value_that_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"JSON|NaN|nan"):
        dumps(value)


def test_a_lone_surrogate_is_sent_escaped() -> None:
    assert encode({"a": "ü\ud800"}) == '{"a":"ü\\ud800"}'.encode()
    assert json.loads(encode("\ud83d\ude00")) == "😀"
