"""What a check is, how checks are run and counted, and what several of them need."""

import os
import traceback
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from acontext import AcontextClient
from acontext.errors import APIError

Check = tuple[str, Callable[[AcontextClient], None]]

CHECKS: list[Check] = []


def check(sentence: str) -> Callable[[Callable[[AcontextClient], None]], Callable[[AcontextClient], None]]:
    """Registers a function under the sentence that it shows to be true."""

    def register(function: Callable[[AcontextClient], None]) -> Callable[[AcontextClient], None]:
        CHECKS.append((sentence, function))
        return function

    return register


def run_checks(client: AcontextClient) -> int:
    """Runs all checks, a line each; the last line has the counts. Answers how many failed."""
    failed = 0
    for sentence, function in CHECKS:
        try:
            function(client)
        except Exception as error:  # a check may fail in any way, and the others still run
            failed += 1
            print(f"FAILED {sentence}: {describe(error)}", flush=True)
        else:
            print(f"ok     {sentence}", flush=True)
    print(f"{len(CHECKS) - failed} passed, {failed} failed", flush=True)
    return failed


def describe(error: Exception) -> str:
    """One line: what went wrong, and the line of the check in which it did."""
    here = os.path.dirname(os.path.abspath(__file__))
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(here)]
    at = f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}: {own[-1].line}" if own else "?"
    said = " ".join(f"{type(error).__name__} {error}".split())
    return f"{said[:600]} ({at})"


def settings() -> tuple[str, str]:
    """The base URL and the API key that a client takes, from ANNALS_URL and ANNALS_API_KEY."""
    url = os.environ.get("ANNALS_URL", "http://127.0.0.1:8029").rstrip("/")
    api_key = os.environ.get("ANNALS_API_KEY", "")
    if not api_key:
        raise SystemExit("Set ANNALS_API_KEY to a token of a running Annals, and ANNALS_URL to its address.")
    return (url if url.endswith("/api/v1") else f"{url}/api/v1"), api_key


def new_name(prefix: str = "user") -> str:
    """A user identifier that nobody has: the project may be anybody's."""
    return f"{prefix}-{uuid.uuid4()}"


def same(actual: Any, expected: Any) -> None:
    assert actual == expected, f"got {actual!r}, expected {expected!r}"


def refused(status: int, error: str, call: Callable[[], Any]) -> APIError:
    """The client's error of a call, which the server must refuse with that status and that name."""
    try:
        answer = call()
    except APIError as refusal:
        same((refusal.status_code, refusal.code, refusal.error), (status, status, error))
        assert refusal.message and refusal.message.endswith("."), f"msg is no sentence: {refusal.message!r}"
        return refusal
    raise AssertionError(f"was answered ({answer!r}), expected {status} {error}")


def pages(list_page: Callable[..., Any], **query: Any) -> Iterator[Any]:
    """All pages of a list, from first to last."""
    cursor = None
    for _ in range(1_000):
        page = list_page(cursor=cursor, **query)
        yield page
        assert page.has_more == bool(page.next_cursor), "has_more and next_cursor disagree"
        if not page.has_more:
            return
        cursor = page.next_cursor
    raise AssertionError("a list of a few items has a thousand pages")


def walked(list_page: Callable[..., Any], **query: Any) -> list[str]:
    """The ids of everything in a list, page by page."""
    return [item.id for page in pages(list_page, **query) for item in page.items]
