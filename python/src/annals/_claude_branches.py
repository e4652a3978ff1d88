"""Has contexts follow the summaries and the tree of a transcript: as in `@annals/claude-agent-sdk`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from ._async.annals import AsyncAnnals
from ._async.keyed_session import read_by_ids
from ._claude_transcripts import id_of_uuid, transcript_entry
from ._errors import AnnalsError
from ._storable import escape_json, stable_id
from .types import JsonObject, NewCompaction, TimelineItem

_PAGE_LIMIT = 1_000
# Lines that are read at once to find the one before a prompt.
_NEAR_LIMIT = 50
# Most messages that a compaction shows whole: those of a branch, beside its first one, or those kept beside a summary.
_SHOWN_MAX = 200
# What the service may refuse, for example because a call would be parted from its result.
_REFUSED = ("invalid_request", "idempotency_key_reused", "entry_not_found")


class _Line(NamedTuple):
    entry: JsonObject
    item: TimelineItem


async def compact_at_summaries(annals: AsyncAnnals, session_id: str, entries: Sequence[JsonObject]) -> None:
    """Lets a summary of Claude Code's stand for all before it, apart from messages that its boundary keeps."""
    for at, entry in enumerate(entries):
        if entry.get("isCompactSummary") is not True or "uuid" not in entry:
            continue
        entry_id = id_of_uuid(session_id, entry["uuid"])
        stored = await read_by_ids(annals, session_id, [entry_id])
        if not stored or stored[0]["kind"] != "message":
            continue
        boundary = _newest(entries[:at], _is_boundary)
        except_ = [id_of_uuid(session_id, uuid) for uuid in _kept_by(boundary)]
        await _compact(annals, session_id, stored[0]["seq"], entry["message"], except_, f"claude/summary/{entry_id}")


async def follow_branch(annals: AsyncAnnals, session_id: str, entries: Sequence[JsonObject]) -> None:
    """Has contexts follow the tree of a transcript.

    A prompt that was rewound, and what followed it, stay in the log; once the user has said something else in its
    place, a compaction stands for all up to there, and shows the messages of the branch. A branch that is too long for
    that, or of which a line is missing, leaves contexts as they were.
    """
    for at, entry in enumerate(entries):
        if not _is_prompt(entry):
            continue
        before = _newest(entries[:at], _is_of_tree)
        if before and before["uuid"] == entry["parentUuid"]:
            continue
        stored = await read_by_ids(annals, session_id, [id_of_uuid(session_id, entry["uuid"])])
        if not stored or stored[0]["kind"] != "message":
            continue
        if not before and await _follows_newest(annals, session_id, entry, stored[0]["seq"]):
            continue
        await _show_branch(annals, session_id, entry, stored[0])


async def _follows_newest(annals: AsyncAnnals, session_id: str, entry: JsonObject, seq: int) -> bool:
    """Whether a prompt follows the line that was the newest before it, as nearly all do."""
    async for item in annals.sessions.timeline(session_id, time_desc=True, limit=_NEAR_LIMIT):
        if item["seq"] >= seq:
            continue
        line = await transcript_entry(annals, session_id, item)
        if line and _is_of_tree(line):
            return line["uuid"] == entry["parentUuid"]
    return entry["parentUuid"] is None


async def _show_branch(annals: AsyncAnnals, session_id: str, prompt: JsonObject, stored: TimelineItem) -> None:
    lines: list[_Line] = []
    async for item in annals.sessions.timeline(session_id, limit=_PAGE_LIMIT):
        if item["seq"] > stored["seq"]:
            break
        entry = await transcript_entry(annals, session_id, item)
        if entry and _is_of_tree(entry):
            lines.append(_Line(entry, item))
    branch = _branch_of(prompt, lines)
    if branch is None:
        return
    root = next(line for line in lines if line.entry["uuid"] in branch)
    root_seq = root.item["seq"]
    is_summary = root.entry.get("isCompactSummary") is True
    ahead = [line.entry for line in lines if line.item["seq"] < root_seq]
    kept = set(_kept_by(_newest(ahead, _is_boundary))) if is_summary else set[str]()
    said = [
        line
        for line in lines
        if line.item["kind"] == "message"
        and (not is_summary or line.item["seq"] >= root_seq or line.entry["uuid"] in kept)
    ]
    is_shown = _is_on_branch(branch, [line.entry for line in said])
    shown = [line for line in said if is_shown(line.entry) or line.entry["uuid"] in kept]
    if not shown or len(shown) == len(said) or len(shown) - 1 > _SHOWN_MAX:
        return
    first = next((line for line in shown if line is root), shown[0])
    except_ = [line.item["id"] for line in shown if line is not first]
    key = f"claude/branch/{stored['id']}"
    await _compact(annals, session_id, stored["seq"], first.entry["message"], except_, key)


async def _compact(
    annals: AsyncAnnals, session_id: str, to_seq: int, summary: JsonObject, except_: list[str], key: str
) -> None:
    """Stores a compaction once. Where the service refuses it, contexts stay as they were."""
    blob: JsonObject = escape_json(summary)
    compaction: NewCompaction = {
        "to_seq": to_seq,
        "summary": {"format": "anthropic", "blob": blob},
        "by": "claude-code",
    }
    if except_:
        compaction["except_"] = except_
    try:
        await annals.sessions.compact(session_id, **compaction, idempotency_key=stable_id(session_id, key))
    except AnnalsError as error:
        if error.error not in _REFUSED:
            raise


def _branch_of(prompt: JsonObject, lines: Iterable[_Line]) -> set[str] | None:
    """The lines from a prompt back to the first one, or to a summary; None where one is missing."""
    by_uuid = {line.entry["uuid"]: line.entry for line in lines}
    branch: set[str] = set()
    line: JsonObject | None = prompt
    while line is not None and line["uuid"] not in branch:
        branch.add(line["uuid"])
        if line.get("isCompactSummary") is True or line["parentUuid"] is None:
            return branch
        line = by_uuid.get(line["parentUuid"])
    return None


def _is_on_branch(branch: set[str], said: Sequence[JsonObject]) -> Callable[[JsonObject], bool]:
    """Parallel calls are a line each, and so are their results: one of them leads to what follows, but all are said."""

    def answer_of(entry: JsonObject) -> str | None:
        return entry["message"].get("id")

    answers = {answer_of(entry) for entry in said if entry["uuid"] in branch} - {None}

    def is_said(entry: JsonObject) -> bool:
        return entry["uuid"] in branch or answer_of(entry) in answers

    blocks = [block for entry in said if is_said(entry) for block in _blocks_of(entry)]
    calls = {block.get("id") for block in blocks if block.get("type") == "tool_use"}
    return lambda entry: (
        is_said(entry)
        or any(block.get("type") == "tool_result" and block.get("tool_use_id") in calls for block in _blocks_of(entry))
    )


def _kept_by(boundary: JsonObject | None) -> list[str]:
    """The messages that stay as they are beside a summary, by what its boundary says, in either spelling."""
    for metadata, kept in (("compactMetadata", "preservedMessages"), ("compact_metadata", "preserved_messages")):
        said: dict[str, dict[str, list[str]]] = (boundary or {}).get(metadata) or {}
        uuids = said.get(kept, {}).get("uuids", [])
        if uuids:
            return [] if len(uuids) > _SHOWN_MAX else uuids
    return []


def _blocks_of(entry: JsonObject) -> list[JsonObject]:
    content: Any = entry.get("message", {}).get("content")
    blocks = cast(list[Any], content) if isinstance(content, list) else []
    return [cast(JsonObject, block) for block in blocks if isinstance(block, dict)]


def _is_of_tree(entry: JsonObject) -> bool:
    """A line that others follow, of the main conversation."""
    return entry.get("uuid") is not None and "parentUuid" in entry and entry.get("isSidechain") is not True


def _is_boundary(entry: JsonObject) -> bool:
    return entry.get("subtype") == "compact_boundary"


def _is_prompt(entry: JsonObject) -> bool:
    """What the user said by themselves."""
    if entry["type"] != "user" or not _is_of_tree(entry):
        return False
    if entry.get("isMeta") is True or entry.get("isCompactSummary") is True:
        return False
    return not any(block.get("type") == "tool_result" for block in _blocks_of(entry))


def _newest(entries: Sequence[JsonObject], is_wanted: Callable[[JsonObject], bool]) -> JsonObject | None:
    return next((entry for entry in reversed(entries) if is_wanted(entry)), None)
