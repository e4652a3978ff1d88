"""What a schema cannot say of the requests that the tool makes up as valid ones."""

import re

import schemathesis

# A message is what its provider says it is: no schema of ours has that, and any object stands for it there.
MESSAGES = {
    "openai": {"role": "user", "content": "Hello"},
    "anthropic": {"role": "user", "content": "Hello"},
    "gemini": {"role": "user", "parts": [{"text": "Hello"}]},
    "acontext": {"role": "user", "parts": [{"type": "text", "text": "Hello"}]},
}
SEQ = re.compile(r'"(0|[1-9][0-9]{0,15})"')


@schemathesis.hook
def map_case(context, case):
    if not (case.meta and case.meta.generation.mode.is_positive):
        return case
    # A cursor is what a page has given; one that is made up fits no query. The fuzzer sends such.
    if case.query and "cursor" in case.query:
        del case.query["cursor"]
    # The tool takes the number 0 for valid in any header, whatever pattern it has.
    if case.headers and not SEQ.fullmatch(str(case.headers.get("if-match", '"0"'))):
        del case.headers["if-match"]
    if isinstance(case.body, dict):
        for entry in [case.body, *(case.body.get("entries") or [])]:
            if isinstance(entry, dict) and "blob" in entry:
                entry["blob"] = MESSAGES[entry.get("format") or "openai"]
    return case
