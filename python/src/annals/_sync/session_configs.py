from __future__ import annotations

from collections.abc import Mapping

from .._call import Call
from ..types import MergedConfigs, Session
from .transport import Transport


class SessionConfigs:
    """The configs of sessions: any JSON object that you keep with a session."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, session_id: str) -> Session:
        """The session, which includes its configs."""
        return self._transport.call(Call("GET", ("session", session_id, "configs")))

    def replace(self, session_id: str, configs: Mapping[str, object], *, fence: int | None = None) -> None:
        path = ("session", session_id, "configs")
        self._transport.call(Call("PUT", path, body={"configs": configs}, fence=fence))

    def merge(self, session_id: str, configs: Mapping[str, object], *, fence: int | None = None) -> MergedConfigs:
        """Merges the top level; None deletes a key. Returns the configs after the merge."""
        path = ("session", session_id, "configs")
        return self._transport.call(Call("PATCH", path, body={"configs": configs}, fence=fence))
