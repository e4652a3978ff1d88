"""Users, and learning spaces."""

import uuid

from acontext import AcontextClient

from checks import check, new_name, pages, refused, same, walked


@check("users.list: users appear on first use, once, and page by page")
def _(client: AcontextClient) -> None:
    names = [new_name() for _ in range(3)]
    for name in names:
        client.sessions.create(user=name)
    client.learning_spaces.create(user=names[0])
    listed = [user for page in pages(client.users.list, limit=200) for user in page.items]
    same([user.identifier for user in listed if user.identifier in names], names)
    ids = [user.id for user in listed]
    same(len(set(ids)), len(ids))
    newest = [user for page in pages(client.users.list, limit=200, time_desc=True) for user in page.items]
    same([user.id for user in newest], ids[::-1])
    page = client.users.list(limit=2)
    same((len(page.items), page.has_more), (2, True))
    same(client.users.list(limit=1, cursor=page.next_cursor).items[0].id, ids[2])
    everybody = client.users.list()
    assert {user.id for user in everybody.items} >= set(ids)
    same(everybody.has_more, False)


@check("users.get_resources: counts what the user has")
def _(client: AcontextClient) -> None:
    user = new_name()
    for _ in range(2):
        client.sessions.create(user=user)
    client.learning_spaces.create(user=user)
    counts = client.users.get_resources(user).counts
    same((counts.sessions_count, counts.disks_count, counts.skills_count), (2, 0, 0))
    refused(404, "user_not_found", lambda: client.users.get_resources(new_name()))


@check("users.delete: erases the user's sessions and learning spaces, and nobody else's")
def _(client: AcontextClient) -> None:
    user, other = new_name(), new_name()
    mine, others = client.sessions.create(user=user), client.sessions.create(user=other)
    client.sessions.store_message(mine.id, blob={"role": "user", "content": "Hello"})
    space = client.learning_spaces.create(user=user)
    same(client.users.delete(user), None)
    refused(404, "session_not_found", lambda: client.sessions.get_configs(mine.id))
    refused(404, "learning_space_not_found", lambda: client.learning_spaces.get(space.id))
    refused(404, "user_not_found", lambda: client.users.delete(user))
    same(client.sessions.list(user=user).items, [])
    same(client.sessions.get_configs(others.id), others)


@check("users: identifiers with slashes, spaces, percent signs, commas and other scripts")
def _(client: AcontextClient) -> None:
    for text in ("a/b", "100% & more?", "übung #1", "利用者", "a+b@example.org", "ls"):
        user = text if text == "ls" else f"{text} {uuid.uuid4()}"
        session = client.sessions.create(user=user)
        assert session.id in walked(client.sessions.list, user=user, limit=200), user
        assert client.users.get_resources(user).counts.sessions_count >= 1, user
        client.users.delete(user)
        refused(404, "session_not_found", lambda: client.sessions.get_configs(session.id))


@check("learning_spaces.create: with nothing, and with user and meta; get reads it")
def _(client: AcontextClient) -> None:
    empty = client.learning_spaces.create()
    same((empty.user_id, empty.meta), (None, {}))
    meta = {"team": "ops", "n": 2**60, "nested": {"list": [None]}}
    space = client.learning_spaces.create(user=new_name(), meta=meta)
    same(space.meta, meta)
    assert space.user_id and space.created_at and space.updated_at
    same(client.learning_spaces.get(space.id), space)


@check("learning_spaces.list: by user and filter_by_meta, in both orders, page by page")
def _(client: AcontextClient) -> None:
    user = new_name()
    spaces = client.learning_spaces
    ids = [spaces.create(user=user, meta={"n": n, "deep": {"even": n % 2 == 0}}).id for n in range(5)]
    same(walked(spaces.list, user=user), ids)
    same(walked(spaces.list, user=user, limit=2), ids)
    same(walked(spaces.list, user=user, limit=2, time_desc=True), ids[::-1])
    evens = {"deep": {"even": True}}
    same(walked(spaces.list, user=user, filter_by_meta=evens, limit=1), ids[::2])
    same(walked(spaces.list, user=user, filter_by_meta={}), ids)
    same(spaces.list(user=new_name()).items, [])
    cursor = spaces.list(user=user, limit=2).next_cursor
    refused(400, "invalid_cursor", lambda: spaces.list(user=user, cursor=cursor, time_desc=True))
    refused(400, "invalid_request", lambda: spaces.list(limit=201))


@check("learning_spaces.update: merges, and None deletes a key")
def _(client: AcontextClient) -> None:
    space = client.learning_spaces.create(meta={"a": 1, "b": 2})
    updated = client.learning_spaces.update(space.id, meta={"a": None, "c": 3})
    same((updated.id, updated.meta), (space.id, {"b": 2, "c": 3}))
    assert updated.updated_at > space.updated_at
    same(client.learning_spaces.get(space.id), updated)


@check("learning_spaces.delete: the space is gone, and unknown ids are 404 learning_space_not_found")
def _(client: AcontextClient) -> None:
    space = client.learning_spaces.create()
    same(client.learning_spaces.delete(space.id), None)
    for call in (
        lambda: client.learning_spaces.get(space.id),
        lambda: client.learning_spaces.update(space.id, meta={}),
        lambda: client.learning_spaces.delete(space.id),
    ):
        refused(404, "learning_space_not_found", call)


@check("learning_spaces.learn: a session is learnt from once, waited for, and listed")
def _(client: AcontextClient) -> None:
    space, session = client.learning_spaces.create(), client.sessions.create()
    record = client.learning_spaces.learn(space.id, session_id=session.id)
    same((record.learning_space_id, record.session_id, record.status), (space.id, session.id, "pending"))
    refused(409, "session_in_space", lambda: client.learning_spaces.learn(space.id, session_id=session.id))
    done = client.learning_spaces.wait_for_learning(space.id, session_id=session.id, timeout=30)
    same((done.id, done.status), (record.id, "completed"))
    same(client.learning_spaces.get_session(space.id, session_id=session.id), done)
    same([one.id for one in client.learning_spaces.list_sessions(space.id)], [record.id])
