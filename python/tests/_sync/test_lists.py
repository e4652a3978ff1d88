from __future__ import annotations

from collections.abc import Callable

import pytest

from annals import Annals, AnnalsError

from ..scripted_service import ScriptedService, Step, ok, refused

pytestmark = pytest.mark.anyio

Scripted = Callable[..., tuple[Annals, ScriptedService]]


def page(items: list[int], next_cursor: str = "") -> Step:
    return ok({"items": items, "has_more": next_cursor != "", "next_cursor": next_cursor})


def asked(service: ScriptedService) -> list[str]:
    return [received.request.url.query.decode() for received in service.received]


def test_a_list_sends_no_request_until_it_is_read(scripted: Scripted) -> None:
    annals, service = scripted()
    annals.sessions.list()
    assert service.received == []


def test_a_list_returns_the_items_of_all_pages_with_the_same_filters(scripted: Scripted) -> None:
    annals, service = scripted(page([1, 2], "c1"), page([], "c2"), page([3]))
    assert [item for item in annals.sessions.list(user="ada", limit=2)] == [1, 2, 3]
    assert asked(service) == ["user=ada&limit=2", "user=ada&limit=2&cursor=c1", "user=ada&limit=2&cursor=c2"]


def test_a_list_requests_no_page_that_is_not_used(scripted: Scripted) -> None:
    annals, service = scripted(page([1, 2], "c1"))
    for item in annals.sessions.list():
        if item == 2:
            break
    assert len(service.received) == 1


def test_pages_are_returned_as_the_api_answers_them(scripted: Scripted) -> None:
    annals, service = scripted(page([1], "c1"), page([2]), page([1], "c1"), page([2]))
    sessions = annals.sessions.list()
    first = sessions.page()
    assert first == {"items": [1], "has_more": True, "next_cursor": "c1"}
    assert sessions.page(first["next_cursor"]) == {"items": [2], "has_more": False, "next_cursor": ""}
    assert [each["items"] for each in sessions.pages()] == [[1], [2]]
    assert asked(service) == ["", "cursor=c1", "", "cursor=c1"]


def test_a_list_starts_at_the_cursor_of_its_query(scripted: Scripted) -> None:
    annals, service = scripted(page([3], "c2"), page([4]))
    assert [item for item in annals.users.list(cursor="c1")] == [3, 4]
    assert asked(service) == ["limit=200&cursor=c1", "limit=200&cursor=c2"]


def test_a_list_raises_what_a_page_raises(scripted: Scripted) -> None:
    annals, _ = scripted(page([1], "c1"), refused(400, "invalid_cursor"))
    items = annals.sessions.list().pages()
    assert (next(items))["items"] == [1]
    with pytest.raises(AnnalsError, match="invalid_cursor"):
        next(items)


def test_a_list_ends_if_a_cursor_repeats(scripted: Scripted) -> None:
    annals, _ = scripted(page([1], "c1"), page([1], "c1"))
    with pytest.raises(AnnalsError, match="unexpected_answer"):
        [item for item in annals.sessions.list()]
