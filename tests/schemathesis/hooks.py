"""Corrects the requests that the tool generates as valid ones, where the schema cannot say enough."""

import hashlib
import io
import re
import zipfile

import schemathesis

# No schema of ours describes a provider's message, so the tool takes any object.
MESSAGES = {
    "openai": {"role": "user", "content": "Hello"},
    "anthropic": {"role": "user", "content": "Hello"},
    "gemini": {"role": "user", "parts": [{"text": "Hello"}]},
    "acontext": {"role": "user", "parts": [{"type": "text", "text": "Hello"}]},
    "responses": {"type": "message", "role": "user", "content": "Hello"},
}
_zip = io.BytesIO()
with zipfile.ZipFile(_zip, "w") as archive:
    archive.writestr("SKILL.md", "---\nname: refunds\ndescription: How to refund.\n---\nAsk for the order number.\n")
SKILL_ZIP = _zip.getvalue()
SEQ = re.compile(r'"(0|[1-9][0-9]{0,15})"')


@schemathesis.hook
def map_case(context, case):
    if not (case.meta and case.meta.generation.mode.is_positive):
        return case
    # A made-up cursor fits no query; the fuzzer covers those.
    if case.query and "cursor" in case.query:
        del case.query["cursor"]
    # The tool considers the number 0 valid in any header, whatever its pattern.
    if case.headers and not SEQ.fullmatch(str(case.headers.get("if-match", '"0"'))):
        del case.headers["if-match"]
    # What a search needs, a word, and what a JSON array in the query has to contain, no parameter's schema says.
    if case.query and "q" in case.query and case.path.endswith("/search"):
        case.query["q"] = "refund"
    # A list by the beginning of ids takes no other filter.
    if case.query and "id_prefix" in case.query:
        for name in ("user", "filter_by_configs", "parent", "order_by"):
            case.query.pop(name, None)
    # Who read a session is asked of a project.
    if case.query and "session_id" in case.query and "reads_of" not in case.query and case.path.endswith("/audit"):
        del case.query["session_id"]
    # A question has one order and at most 50 answers, whatever is noise.
    if case.query and case.query.get("mode") == "recall":
        for name in ("order", "limit", "noise"):
            case.query.pop(name, None)
    if case.query and "edit_strategies" in case.query:
        case.query["edit_strategies"] = '[{"type":"token_limit","params":{"limit_tokens":8000}}]'
    # The path names the bytes.
    content = getattr(case.body, "data", case.body)
    if case.path_parameters and "sha256" in case.path_parameters and isinstance(content, bytes):
        case.path_parameters["sha256"] = hashlib.sha256(content).hexdigest()
    # In a form, a file is any bytes and JSON is any text.
    if isinstance(case.body, dict) and case.path.endswith("/agent_skills"):
        case.body["file"] = SKILL_ZIP
        case.body.update({"meta": "{}"} if "meta" in case.body else {})
    if isinstance(case.body, dict) and case.path.endswith("/webhooks"):
        case.body["url"] = "https://example.com/hook"
    # What the names of such words may be, no schema of OpenAPI 3.0 says.
    if isinstance(case.body, dict) and case.body.get("outcomes"):
        case.body["outcomes"] = {"submitted": "passed"}
    # The tool gives up before the longest wait for work is over.
    if isinstance(case.body, dict) and "wait_ms" in case.body:
        case.body["wait_ms"] = min(case.body["wait_ms"], 1_000)
    if isinstance(case.body, dict):
        for entry in [case.body, *(case.body.get("entries") or [])]:
            if isinstance(entry, dict) and "blob" in entry:
                entry["blob"] = MESSAGES[entry.get("format") or "openai"]
    return case
