"""A service for the tests: this repository's build, on an embedded PostgreSQL in a temporary directory."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

_COMMAND = Path(__file__).parents[2] / "packages/server/bin/annals.js"
_READY_S_MAX = 120
_EXIT_S_MAX = 30


class Node:
    """One process of the service."""

    def __init__(self, data: Path, token: str, port: int) -> None:
        self._log = data.parent / f"{secrets.token_hex(4)}.log"
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": os.environ.get("HOME", "/"),
            "HOST": "127.0.0.1",
            "PORT": str(port),
            "ANNALS_DATA_DIR": str(data),
            "ANNALS_API_KEY": token,
            "ANNALS_ADMIN_TOKEN": token,
            "ANNALS_DATABASE_WAIT_MS_MAX": "10000",
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(["node", str(_COMMAND), "serve"], env=environment, stdout=log, stderr=log)
        self.url = self._wait_until_ready()

    def _wait_until_ready(self) -> str:
        deadline = time.monotonic() + _READY_S_MAX
        while time.monotonic() < deadline and self._process.poll() is None:
            ready = re.search(r"^Annals is ready at (http://\S+)$", self._log.read_text(), re.MULTILINE)
            if ready and "\nReady after" in self._log.read_text():
                return ready[1]
            time.sleep(0.02)
        self.kill()
        raise AssertionError(f"the service did not become ready:\n{self._log.read_text()}")

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait(_EXIT_S_MAX)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                code = self._process.wait(_EXIT_S_MAX)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            assert code == 0, self._log.read_text()[-2000:]


class Service:
    """A node that keeps the database running, and further nodes that a test can kill."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="annals-python-"))
        # PostgreSQL does not run as root; its account must reach the data through this directory.
        self._directory.chmod(0o711)
        self.token = f"sk-{secrets.token_hex(24)}"
        self._node = self.start_node()
        self.url = self._node.url

    def start_node(self, port: int = 0) -> Node:
        return Node(self._directory / "data", self.token, port)

    def new_project(self, **settings: object) -> str:
        """The API key of a project that no other test has."""
        headers = {"authorization": f"Bearer {self.token}"}
        body = {"name": new_name("project"), **settings}
        answer = httpx.post(f"{self.url}/admin/v1/projects", json=body, headers=headers)
        return answer.raise_for_status().json()["data"]["token"]

    def end(self) -> None:
        self._node.stop()
        shutil.rmtree(self._directory)


class KillableNode:
    """A further node that is killed, and started again at its address."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._port = free_port()
        self._node = service.start_node(self._port)
        self.url = self._node.url

    def kill(self) -> None:
        self._node.kill()
        self._node = self._service.start_node(self._port)

    def end(self) -> None:
        self._node.stop()


def free_port() -> int:
    """A port that a node can reuse after it was killed."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def new_name(prefix: str = "user") -> str:
    """A user's identifier that no other test has."""
    return f"{prefix}-{secrets.token_hex(6)}"


def bytes_at(url: str) -> bytes:
    """What a URL gives to whoever has it."""
    return httpx.get(url).raise_for_status().content
