"""One conversation in each of the four formats, and what an answer in a format says."""

import json
from typing import Any

from checks import same

ARGUMENTS = {"user_id": "omar_davis_3817", "big": 12345678901234567890}

# One conversation in each format: a question, a tool call, its result, the answer.
CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"role": "user", "content": "Where is my flight?", "name": "omar"},
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "look_up", "arguments": json.dumps(ARGUMENTS)},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "Gate 7 👍"},
        {"role": "assistant", "content": "At gate 7.", "x_unknown": [1, {"kept": None}]},
    ],
    "anthropic": [
        {"role": "user", "content": "Where is my flight?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "call_1", "name": "look_up", "input": ARGUMENTS}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "Gate 7 👍"}],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "At gate 7.", "cache_control": {"type": "ephemeral"}}],
        },
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "Where is my flight?"}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"id": "call_1", "name": "look_up", "args": ARGUMENTS}}],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "call_1", "name": "look_up", "response": {"output": "Gate 7 👍"}}}
            ],
        },
        {"role": "model", "parts": [{"text": "At gate 7."}]},
    ],
    "acontext": [
        {"role": "user", "parts": [{"type": "text", "text": "Where is my flight?"}]},
        {
            "role": "assistant",
            "parts": [
                {
                    "type": "tool-call",
                    "meta": {"id": "call_1", "name": "look_up", "arguments": json.dumps(ARGUMENTS)},
                }
            ],
        },
        {
            "role": "user",
            "parts": [{"type": "tool-result", "text": "Gate 7 👍", "meta": {"tool_call_id": "call_1"}}],
        },
        {"role": "assistant", "parts": [{"type": "text", "text": "At gate 7."}]},
    ],
}

# What each of them says, whichever format it is read in.
SAID = [
    ("user", "text", "Where is my flight?"),
    ("assistant", "call", ("call_1", "look_up", ARGUMENTS)),
    ("user", "result", ("call_1", "Gate 7 👍")),
    ("assistant", "text", "At gate 7."),
]


def said_in(message_format: str, items: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    """What a conversation says: texts, calls and results, each with the side that said it."""
    read = {"openai": openai_says, "anthropic": anthropic_says, "gemini": gemini_says, "acontext": parts_say}
    return [one for item in items for one in read[message_format](item)]


def openai_says(item: dict[str, Any]) -> list[tuple[str, str, Any]]:
    role, content = item["role"], item.get("content")
    texts = [content] if isinstance(content, str) else [block["text"] for block in content or []]
    if role == "tool":
        return [("user", "result", (item["tool_call_id"], "".join(texts)))]
    calls = [
        (role, "call", (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])))
        for call in item.get("tool_calls") or []
    ]
    return [(role, "text", text) for text in texts] + calls


def anthropic_says(item: dict[str, Any]) -> list[tuple[str, str, Any]]:
    role, content = item["role"], item["content"]
    says: list[tuple[str, str, Any]] = []
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if block["type"] == "text":
            says.append((role, "text", block["text"]))
        elif block["type"] == "tool_use":
            says.append((role, "call", (block["id"], block["name"], block["input"])))
        else:
            assert block["type"] == "tool_result", block
            inner = block["content"]
            text = inner if isinstance(inner, str) else "".join(piece["text"] for piece in inner)
            says.append((role, "result", (block["tool_use_id"], text)))
    return says


def gemini_says(item: dict[str, Any]) -> list[tuple[str, str, Any]]:
    role = {"user": "user", "model": "assistant"}[item["role"]]
    says: list[tuple[str, str, Any]] = []
    for part in item["parts"]:
        if "text" in part:
            says.append((role, "text", part["text"]))
        elif "functionCall" in part:
            call = part["functionCall"]
            says.append((role, "call", (call["id"], call["name"], call["args"])))
        else:
            result = part["functionResponse"]
            same(result["name"], "look_up")
            says.append((role, "result", (result["id"], result["response"]["output"])))
    return says


def parts_say(item: dict[str, Any]) -> list[tuple[str, str, Any]]:
    role = item["role"]
    says: list[tuple[str, str, Any]] = []
    for part in item["parts"]:
        meta = part.get("meta") or {}
        if part["type"] == "text":
            says.append((role, "text", part["text"]))
        elif part["type"] == "tool-call":
            says.append((role, "call", (meta["id"], meta["name"], json.loads(meta["arguments"]))))
        else:
            same(part["type"], "tool-result")
            says.append((role, "result", (meta["tool_call_id"], part["text"])))
    return says
