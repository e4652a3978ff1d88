"""Sessions and their events."""

import uuid

from acontext import AcontextClient, DiskEvent, TextEvent

from checks import check, new_name, pages, refused, same, settings, walked


def five_sessions(client: AcontextClient) -> tuple[str, list[str]]:
    user = new_name()
    made = [client.sessions.create(user=user, configs={"n": n, "even": n % 2 == 0}) for n in range(5)]
    return user, [session.id for session in made]


@check("ping: answers pong")
def _(client: AcontextClient) -> None:
    same(client.ping(), "pong")


@check("authentication: an unknown API key is 401 unauthorized")
def _(_: AcontextClient) -> None:
    base_url, _key = settings()
    with AcontextClient(base_url=base_url, api_key="sk-nobody") as stranger:
        refused(401, "unauthorized", stranger.ping)


@check("sessions.create: with nothing given")
def _(client: AcontextClient) -> None:
    session = client.sessions.create()
    same((session.user_id, session.configs, session.disable_task_tracking), (None, {}, False))
    assert session.project_id and session.created_at and session.updated_at
    same(client.sessions.get_configs(session.id), session)


@check("sessions.create: with user, configs, disable_task_tracking and use_uuid")
def _(client: AcontextClient) -> None:
    wanted = str(uuid.uuid4())
    configs = {"agent": "bot", "nested": {"list": [1, "two", None]}}
    session = client.sessions.create(
        user=new_name(), configs=configs, disable_task_tracking=True, use_uuid=wanted
    )
    same((session.id, session.configs, session.disable_task_tracking), (wanted, configs, True))
    assert session.user_id
    same(client.sessions.get_configs(wanted), session)


@check("sessions.create: a use_uuid again is the same session, or 409 session_exists if it says otherwise")
def _(client: AcontextClient) -> None:
    first = client.sessions.create(configs={"a": 1})
    again = client.sessions.create(configs={"a": 1}, use_uuid=first.id)
    same(again, first)
    refused(409, "session_exists", lambda: client.sessions.create(configs={"a": 2}, use_uuid=first.id))
    refused(400, "invalid_request", lambda: client.sessions.create(use_uuid="not-a-uuid"))


@check("sessions.create: configs come back as they were sent, big numbers and emoji included")
def _(client: AcontextClient) -> None:
    configs = {"big": 2**70, "small": 1e-7, "emoji": "👩‍🚀", "empty": {}, "deep": [[{"x": [None, True]}]], "": ""}
    session = client.sessions.create(configs=configs)
    same(client.sessions.get_configs(session.id).configs, configs)


@check("sessions.list: of a user, oldest and newest first")
def _(client: AcontextClient) -> None:
    user, ids = five_sessions(client)
    same([session.id for session in client.sessions.list(user=user).items], ids)
    same([session.id for session in client.sessions.list(user=user, time_desc=False).items], ids)
    same([session.id for session in client.sessions.list(user=user, time_desc=True).items], ids[::-1])
    same(client.sessions.list(user=new_name()).items, [])


@check("sessions.list: filter_by_configs is containment, nested, case- and type-sensitive")
def _(client: AcontextClient) -> None:
    mark = new_name("mark")
    session = client.sessions.create(configs={"mark": mark, "n": 1, "deep": {"a": "B", "c": [1, 2]}})
    client.sessions.create(configs={"mark": mark})

    def found(**wanted: object) -> int:
        return len(client.sessions.list(filter_by_configs={"mark": mark, **wanted}).items)

    same(client.sessions.list(filter_by_configs={"mark": mark, "deep": {"a": "B"}}).items, [session])
    same((found(), found(n=1), found(n="1"), found(deep={"a": "b"}), found(deep={"c": [2]})), (2, 1, 0, 0, 1))


@check("sessions.list: user and filter_by_configs together; an empty filter filters nothing")
def _(client: AcontextClient) -> None:
    user, ids = five_sessions(client)
    other, _ids = five_sessions(client)
    evens = client.sessions.list(user=user, filter_by_configs={"even": True})
    same([session.id for session in evens.items], ids[::2])
    same([session.id for session in client.sessions.list(user=user, filter_by_configs={}).items], ids)
    same(len(client.sessions.list(user=other, filter_by_configs={"n": 4}).items), 1)


@check("sessions.list: limit and cursor walk every session once, in both orders and with every filter")
def _(client: AcontextClient) -> None:
    user, ids = five_sessions(client)
    same([len(page.items) for page in pages(client.sessions.list, user=user, limit=2)], [2, 2, 1])
    same(walked(client.sessions.list, user=user, limit=2), ids)
    same(walked(client.sessions.list, user=user, limit=1, time_desc=True), ids[::-1])
    odds = {"even": False}
    same(walked(client.sessions.list, user=user, limit=1, filter_by_configs=odds), ids[1::2])
    same(walked(client.sessions.list, user=user, limit=200), ids)


@check("sessions.list: 20 a page unless limit says otherwise, of all users without a filter")
def _(client: AcontextClient) -> None:
    mark = new_name("mark")
    ids = [client.sessions.create(configs={"mark": mark}).id for _ in range(21)]
    page = client.sessions.list(filter_by_configs={"mark": mark})
    same((len(page.items), page.has_more), (20, True))
    last = client.sessions.list(filter_by_configs={"mark": mark}, cursor=page.next_cursor)
    same(([session.id for session in last.items], last.has_more), (ids[20:], False))
    newest = client.sessions.list(time_desc=True, limit=200)
    assert set(ids) <= {session.id for session in newest.items}


@check("sessions.list: a limit out of range, a foreign or damaged cursor are 400")
def _(client: AcontextClient) -> None:
    user, _ids = five_sessions(client)
    for limit in (0, 201, -1):
        refusal = refused(400, "invalid_request", lambda: client.sessions.list(user=user, limit=limit))
        assert "limit" in str(refusal), refusal
    cursor = client.sessions.list(user=user, limit=2).next_cursor
    assert cursor
    for query in ({"user": user, "time_desc": True}, {"user": new_name()}, {}):
        refused(400, "invalid_cursor", lambda: client.sessions.list(cursor=cursor, **query))
    refused(400, "invalid_cursor", lambda: client.sessions.list(user=user, cursor=cursor[:-1]))


@check("sessions.update_configs: replaces; patch_configs: merges, and None deletes a key")
def _(client: AcontextClient) -> None:
    session = client.sessions.create(configs={"old": 1})
    same(client.sessions.update_configs(session.id, configs={"a": 1, "b": {"c": 2}}), None)
    same(client.sessions.get_configs(session.id).configs, {"a": 1, "b": {"c": 2}})
    merged = {"b": {"d": 3}, "e": "new"}
    same(client.sessions.patch_configs(session.id, configs={"a": None, **merged}), merged)
    changed = client.sessions.get_configs(session.id)
    same(changed.configs, merged)
    assert changed.updated_at > session.updated_at


@check("sessions.copy: has the log, and is independent of what it was copied from")
def _(client: AcontextClient) -> None:
    session = client.sessions.create(user=new_name(), configs={"a": 1})
    client.sessions.store_message(session.id, blob={"role": "user", "content": "Hello"}, meta={"m": 1})
    client.sessions.add_event(session.id, TextEvent(text="one"))
    copied = client.sessions.copy(session.id)
    same(copied.old_session_id, session.id)
    copy = client.sessions.get_configs(copied.new_session_id)
    same((copy.user_id, copy.configs), (session.user_id, {"a": 1}))
    client.sessions.delete(session.id)
    read = client.sessions.get_messages(copy.id, with_events=True)
    same((read.items, read.metas), ([{"role": "user", "content": "Hello"}], [{"m": 1}]))
    same([event.data for event in read.events or []], [{"text": "one"}])


@check("sessions: no tasks are extracted, none are under way, and a flush is done at once")
def _(client: AcontextClient) -> None:
    session = client.sessions.create()
    client.sessions.store_message(session.id, blob={"role": "user", "content": "Hello"})
    tasks = client.sessions.get_tasks(session.id, limit=2, time_desc=True)
    same((tasks.items, tasks.has_more), ([], False))
    same(client.sessions.get_session_summary(session.id), "")
    status = client.sessions.messages_observing_status(session.id)
    same((status.observed, status.in_process, status.pending), (0, 0, 0))
    flushed = client.sessions.flush(session.id)
    same((flushed.status, flushed.errmsg), (0, ""))


@check("sessions.delete: the session is gone, and unknown ids are 404 session_not_found")
def _(client: AcontextClient) -> None:
    session = client.sessions.create()
    same(client.sessions.delete(session.id), None)
    for call in (
        lambda: client.sessions.get_configs(session.id),
        lambda: client.sessions.update_configs(session.id, configs={}),
        lambda: client.sessions.patch_configs(session.id, configs={}),
        lambda: client.sessions.delete(session.id),
        lambda: client.sessions.copy(session.id),
        lambda: client.sessions.add_event(session.id, TextEvent(text="late")),
        lambda: client.sessions.get_events(session.id),
        lambda: client.sessions.store_message(session.id, blob={"role": "user", "content": "late"}),
        lambda: client.sessions.get_messages(session.id),
        lambda: client.sessions.get_token_counts(session.id),
        lambda: client.sessions.patch_message_meta(session.id, str(uuid.uuid4()), meta={}),
    ):
        refused(404, "session_not_found", call)


class PlainEvent:
    """What the client takes for an event: anything with to_payload()."""

    def __init__(self, event_type: str, data: object) -> None:
        self.payload = {"type": event_type, "data": data}

    def to_payload(self) -> dict[str, object]:
        return self.payload


@check("sessions.add_event: text, disk and other events")
def _(client: AcontextClient) -> None:
    session = client.sessions.create()
    disk = str(uuid.uuid4())
    added = [
        client.sessions.add_event(session.id, TextEvent(text="Grüße 👋")),
        client.sessions.add_event(session.id, DiskEvent(disk_id=disk, path="/a.txt")),
        client.sessions.add_event(session.id, DiskEvent(disk_id=disk, path="/b.txt", note="seen")),
        client.sessions.add_event(session.id, PlainEvent("order.cancelled", {"order": 2**64, "ok": True})),
    ]
    same([event.type for event in added], ["text_event", "disk_event", "disk_event", "order.cancelled"])
    same(added[0].data, {"text": "Grüße 👋"})
    same(added[2].data, {"disk_id": disk, "path": "/b.txt", "note": "seen"})
    same(added[3].data, {"order": 2**64, "ok": True})
    same({(event.session_id, event.project_id) for event in added}, {(session.id, session.project_id)})
    same(client.sessions.get_events(session.id).items, added)
    refused(400, "invalid_request", lambda: client.sessions.add_event(session.id, PlainEvent("x", [1])))
    refused(400, "invalid_request", lambda: client.sessions.add_event(session.id, PlainEvent("", {})))


@check("sessions.get_events: in order, with limit, cursor and time_desc")
def _(client: AcontextClient) -> None:
    session = client.sessions.create()
    same(client.sessions.get_events(session.id).items, [])
    ids = [client.sessions.add_event(session.id, TextEvent(text=str(n))).id for n in range(5)]

    def events(**query: object) -> object:
        return client.sessions.get_events(session.id, **query)

    same(walked(events), ids)
    same(walked(events, limit=2), ids)
    same(walked(events, limit=2, time_desc=True), ids[::-1])
    cursor = events(limit=2).next_cursor
    refused(400, "invalid_cursor", lambda: events(cursor=cursor, time_desc=True))
    refused(400, "invalid_request", lambda: events(limit=1_001))
