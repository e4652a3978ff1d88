"""JSON that keeps every digit of a number: a value that is read and written again is the same value.

An integer is an int of any size. A decimal number is a float if Python prints that float with the same value, and a
Decimal if not: 0.1 is a float, 0.12345678901234567890 a Decimal.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast


def loads(text: str) -> Any:
    return json.loads(text, parse_float=_read_decimal, parse_int=_read_integer)


def dumps(value: object) -> str:
    """Raises TypeError or ValueError for a value that JSON cannot hold, including NaN and infinity."""
    # The json module cannot write a Decimal as a number. It writes a string with a prefix that no caller can guess,
    # and the quotes and the prefix are removed afterwards.
    mark = ""

    def write_other(other: object) -> object:
        nonlocal mark
        if isinstance(other, Mapping):
            return dict(cast(Mapping[object, object], other))
        if not isinstance(other, Decimal):
            raise TypeError(f"Object of type {type(other).__name__} is not JSON serializable")
        if not other.is_finite():
            raise ValueError(f"{other} is not JSON serializable")
        mark = mark or secrets.token_hex(16)
        return f"{mark}{other}"

    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=write_other)
    return re.sub(f'"{mark}([^"]*)"', r"\1", text) if mark else text


def encode(value: object) -> bytes:
    """A request's body."""
    text = dumps(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # A lone surrogate. Escaped, it reaches the service, whose error names its place.
        return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def _read_decimal(text: str) -> float | Decimal:
    number = float(text)
    shortest = repr(number)
    if shortest == text or Decimal(shortest) == Decimal(text):
        return number
    return Decimal(text)


def _read_integer(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:
        # Longer than sys.get_int_max_str_digits().
        return Decimal(text)
