"""Nothing is lost or stored twice when connections break between the client and the service."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals import Annals, AnnalsError

from ..concurrency import sync_run, together
from ..cutting_proxy import CUTS, Cut, CuttingProxy
from ..service import Service, new_name

pytestmark = pytest.mark.anyio


@pytest.fixture
def proxy(service: Service) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(service.url)
    yield proxy
    proxy.close()


def behind(proxy: CuttingProxy, service: Service) -> Annals:
    return Annals(url=proxy.url, token=service.token, retries=30)


APPENDS = ("append", "append_message", "append_batch", "conditional append")


def append(annals: Annals, session_id: str, how: str, last: int) -> list[int]:
    """The seqs of what was appended."""
    sessions = annals.sessions
    if how == "append_message":
        return [(sessions.append_message(session_id, blob={"role": "user", "content": "Hi"}))["seq"]]
    if how == "append_batch":
        batch = sessions.append_batch(session_id, [{"kind": "event", "type": str(n), "data": {}} for n in "ab"])
        return [item["seq"] for item in batch["items"]]
    if_match = last if how == "conditional append" else None
    return [(sessions.append(session_id, type="note", data={"n": last}, if_match=if_match))["seq"]]


@given(st.lists(st.tuples(st.sampled_from(APPENDS), st.lists(st.sampled_from(CUTS), max_size=3)), max_size=5))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_retries_never_double_an_append(
    proxy: CuttingProxy, service: Service, steps: list[tuple[str, list[Cut]]]
) -> None:
    def scenario() -> None:
        with behind(proxy, service) as annals:
            annals = annals.with_options(attempt_timeout_s=9)
            session_id = (annals.sessions.create())["id"]
            answered: list[int] = []
            for how, cuts in steps:
                proxy.cut(*cuts)
                answered += append(annals, session_id, how, len(answered))
            stored = [item["seq"] for item in annals.sessions.timeline(session_id)]
            assert stored == answered == [*range(1, len(answered) + 1)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("annals._retry._PAUSE_S_MIN", 0.001)
        sync_run(scenario())


def test_many_appends_at_once_over_a_bad_connection_are_each_stored_once(proxy: CuttingProxy, service: Service) -> None:
    with behind(proxy, service) as annals:
        session_id = (annals.sessions.create())["id"]
        steps: list[Cut | None] = [CUTS[n * 7 % 5] if n * 7 % 5 < len(CUTS) else None for n in range(40)]
        proxy.cut(*steps)
        appended = together(
            *[partial(annals.sessions.append, session_id, type="note", data={"n": n}) for n in range(20)]
        )
        proxy.cut()
        stored = [event for event in annals.sessions.events(session_id)]
    assert stored == sorted(appended, key=lambda event: event["seq"])
    assert {event["data"]["n"] for event in stored} == {*range(20)}


@pytest.mark.parametrize("cut", CUTS)
def test_creations_happen_once_and_changes_take_effect(
    proxy: CuttingProxy, service: Service, annals: Annals, cut: Cut
) -> None:
    user = new_name()
    with behind(proxy, service) as cut_off:
        proxy.cut(cut)
        session_id = (cut_off.sessions.create(user=user))["id"]
        proxy.cut(cut, cut)
        copy_id = (cut_off.sessions.copy(session_id))["new_session_id"]
        proxy.cut(cut)
        space = cut_off.learning_spaces.create(user=user)
        assert [session["id"] for session in annals.sessions.list(user=user)] == [session_id, copy_id]
        assert [each for each in annals.learning_spaces.list(user=user)] == [space]
        proxy.cut(cut)
        cut_off.sessions.configs.replace(session_id, {"a": 1, "b": 2})
        proxy.cut(cut)
        assert cut_off.sessions.configs.merge(session_id, {"a": None}) == {"configs": {"b": 2}}
        proxy.cut(None, cut)
        listed = cut_off.sessions.list(user=user, limit=1)
        assert [session["id"] for session in listed] == [session_id, copy_id]
        proxy.cut(cut)
        cut_off.sessions.delete(session_id)
        assert [session["id"] for session in annals.sessions.list(user=user)] == [copy_id]


def test_an_erasure_whose_answer_is_lost_raises_but_has_happened(
    proxy: CuttingProxy, service: Service, annals: Annals
) -> None:
    user = new_name()
    annals.sessions.create(user=user)
    with behind(proxy, service) as cut_off:
        proxy.cut("lose_answer")
        with pytest.raises(AnnalsError, match="connection_failed"):
            cut_off.users.erase(user)
        with pytest.raises(AnnalsError, match="user_not_found"):
            cut_off.users.erase(user)
