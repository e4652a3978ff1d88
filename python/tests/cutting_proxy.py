"""A TCP proxy in front of a service, which breaks connections as its script says."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

Cut = Literal["lose_request", "lose_answer", "cut_answer"]
"""What happens to one request: it is lost, its answer is lost, or its answer is cut short."""

CUTS: tuple[Cut, ...] = ("lose_request", "lose_answer", "cut_answer")


class CuttingProxy:
    """Each request takes the next step of the script; without steps, requests pass unchanged."""

    def __init__(self, service_url: str) -> None:
        address = urlsplit(service_url)
        self._service = (address.hostname or "", address.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: set[socket.socket] = {self._listener}
        self._script: list[Cut | None] = []
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        _start(self._accept)

    def cut(self, *steps: Cut | None) -> None:
        with self._lock:
            self._script[:] = steps

    def close(self) -> None:
        with self._lock:
            for each in self._sockets:
                _close(each)

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            service = socket.create_connection(self._service)
            with self._lock:
                self._sockets |= {client, service}
            pair = _Pair(client, service, self._next_step)
            _start(pair.forward_requests)
            _start(pair.forward_answers)

    def _next_step(self) -> Cut | None:
        with self._lock:
            return self._script.pop(0) if self._script else None


class _Pair:
    """A client's connection and the proxy's own to the service. Requests do not overlap on a connection."""

    def __init__(self, client: socket.socket, service: socket.socket, next_step: Callable[[], Cut | None]) -> None:
        self._client = client
        self._service = service
        self._next_step = next_step
        self._step: Cut | None = None

    def forward_requests(self) -> None:
        try:
            while request := self._read_request():
                self._step = self._next_step()
                if self._step == "lose_request":
                    break
                self._service.sendall(request)
        finally:
            self._close()

    def forward_answers(self) -> None:
        try:
            while piece := self._service.recv(65536):
                if self._step == "lose_answer":
                    break
                if self._step == "cut_answer":
                    self._client.sendall(piece[:-10])
                    break
                self._client.sendall(piece)
        finally:
            self._close()

    def _read_request(self) -> bytes:
        request = b""
        while piece := self._client.recv(65536):
            request += piece
            head, end, body = request.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            if end and len(body) >= int(length[1] if length else 0):
                return request
        return b""

    def _close(self) -> None:
        _close(self._client)
        _close(self._service)


def _start(action: Callable[[], None]) -> None:
    def run() -> None:
        # Either side may close the connection at any time.
        with suppress(OSError):
            action()

    threading.Thread(target=run, daemon=True).start()


def _close(connection: socket.socket) -> None:
    """Also wakes a thread that waits for the connection."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
