"""What the client can call and Annals does not have: each call is 404 route_not_found, and says which route."""

import uuid
from collections.abc import Callable
from typing import Any

from acontext import AcontextClient

from checks import check, refused, same

ANY = str(uuid.uuid4())
FILE = ("a.zip", b"PK", "application/zip")

# By the method's name; `session` and `space` are ids of ones that are there.
ABSENT: dict[str, Callable[[AcontextClient, str, str], Any]] = {
    "disks.list": lambda client, *_: client.disks.list(user="u", limit=2),
    "disks.create": lambda client, *_: client.disks.create(),
    "disks.create (user)": lambda client, *_: client.disks.create(user="u"),
    "disks.delete": lambda client, *_: client.disks.delete(ANY),
    "artifacts.upsert": lambda client, *_: client.artifacts.upsert(
        ANY, file=FILE, file_path="/", meta={"a": 1}
    ),
    "artifacts.get": lambda client, *_: client.artifacts.get(ANY, file_path="/", filename="a"),
    "artifacts.update": lambda client, *_: client.artifacts.update(ANY, file_path="/", filename="a", meta={}),
    "artifacts.delete": lambda client, *_: client.artifacts.delete(ANY, file_path="/", filename="a"),
    "artifacts.list": lambda client, *_: client.artifacts.list(ANY, path="/"),
    "artifacts.grep_artifacts": lambda client, *_: client.artifacts.grep_artifacts(ANY, query="x"),
    "artifacts.glob_artifacts": lambda client, *_: client.artifacts.glob_artifacts(ANY, query="*"),
    "artifacts.download_to_sandbox": lambda client, *_: client.artifacts.download_to_sandbox(
        ANY, file_path="/", filename="a", sandbox_id=ANY, sandbox_path="/"
    ),
    "artifacts.upload_from_sandbox": lambda client, *_: client.artifacts.upload_from_sandbox(
        ANY, sandbox_id=ANY, sandbox_path="/", sandbox_filename="a", file_path="/"
    ),
    "sandboxes.create": lambda client, *_: client.sandboxes.create(),
    "sandboxes.exec_command": lambda client, *_: client.sandboxes.exec_command(sandbox_id=ANY, command="ls"),
    "sandboxes.kill": lambda client, *_: client.sandboxes.kill(ANY),
    "sandboxes.get_logs": lambda client, *_: client.sandboxes.get_logs(limit=2),
    "skills.download_to_sandbox": lambda client, *_: client.skills.download_to_sandbox(
        skill_id=ANY, sandbox_id=ANY
    ),
    "project.get_configs": lambda client, *_: client.project.get_configs(),
    "project.update_configs": lambda client, *_: client.project.update_configs({"a": 1}),
}

# The other public methods of the client, which the checks beside this file call.
PRESENT = {
    "sessions": "list create delete update_configs get_configs store_message add_event get_events get_messages "
    "get_token_counts patch_message_meta patch_configs copy get_tasks get_session_summary flush "
    "messages_observing_status",
    "users": "list get_resources delete",
    "learning_spaces": "create list get update delete learn get_session list_sessions wait_for_learning "
    "include_skill list_skills exclude_skill",
    "skills": "create list_catalog get delete get_file download download_zip",
}


def register(name: str, call: Callable[[AcontextClient, str, str], Any]) -> None:
    @check(f"{name}: 404 route_not_found")
    def _(client: AcontextClient) -> None:
        session, space = client.sessions.create().id, client.learning_spaces.create().id
        refusal = refused(404, "route_not_found", lambda: call(client, session, space))
        assert "/api/v1/" in str(refusal), f"msg does not name the route: {refusal}"


for _name, _call in ABSENT.items():
    register(_name, _call)


@check("every method of the client is either checked to work or checked to be 404")
def _(client: AcontextClient) -> None:
    resources = "sessions disks artifacts skills users sandboxes learning_spaces project".split()
    methods = {
        f"{resource}.{name}"
        for resource in resources
        for name in dir(getattr(client, resource))
        if not name.startswith("_") and name != "artifacts"
    }
    present = {f"{resource}.{name}" for resource, names in PRESENT.items() for name in names.split()}
    absent = {name.split(" ")[0] for name in ABSENT}
    same(sorted(methods ^ (present | absent)), [])
