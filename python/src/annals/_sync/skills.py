from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import Unpack

from .._call import Call, bytes_of, form_of
from ..types import ListedSkill, Page, Skill, SkillFile, SkillsQuery
from .list import List
from .transport import Transport


class Skills:
    """Skills in the Agent Skills format: those that people wrote, and those that learning spaces have learnt."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, archive: bytes, *, user: str | None = None, meta: Mapping[str, object] | None = None) -> Skill:
        """Uploads a zip with SKILL.md. The same skill again is not stored twice."""
        fields = {"user": user, "meta": meta}
        content, headers = form_of(fields, {"file": ("skill.zip", archive, "application/zip")})
        return self._transport.call(Call("POST", ("agent_skills",), content=content, headers=headers))

    def list(self, **query: Unpack[SkillsQuery]) -> List[ListedSkill, Page[ListedSkill]]:
        """The project's skills, in order of `created_at`, without their files."""
        return List(self._transport, ("agent_skills",), query)

    def get(self, skill_id: str) -> Skill:
        return self._transport.call(Call("GET", ("agent_skills", skill_id)))

    def file(self, skill_id: str, file_path: str) -> SkillFile:
        """A file of a skill. What is no text has no `content`, but a `url` that gives its bytes for five minutes."""
        path = ("agent_skills", skill_id, "file")
        return self._transport.call(Call("GET", path, query={"file_path": file_path}))

    def download(self, skill_id: str) -> bytes:
        """All files of a skill as a zip."""
        path = ("agent_skills", skill_id, "download_zip")
        return self._transport.call(Call("GET", path, headers={"accept": "*/*"}), bytes_of)

    def delete(self, skill_id: str) -> None:
        self._transport.call(Call("DELETE", ("agent_skills", skill_id), done_when="skill_not_found"))
