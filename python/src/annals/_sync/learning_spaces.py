from __future__ import annotations

import builtins
from collections.abc import Mapping

from typing_extensions import Unpack

from .._call import Call
from ..types import (
    Feedback,
    LearningSpace,
    LearningSpacesQuery,
    NewLearningSpace,
    NewSpacePolicy,
    NewStatement,
    Page,
    Skill,
    SkillVersion,
    SpaceContext,
    SpaceContextQuery,
    SpaceHistoryQuery,
    SpacePolicy,
    SpaceSession,
    SpaceSkill,
    SpaceUsage,
    Statement,
    StatementChange,
    StatementsQuery,
)
from .list import List
from .transport import Transport


class LearningSpaces:
    """Learning spaces of the project or of its users."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, **query: Unpack[LearningSpacesQuery]) -> List[LearningSpace, Page[LearningSpace]]:
        """The project's learning spaces, in order of `created_at`."""
        return List(self._transport, ("learning_spaces",), query)

    def create(self, *, idempotency_key: str | None = None, **space: Unpack[NewLearningSpace]) -> LearningSpace:
        return self._transport.call(
            Call("POST", ("learning_spaces",), body=space, keyed=True, idempotency_key=idempotency_key)
        )

    def get(self, learning_space_id: str) -> LearningSpace:
        return self._transport.call(Call("GET", ("learning_spaces", learning_space_id)))

    def merge(self, learning_space_id: str, meta: Mapping[str, object]) -> LearningSpace:
        """Merges into the meta; None deletes a key. Returns the learning space after the merge."""
        path = ("learning_spaces", learning_space_id)
        return self._transport.call(Call("PATCH", path, body={"meta": meta}))

    def delete(self, learning_space_id: str) -> None:
        path = ("learning_spaces", learning_space_id)
        self._transport.call(Call("DELETE", path, done_when="learning_space_not_found"))

    def learn(self, learning_space_id: str, session_id: str, *, now: bool = False) -> SpaceSession:
        """Has a space learn from a session, also from what is appended later. `now` is for a model."""
        body = {"session_id": session_id, "now": True} if now else {"session_id": session_id}
        return self._transport.call(Call("POST", _path(learning_space_id, "learn"), body=body))

    def sessions(self, learning_space_id: str) -> builtins.list[SpaceSession]:
        """All sessions that a space learns from."""
        return self._transport.call(Call("GET", _path(learning_space_id, "sessions")))

    def session(self, learning_space_id: str, session_id: str) -> SpaceSession:
        """How far a space is with a session."""
        return self._transport.call(Call("GET", _path(learning_space_id, "sessions", session_id)))

    def policy(self, learning_space_id: str) -> SpacePolicy:
        return self._transport.call(Call("GET", _path(learning_space_id, "policy")))

    def set_policy(self, learning_space_id: str, **policy: Unpack[NewSpacePolicy]) -> SpacePolicy:
        return self._transport.call(Call("PUT", _path(learning_space_id, "policy"), body=policy))

    def usage(self, learning_space_id: str, *, days: int | None = None) -> SpaceUsage:
        """What a space has used of a model: tokens of its budget, and calls by day. `days`: 30, to today."""
        return self._transport.call(Call("GET", _path(learning_space_id, "usage"), query={"days": days}))

    def skills(self, learning_space_id: str) -> builtins.list[Skill]:
        """Written skills that a space includes, and those that it has learnt."""
        return self._transport.call(Call("GET", _path(learning_space_id, "skills")))

    def include_skill(self, learning_space_id: str, skill_id: str) -> SpaceSkill:
        """Includes a written skill in a space."""
        return self._transport.call(Call("POST", _path(learning_space_id, "skills"), body={"skill_id": skill_id}))

    def exclude_skill(self, learning_space_id: str, skill_id: str) -> None:
        """Takes a written skill out of a space."""
        self._transport.call(Call("DELETE", _path(learning_space_id, "skills", skill_id)))

    def statements(self, learning_space_id: str, **query: Unpack[StatementsQuery]) -> List[Statement, Page[Statement]]:
        """What a space has learnt, each statement with the entries that it cites."""
        return List(self._transport, _path(learning_space_id, "statements"), query)

    def add_statement(self, learning_space_id: str, **statement: Unpack[NewStatement]) -> Statement:
        """Adds a statement of one's own, which is active at once."""
        return self._transport.call(Call("POST", _path(learning_space_id, "statements"), body=statement))

    def change_statement(self, statement_id: str, **change: Unpack[StatementChange]) -> Statement:
        """Approves (`state="active"`), rejects (`state="retired"`) or edits a statement."""
        return self._transport.call(Call("PATCH", ("statements", statement_id), body=change))

    def context(self, learning_space_id: str, **query: Unpack[SpaceContextQuery]) -> SpaceContext:
        """The active statements that fit the words of a task, rendered for a prompt."""
        return self._transport.call(Call("GET", _path(learning_space_id, "context"), query=query))

    def feedback(self, learning_space_id: str, **feedback: Unpack[Feedback]) -> None:
        """Says whether statements helped a session."""
        self._transport.call(Call("POST", _path(learning_space_id, "feedback"), body=feedback))

    def history(
        self, learning_space_id: str, **query: Unpack[SpaceHistoryQuery]
    ) -> List[SkillVersion, Page[SkillVersion]]:
        """What the skills of a space were, newest first."""
        return List(self._transport, _path(learning_space_id, "history"), query)


def _path(learning_space_id: str, *more: str) -> tuple[str, ...]:
    return ("learning_spaces", learning_space_id, *more)
