"""What the adapters of frameworks need of JSON and names, the same in every language. Without I/O."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from math import isfinite
from typing import Any, TypeVar, cast
from uuid import UUID, uuid5

from ._json import dumps, encode, loads
from .types import NewEntry

T = TypeVar("T")

BATCH_ENTRIES_MAX = 1_000
"""Most entries of one request."""
BODY_BYTES_MAX = 1024 * 1024
"""Most bytes of a request's body as the service is set by default: `ANNALS_BODY_BYTES_MAX`."""
META_BYTES_MAX = 60_000
"""The service takes 64 KiB of meta."""
# Most base64 of one request that the service keeps apart, and what is longer than this is kept apart.
_ATTACHMENTS_MAX = 25 * 1024 * 1024
_TAKEN_OUT_MIN = 32 * 1024
# Where messages have bytes, and what holds a tool's own values, in which the service looks for none.
_BYTES_FIELDS = (
    "data",
    "url",
    "image_url",
    "file_data",
    "result",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
)
_VALUES_FIELDS = ("input", "arguments", "args", "response")
_BASE64 = re.compile("(?:data:[^,]{0,240};base64,)?((?:[A-Za-z0-9+/]+|[A-Za-z0-9_-]+)={0,2})", re.IGNORECASE)
# Characters of a text that are kept in a message that is too large, at first; fewer if that is not enough.
_SHOWN_LENGTHS = (100_000, 12_500, 1_562, 195)
# What a request has around its entries, generously.
_ENVELOPE_BYTES = 1_024
# The namespace of all names that adapters turn into ids. It must never change.
_NAMESPACE = UUID("6f2c1f0a-4d0e-5b7c-9a3d-8e1b7c5f2a90")

# JSON in PostgreSQL holds neither U+0000 nor a lone surrogate. Both are written as U+FDD0, a noncharacter that text
# does not contain, with what it stands for: `0`, or the surrogate's number. U+FDD0 itself is written twice.
_ESCAPE = "\ufdd0"
_MAY_NEED_ESCAPES = re.compile("\\\\u0000|[\ud800-\udfff\ufdd0]")
# Each escape of JSON as a whole, so that a backslash that is itself escaped begins none.
_TO_ESCAPE = re.compile("\\\\(?:u0000|.)|[\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile("\ufdd0(0|d[89a-f][0-9a-f]{2}|\ufdd0)")
_LONE = re.compile("[\ud800-\udfff]")


class UnstorableEntries(Exception):  # noqa: N818
    """Entries that cannot be stored as they were given. Nothing of them was stored."""


def escape_json(value: T) -> T:
    """The value with everything escaped that PostgreSQL cannot hold, or the value itself if there is nothing."""
    text = dumps(value)
    return cast(T, loads(_TO_ESCAPE.sub(_escaped, text))) if _MAY_NEED_ESCAPES.search(text) else value


def unescape_json(value: T) -> T:
    """What was given to `escape_json`."""
    text = dumps(value)
    return cast(T, loads(_ESCAPED.sub(_unescaped, text))) if _ESCAPE in text else value


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    if found == "\\u0000":
        return f"{_ESCAPE}0"
    if found == _ESCAPE:
        return _ESCAPE * 2
    return f"{_ESCAPE}{ord(found):04x}" if len(found) == 1 else found


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code == "0":
        return "\\u0000"
    return code if code == _ESCAPE else chr(int(code, 16))


def stable_id(*names: str) -> str:
    """The UUIDv5 of a list of strings: the same list gives the same id in every process and every language.

    The first one names the framework, so that two adapters never share a session by accident.
    """
    return str(uuid5(_NAMESPACE, _names_as_json(names)))


def idempotency_key(*names: str) -> str:
    """An Idempotency-Key made of what the framework calls a write: 64 hexadecimal digits, however long the names."""
    return hashlib.sha256(_names_as_json(names).encode()).hexdigest()


def _names_as_json(names: Sequence[str]) -> str:
    text = json.dumps(names, ensure_ascii=False, separators=(",", ":"))
    # Two halves of a pair are one character, and a lone one is escaped, as in JavaScript.
    text = (
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") if _LONE.search(text) else text
    )
    return _LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def without_repeated_ids(entries: Sequence[NewEntry]) -> list[NewEntry]:
    """The entries without those that repeat an earlier one's id.

    Raises UnstorableEntries if an id is repeated with other content.
    """
    by_id: dict[str, NewEntry] = {}
    kept: list[NewEntry] = []
    for entry in entries:
        given = entry.get("id")
        if given is None:
            kept.append(entry)
            continue
        entry_id = given.lower()
        earlier = by_id.get(entry_id)
        if earlier is None:
            by_id[entry_id] = entry
            kept.append(entry)
        elif {**earlier, "id": entry_id} != {**entry, "id": entry_id}:
            raise UnstorableEntries(f"Two entries of one batch have the id {given} and different content.")
    return kept


def cut_into_batches(entries: Sequence[NewEntry], body_bytes_max: int = BODY_BYTES_MAX) -> list[list[NewEntry]]:
    """Cuts entries into batches that one request each can carry.

    Raises UnstorableEntries if one entry alone is larger than a body may be.
    """
    room = body_bytes_max - _ENVELOPE_BYTES
    batches: list[list[NewEntry]] = []
    size = room
    attachments = 0
    for index, entry in enumerate(entries):
        attached = _attached_length(entry)
        entry_size = byte_length(entry) - attached + 1
        if entry_size > room:
            named = f" (id {entry['id']})" if "id" in entry else ""
            raise UnstorableEntries(
                f"Entry {index}{named} has {entry_size} bytes; a request carries at most {room}. "
                "Raise ANNALS_BODY_BYTES_MAX and body_bytes_max."
            )
        size += entry_size
        attachments += attached
        is_full = size > room or attachments > _ATTACHMENTS_MAX
        if not batches or is_full or len(batches[-1]) == BATCH_ENTRIES_MAX:
            batches.append([])
            size = entry_size
            attachments = attached
        batches[-1].append(entry)
    return batches


def byte_length(value: object) -> int:
    """Bytes of a value as JSON."""
    return len(encode(value))


def entry_length(entry: NewEntry) -> int:
    """Bytes of an entry as JSON, without the base64 that the service takes out of messages and keeps apart."""
    return byte_length(entry) - _attached_length(entry)


def _attached_length(entry: NewEntry) -> int:
    return _attached_in(entry["blob"]) if entry["kind"] == "message" else 0


def _attached_in(value: object) -> int:
    if isinstance(value, list):
        return sum(_attached_in(one) for one in cast("list[Any]", value))
    if not isinstance(value, dict):
        return 0
    length = 0
    for name, member in cast("dict[str, Any]", value).items():
        if isinstance(member, str):
            length += _base64_length(member) if name in _BYTES_FIELDS else 0
        elif name not in _VALUES_FIELDS:
            length += _attached_in(member)
    return length


def _base64_length(text: str) -> int:
    found = _BASE64.fullmatch(text) if len(text) > _TAKEN_OUT_MIN else None
    length = len(found[1]) if found else 0
    return length if length > _TAKEN_OUT_MIN and length % 4 == 0 else 0


def shorten_texts(entry: NewEntry, bytes_max: int) -> NewEntry:
    """The message with its long texts shortened, which say how long they are; bytes that are kept apart stay."""
    shown = entry
    for length in _SHOWN_LENGTHS:
        shown = cast(NewEntry, {**entry, "blob": _shortened(entry.get("blob"), length)})
        if entry_length(shown) <= bytes_max:
            break
    return shown


def _shortened(value: Any, length: int, name: str = "") -> Any:
    if isinstance(value, str):
        is_text = len(value) > length and not (name in _BYTES_FIELDS and _base64_length(value))
        return f"{value[:length]}… [{len(value)} characters in all]" if is_text else value
    if isinstance(value, list):
        return [_shortened(one, length) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _shortened(member, length, key) for key, member in cast("dict[str, Any]", value).items()}
    return value


def cut_text(text: str, bytes_max: int) -> list[str]:
    """Pieces of a text, each of at most so many bytes of UTF-8."""
    # No character has more than four.
    units = max(1, bytes_max // 4)
    return [text[start : start + units] for start in range(0, len(text), units)]


def is_plain_json(value: object) -> bool:
    """Whether JSON gives back exactly this value: no tuples, subclasses, keys that are not strings, or NaN."""
    kind = type(value)
    if kind is dict:
        members = cast("dict[Any, Any]", value)
        return all(type(key) is str and is_plain_json(member) for key, member in members.items())
    if kind is list:
        return all(is_plain_json(member) for member in cast("list[Any]", value))
    if kind is float:
        return isfinite(cast(float, value))
    return value is None or kind in (str, int, bool)
