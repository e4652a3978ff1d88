"""Each method of the client, and the operation that it sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from annals import Annals

from ..concurrency import Result

ID = "01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d"
EVENT: dict[str, Any] = {"type": "note", "data": {"text": "hello"}}
MESSAGE: dict[str, Any] = {"blob": {"role": "user", "content": "Hello"}, "format": "openai", "meta": {"a": 1}}
UNKEYED = False
KEYED = True

Method = Callable[[Annals], Result]

METHODS: list[tuple[str, Method, object, bool]] = [
    ("GET /ping", lambda annals: annals.ping(), None, UNKEYED),
    ("GET /key", lambda annals: annals.key(), None, UNKEYED),
    ("GET /keys", lambda annals: annals.keys.list(), None, UNKEYED),
    ("POST /keys", lambda annals: annals.keys.create(name="a"), {"name": "a"}, UNKEYED),
    (f"DELETE /keys/{ID}", lambda annals: annals.keys.revoke(ID), None, UNKEYED),
    ("GET /members", lambda annals: annals.members.list(), None, UNKEYED),
    (
        "POST /members",
        lambda annals: annals.members.invite(email="ada@example.com", role="viewer"),
        {"email": "ada@example.com", "role": "viewer"},
        UNKEYED,
    ),
    (f"PATCH /members/{ID}", lambda annals: annals.members.change(ID, "admin"), {"role": "admin"}, UNKEYED),
    (f"DELETE /members/{ID}", lambda annals: annals.members.remove(ID), None, UNKEYED),
    ("GET /personal_tokens", lambda annals: annals.personal_tokens.list(), None, UNKEYED),
    (
        "POST /personal_tokens",
        lambda annals: annals.personal_tokens.create(name="a", expires_in_days=30),
        {"name": "a", "expires_in_days": 30},
        UNKEYED,
    ),
    (f"DELETE /personal_tokens/{ID}", lambda annals: annals.personal_tokens.revoke(ID), None, UNKEYED),
    ("GET /redaction", lambda annals: annals.redaction.get(), None, UNKEYED),
    ("PUT /redaction", lambda annals: annals.redaction.set(), {}, UNKEYED),
    ("DELETE /redaction", lambda annals: annals.redaction.delete(), None, UNKEYED),
    (
        "POST /tokens",
        lambda annals: annals.tokens.create(for_={"session_id": ID}, scopes=["read"], ttl_s=60),
        {"for": {"session_id": ID}, "scopes": ["read"], "ttl_s": 60},
        UNKEYED,
    ),
    ("GET /runs?state=waiting", lambda annals: annals.runs.list(state="waiting").page(), None, UNKEYED),
    (
        f"POST /session/{ID}/lease",
        lambda annals: annals.runs.take_lease(ID, owner="a", ttl_ms=5000, wait_ms=1000),
        {"owner": "a", "ttl_ms": 5000, "wait_ms": 1000},
        UNKEYED,
    ),
    (
        f"PUT /session/{ID}/lease",
        lambda annals: annals.runs.renew_lease(ID, fence=7, ttl_ms=5000),
        {"fence": 7, "ttl_ms": 5000},
        UNKEYED,
    ),
    (f"DELETE /session/{ID}/lease?fence=7", lambda annals: annals.runs.release_lease(ID, 7), None, UNKEYED),
    (
        f"POST /session/{ID}/inbox",
        lambda annals: annals.runs.send(
            ID, {"id": ID, "kind": "event", "mode": "queue", "type": "note", "data": {"text": "hello"}}
        ),
        {"id": ID, "kind": "event", "mode": "queue", **EVENT},
        UNKEYED,
    ),
    (f"GET /session/{ID}/inbox", lambda annals: annals.runs.inbox(ID).page(), None, UNKEYED),
    (
        f"DELETE /session/{ID}/inbox/{ID}?reason=late",
        lambda annals: annals.runs.withdraw(ID, ID, reason="late"),
        None,
        UNKEYED,
    ),
    (
        "POST /work/claim",
        lambda annals: annals.runs.claim(owner="a", ttl_ms=5000),
        {"owner": "a", "ttl_ms": 5000},
        UNKEYED,
    ),
    (
        f"POST /session/{ID}/requests",
        lambda annals: annals.runs.request(ID, id=ID, kind="question", text="Why?"),
        {"id": ID, "kind": "question", "text": "Why?"},
        UNKEYED,
    ),
    ("GET /requests", lambda annals: annals.runs.requests().page(), None, UNKEYED),
    (f"GET /requests/{ID}", lambda annals: annals.runs.get_request(ID), None, UNKEYED),
    (
        f"POST /requests/{ID}/resolve",
        lambda annals: annals.runs.resolve(ID, id=ID, decision="approve", by="ada"),
        {"id": ID, "decision": "approve", "by": "ada"},
        UNKEYED,
    ),
    (
        "POST /requests/resolve",
        lambda annals: annals.runs.resolve_all([{"request_id": ID, "id": ID, "decision": "deny"}]),
        {"resolutions": [{"request_id": ID, "id": ID, "decision": "deny"}]},
        UNKEYED,
    ),
    (
        f"POST /session/{ID}/entries",
        lambda annals: annals.sessions.append_batch(ID, apply=[ID], fence=7),
        {"apply": [ID]},
        KEYED,
    ),
    ("GET /tools?limit=5", lambda annals: annals.tools(limit=5), None, UNKEYED),
    ("GET /tools/a%2Fb?user=ada", lambda annals: annals.tool("a/b", user="ada"), None, UNKEYED),
    ("GET /usage", lambda annals: annals.usage(), None, UNKEYED),
    ("GET /usage?days=7", lambda annals: annals.usage(days=7), None, UNKEYED),
    ("GET /session", lambda annals: annals.sessions.list().page(), None, UNKEYED),
    ("POST /session", lambda annals: annals.sessions.create(), {}, KEYED),
    ("POST /session", lambda annals: annals.sessions.create(user="ada"), {"user": "ada"}, KEYED),
    (f"GET /session/{ID}", lambda annals: annals.sessions.get(ID), None, UNKEYED),
    (
        f"PATCH /session/{ID}",
        lambda annals: annals.sessions.update(ID, expires_in_s=None),
        {"expires_in_s": None},
        UNKEYED,
    ),
    (f"DELETE /session/{ID}", lambda annals: annals.sessions.delete(ID), None, UNKEYED),
    (f"POST /session/{ID}/copy", lambda annals: annals.sessions.copy(ID), None, KEYED),
    (f"POST /session/{ID}/copy", lambda annals: annals.sessions.fork(ID, up_to_seq=3), {"up_to_seq": 3}, KEYED),
    (f"GET /session/{ID}/configs", lambda annals: annals.sessions.configs.get(ID), None, UNKEYED),
    (
        f"PUT /session/{ID}/configs",
        lambda annals: annals.sessions.configs.replace(ID, {"a": 1}),
        {"configs": {"a": 1}},
        UNKEYED,
    ),
    (
        f"PATCH /session/{ID}/configs",
        lambda annals: annals.sessions.configs.merge(ID, {"a": None}),
        {"configs": {"a": None}},
        UNKEYED,
    ),
    (f"POST /session/{ID}/events", lambda annals: annals.sessions.append(ID, **EVENT), EVENT, KEYED),
    (f"POST /session/{ID}/messages", lambda annals: annals.sessions.append_message(ID, **MESSAGE), MESSAGE, KEYED),
    (
        f"POST /session/{ID}/entries",
        lambda annals: annals.sessions.append_batch(ID, ({"kind": "event", "type": "a", "data": {}},)),
        {"entries": [{"kind": "event", "type": "a", "data": {}}]},
        KEYED,
    ),
    ("GET /webhooks", lambda annals: annals.webhooks.list(), None, UNKEYED),
    (
        "POST /webhooks",
        lambda annals: annals.webhooks.create(url="https://example.com", events=["message"]),
        {"url": "https://example.com", "events": ["message"]},
        UNKEYED,
    ),
    (f"DELETE /webhooks/{ID}", lambda annals: annals.webhooks.delete(ID), None, UNKEYED),
    (
        "POST /entries",
        lambda annals: annals.sessions.append_to_sessions(
            ({"session_id": ID, "entries": [{"kind": "event", "type": "a", "data": {}}], "if_match": 0},)
        ),
        {"appends": [{"session_id": ID, "entries": [{"kind": "event", "type": "a", "data": {}}], "if_match": 0}]},
        KEYED,
    ),
    (
        "POST /entries?with_items=false",
        lambda annals: annals.sessions.append_to_sessions(({"session_id": ID, "entries": []},), with_items=False),
        {"appends": [{"session_id": ID, "entries": []}]},
        KEYED,
    ),
    (f"GET /session/{ID}/events", lambda annals: annals.sessions.events(ID).page(), None, UNKEYED),
    (
        f"GET /session/{ID}/latest?key_prefix=a",
        lambda annals: annals.sessions.latest(ID, key_prefix="a").page(),
        None,
        UNKEYED,
    ),
    (f"POST /session/{ID}/retractions", lambda annals: annals.sessions.retract(ID, last=1), {"last": 1}, KEYED),
    (f"GET /session/{ID}/proof?seq=2", lambda annals: annals.sessions.proof(ID, 2), None, UNKEYED),
    (
        f"POST /session/{ID}/compactions",
        lambda annals: annals.sessions.compact(ID, to_seq=3, summary={"blob": {"role": "user", "content": "So far."}}),
        {"to_seq": 3, "summary": {"blob": {"role": "user", "content": "So far."}}},
        KEYED,
    ),
    (f"GET /session/{ID}/timeline", lambda annals: annals.sessions.timeline(ID).page(), None, UNKEYED),
    (
        f"GET /session/{ID}/messages?limit=200&format=gemini&fit=true",
        lambda annals: annals.sessions.messages(ID, format="gemini", fit=True).page(),
        None,
        UNKEYED,
    ),
    (
        f"PATCH /session/{ID}/messages/{ID}/meta",
        lambda annals: annals.sessions.patch_message_meta(ID, ID, {"a": 1}),
        {"meta": {"a": 1}},
        UNKEYED,
    ),
    (
        f"GET /session/{ID}/context?max_tokens=9&clear_tool_inputs=false",
        lambda annals: annals.sessions.context(ID, max_tokens=9, clear_tool_inputs=False),
        None,
        UNKEYED,
    ),
    (f"GET /session/{ID}/token_counts", lambda annals: annals.sessions.token_counts(ID), None, UNKEYED),
    ("GET /learning_spaces", lambda annals: annals.learning_spaces.list().page(), None, UNKEYED),
    ("POST /learning_spaces", lambda annals: annals.learning_spaces.create(), {}, KEYED),
    (f"GET /learning_spaces/{ID}", lambda annals: annals.learning_spaces.get(ID), None, UNKEYED),
    (
        f"PATCH /learning_spaces/{ID}",
        lambda annals: annals.learning_spaces.merge(ID, {"a": 1}),
        {"meta": {"a": 1}},
        UNKEYED,
    ),
    (f"DELETE /learning_spaces/{ID}", lambda annals: annals.learning_spaces.delete(ID), None, UNKEYED),
    (
        f"POST /learning_spaces/{ID}/learn",
        lambda annals: annals.learning_spaces.learn(ID, ID),
        {"session_id": ID},
        UNKEYED,
    ),
    (f"GET /learning_spaces/{ID}/sessions", lambda annals: annals.learning_spaces.sessions(ID), None, UNKEYED),
    (f"GET /learning_spaces/{ID}/sessions/{ID}", lambda annals: annals.learning_spaces.session(ID, ID), None, UNKEYED),
    (f"GET /learning_spaces/{ID}/policy", lambda annals: annals.learning_spaces.policy(ID), None, UNKEYED),
    (
        f"PUT /learning_spaces/{ID}/policy",
        lambda annals: annals.learning_spaces.set_policy(ID, mode="off"),
        {"mode": "off"},
        UNKEYED,
    ),
    (f"GET /learning_spaces/{ID}/usage?days=7", lambda annals: annals.learning_spaces.usage(ID, days=7), None, UNKEYED),
    (f"GET /learning_spaces/{ID}/skills", lambda annals: annals.learning_spaces.skills(ID), None, UNKEYED),
    (
        f"POST /learning_spaces/{ID}/skills",
        lambda annals: annals.learning_spaces.include_skill(ID, ID),
        {"skill_id": ID},
        UNKEYED,
    ),
    (
        f"DELETE /learning_spaces/{ID}/skills/{ID}",
        lambda annals: annals.learning_spaces.exclude_skill(ID, ID),
        None,
        UNKEYED,
    ),
    ("GET /agent_skills?user=ada", lambda annals: annals.skills.list(user="ada").page(), None, UNKEYED),
    (f"GET /agent_skills/{ID}", lambda annals: annals.skills.get(ID), None, UNKEYED),
    (
        f"GET /agent_skills/{ID}/file?file_path=SKILL.md",
        lambda annals: annals.skills.file(ID, "SKILL.md"),
        None,
        UNKEYED,
    ),
    (f"DELETE /agent_skills/{ID}", lambda annals: annals.skills.delete(ID), None, UNKEYED),
    (
        f"GET /learning_spaces/{ID}/statements?state=active",
        lambda annals: annals.learning_spaces.statements(ID, state="active").page(),
        None,
        UNKEYED,
    ),
    (
        f"POST /learning_spaces/{ID}/statements",
        lambda annals: annals.learning_spaces.add_statement(ID, text="Ask first.", kind="procedure"),
        {"text": "Ask first.", "kind": "procedure"},
        UNKEYED,
    ),
    (
        f"PATCH /statements/{ID}",
        lambda annals: annals.learning_spaces.change_statement(ID, state="active"),
        {"state": "active"},
        UNKEYED,
    ),
    (
        f"GET /learning_spaces/{ID}/context?q=refund",
        lambda annals: annals.learning_spaces.context(ID, q="refund"),
        None,
        UNKEYED,
    ),
    (
        f"POST /learning_spaces/{ID}/feedback",
        lambda annals: annals.learning_spaces.feedback(ID, statement_ids=[ID], session_id=ID, helped=True),
        {"statement_ids": [ID], "session_id": ID, "helped": True},
        UNKEYED,
    ),
    (f"GET /learning_spaces/{ID}/history", lambda annals: annals.learning_spaces.history(ID).page(), None, UNKEYED),
    ("GET /search?q=refund", lambda annals: annals.search(q="refund").page(), None, UNKEYED),
    ("GET /search?q=refund&mode=recall&group=session", lambda annals: annals.recall(q="refund"), None, UNKEYED),
    ("GET /user/ls?limit=200", lambda annals: annals.users.list().page(), None, UNKEYED),
    ("GET /user/ada/resources", lambda annals: annals.users.resources("ada"), None, UNKEYED),
    ("DELETE /user/ada", lambda annals: annals.users.erase("ada"), None, UNKEYED),
]
