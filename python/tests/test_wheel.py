"""The documented commands build a wheel that works in an empty environment."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from .service import Service
from .test_docs import FRAMEWORKS, ROOT, program_of


def test_the_wheel_that_the_documented_commands_build_installs_and_runs(tmp_path: Path, service: Service) -> None:
    [commands] = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs/python.md").read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "python").symlink_to(ROOT / "python")
    environment = {**os.environ, "ANNALS_URL": service.url, "ANNALS_API_KEY": service.token}
    environment.pop("PYTHONPATH", None)
    python = str(tmp_path / ".venv/bin/python3")
    for command in (["bash", "-euc", commands], [python, "-c", program_of("python/README.md")]):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    installed = {path.name for path in (tmp_path / ".venv").glob("lib/python3*/site-packages/annals/*")}
    assert {"__init__.py", "types.py", "py.typed", "_async", "_sync"} <= installed
    [metadata] = (tmp_path / ".venv").glob("lib/python3*/site-packages/annals-*/METADATA")
    extras = re.findall(r"^Provides-Extra: (.*)$", metadata.read_text(), re.MULTILINE)
    assert sorted(extras) == sorted(["claude" if name == "claude-agent-sdk" else name for name in FRAMEWORKS])
    assert not (ROOT / "python/dist").exists()
