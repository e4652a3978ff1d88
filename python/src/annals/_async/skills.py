from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import Unpack

from .._call import Call, bytes_of, form_of
from ..types import ListedSkill, Page, Skill, SkillFile, SkillsQuery
from .list import AsyncList
from .transport import AsyncTransport


class AsyncSkills:
    """Skills in the Agent Skills format: those that people wrote, and those that learning spaces have learnt."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, archive: bytes, *, user: str | None = None, meta: Mapping[str, object] | None = None
    ) -> Skill:
        """Uploads a zip with SKILL.md. The same skill again is not stored twice."""
        fields = {"user": user, "meta": meta}
        content, headers = form_of(fields, {"file": ("skill.zip", archive, "application/zip")})
        return await self._transport.call(Call("POST", ("agent_skills",), content=content, headers=headers))

    def list(self, **query: Unpack[SkillsQuery]) -> AsyncList[ListedSkill, Page[ListedSkill]]:
        """The project's skills, in order of `created_at`, without their files."""
        return AsyncList(self._transport, ("agent_skills",), query)

    async def get(self, skill_id: str) -> Skill:
        return await self._transport.call(Call("GET", ("agent_skills", skill_id)))

    async def file(self, skill_id: str, file_path: str) -> SkillFile:
        """A file of a skill. What is no text has no `content`, but a `url` that gives its bytes for five minutes."""
        path = ("agent_skills", skill_id, "file")
        return await self._transport.call(Call("GET", path, query={"file_path": file_path}))

    async def download(self, skill_id: str) -> bytes:
        """All files of a skill as a zip."""
        path = ("agent_skills", skill_id, "download_zip")
        return await self._transport.call(Call("GET", path, headers={"accept": "*/*"}), bytes_of)

    async def delete(self, skill_id: str) -> None:
        await self._transport.call(Call("DELETE", ("agent_skills", skill_id), done_when="skill_not_found"))
