"""Skills, and those of learning spaces."""

import io
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from acontext import AcontextClient, FileUpload

from checks import check, new_name, refused, same

TEXTS = {"scripts/run.py": "print('é')\n", "data/a.json": '{"a": 1}', "LICENSE": "MIT\n"}


def zip_of(name: str, files: Mapping[str, str | bytes] | None = None) -> bytes:
    """The zip of a skill, in a folder of its own as people make it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/SKILL.md", f"---\nname: {name}\ndescription: What {name} is for.\n---\n\nDo it.\n")
        for path, text in (files or {}).items():
            archive.writestr(f"{name}/{path}", text)
    return out.getvalue()


@check("skills.create: from a tuple, from bytes and from a stream, with user and meta; get reads it")
def _(client: AcontextClient) -> None:
    user, meta = new_name(), {"n": 2**60}
    skill = client.skills.create(file=("a.zip", zip_of("made", TEXTS), "application/zip"), user=user, meta=meta)
    same((skill.name, skill.description, skill.meta), ("made", "What made is for.", meta))
    same([one.path for one in skill.file_index], ["LICENSE", "SKILL.md", "data/a.json", "scripts/run.py"])
    assert skill.user_id and skill.disk_id
    same(client.skills.get(skill.id), skill)
    stream = FileUpload(filename="a.zip", content=io.BytesIO(zip_of("made", TEXTS)))
    same(client.skills.create(file=stream, user=user, meta=meta).id, skill.id)
    refused(409, "skill_exists", lambda: client.skills.create(file=("a.zip", zip_of("made")), user=user))
    refused(400, "invalid_request", lambda: client.skills.create(file=("a.zip", b"PK")))
    same(client.users.get_resources(user).counts.skills_count, 1)


@check("skills.list_catalog: names and descriptions, by user and page by page")
def _(client: AcontextClient) -> None:
    user = new_name()
    for name in ("one", "two", "three"):
        client.skills.create(file=("a.zip", zip_of(name)), user=user)
    catalog = client.skills.list_catalog(user=user)
    same([(item.name, item.description) for item in catalog.items][0], ("one", "What one is for."))
    same([item.name for item in catalog.items], ["one", "two", "three"])
    page = client.skills.list_catalog(user=user, limit=2, time_desc=True)
    rest = client.skills.list_catalog(user=user, limit=2, time_desc=True, cursor=page.next_cursor)
    same([item.name for item in page.items + rest.items], ["three", "two", "one"])


@check("skills.get_file, download and download_zip: the files as they were sent")
def _(client: AcontextClient) -> None:
    image = bytes(range(256)) * 500
    skill = client.skills.create(file=("a.zip", zip_of("read", {**TEXTS, "a.png": image})), user=new_name())
    file = client.skills.get_file(skill_id=skill.id, file_path="data/a.json", expire=60)
    assert file.content and file.url is None
    same((file.path, file.mime, file.content.type, file.content.raw), ("data/a.json", "application/json", "json", '{"a": 1}'))
    refused(404, "skill_file_not_found", lambda: client.skills.get_file(skill_id=skill.id, file_path="b"))
    with tempfile.TemporaryDirectory() as folder:
        got = client.skills.download(skill_id=skill.id, path=folder)
        same((got.name, len(got.files)), ("read", 5))
        same((Path(folder) / "a.png").read_bytes(), image)
        same({path: (Path(folder) / path).read_text(encoding="utf-8") for path in TEXTS}, TEXTS)
    with zipfile.ZipFile(io.BytesIO(client.skills.download_zip(skill.id))) as archive:
        same({path: archive.read(path).decode() for path in TEXTS}, TEXTS)


@check("skills.delete: it is gone, and unknown ids are 404 skill_not_found")
def _(client: AcontextClient) -> None:
    skill = client.skills.create(file=("a.zip", zip_of("gone")), user=new_name())
    same(client.skills.delete(skill.id), None)
    for call in (
        lambda: client.skills.get(skill.id),
        lambda: client.skills.delete(skill.id),
        lambda: client.skills.download_zip(skill.id),
    ):
        refused(404, "skill_not_found", call)


@check("learning_spaces.include_skill, list_skills, exclude_skill: also twice")
def _(client: AcontextClient) -> None:
    spaces, user = client.learning_spaces, new_name()
    skill = client.skills.create(file=("a.zip", zip_of("shared")), user=user)
    space = spaces.create(user=user)
    record = spaces.include_skill(space.id, skill_id=skill.id)
    same((record.learning_space_id, record.skill_id), (space.id, skill.id))
    same(spaces.include_skill(space.id, skill_id=skill.id), record)
    same(spaces.list_skills(space.id), [skill])
    for _ in range(2):
        same(spaces.exclude_skill(space.id, skill_id=skill.id), None)
    same(spaces.list_skills(space.id), [])
    other = spaces.create(user=new_name())
    refused(409, "user_mismatch", lambda: spaces.include_skill(other.id, skill_id=skill.id))
