"""Generates the sync client and its tests from the async ones.

    python generate_sync.py          writes src/annals/_sync and tests/_sync
    python generate_sync.py --check  fails if they are not current

It removes `async` and `await`, and `Async` from the start of names. _NAMES has the other names that differ.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import unasync  # pyright: ignore[reportMissingTypeStubs]

_HERE = Path(__file__).parent
_PAIRS = [("src/annals/_async", "src/annals/_sync"), ("tests/_async", "tests/_sync")]
_NAMES = {
    "_async": "_sync",
    "AsyncByteStream": "SyncByteStream",
    "aclose": "close",
    "aclosing": "closing",
    "aiter": "iter",
    "aiter_bytes": "iter_bytes",
    "anext": "next",
    "aread": "read",
    "async_run": "sync_run",
    "async_sleep": "sleep",
    "async_together": "together",
    "async_waited": "waited",
    # Of LangGraph's savers and graphs.
    "acopy_thread": "copy_thread",
    "adelete_for_runs": "delete_for_runs",
    "adelete_thread": "delete_thread",
    "aget_state": "get_state",
    "aget_state_history": "get_state_history",
    "aget_tuple": "get_tuple",
    "ainvoke": "invoke",
    "alist": "list",
    "aprune": "prune",
    "aput": "put",
    "aput_writes": "put_writes",
    "aupdate_state": "update_state",
}


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        stale = [target for source, target in _PAIRS if not _generate(source, target, Path(scratch))]
    if "--check" not in sys.argv:
        return 0
    for target in stale:
        print(f"{target} is not current: run python generate_sync.py")
    return 1 if stale else 0


def _generate(source: str, target: str, scratch: Path) -> bool:
    """Generates a directory, or only compares it with --check. Returns whether it was current."""
    files = sorted((_HERE / source).glob("*.py"))
    asynchronous = {name for file in files for name in re.findall(r"\bAsync[A-Z]\w*", file.read_text())}
    names = {name: name.removeprefix("Async") for name in asynchronous} | _NAMES
    generated = scratch / target
    rule = unasync.Rule(f"{_HERE / source}", f"{generated}", additional_replacements=names)
    unasync.unasync_files([f"{file}" for file in files], [rule])  # pyright: ignore[reportUnknownMemberType]
    _format(generated)
    made = {file.name: file.read_text() for file in generated.glob("*.py")}
    there = {file.name: file.read_text() for file in (_HERE / target).glob("*.py")}
    if "--check" not in sys.argv:
        (_HERE / target).mkdir(exist_ok=True)
        for name in there.keys() - made.keys():
            (_HERE / target / name).unlink()
        for name, text in made.items():
            (_HERE / target / name).write_text(text)
    return made == there


def _format(directory: Path) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    config = f"--config={_HERE / 'pyproject.toml'}"
    subprocess.run([*ruff, "check", config, "--select=I", "--fix", "--quiet", f"{directory}"], check=True)
    subprocess.run([*ruff, "format", config, "--quiet", f"{directory}"], check=True)


if __name__ == "__main__":
    sys.exit(main())
