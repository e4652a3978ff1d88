"""Programs in JavaScript that use this repository's packages."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from .test_docs import ROOT


def run_javascript(program: str, **environment: str) -> Any:
    """Runs a program, and returns the JSON that it prints."""
    command = ["node", "--input-type=module", "-e", program]
    env = {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
