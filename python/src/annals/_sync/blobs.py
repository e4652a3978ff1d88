from __future__ import annotations

from hashlib import sha256

from .._call import Call, bytes_of
from ..types import Blob
from .transport import Transport


class Blobs:
    """Attachments: bytes of any kind, which messages and events refer to by their SHA-256."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def put(self, content: bytes) -> Blob:
        """Sends bytes. What the project has already is not stored again."""
        return self._transport.call(Call("PUT", ("blobs", sha256(content).hexdigest()), content=content))

    def get(self, sha256: str, *, start: int = 0, stop: int | None = None) -> bytes:
        """The bytes, or those from `start` to before `stop`."""
        headers = {"accept": "*/*"}
        if start > 0 or stop is not None:
            headers["range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
        return self._transport.call(Call("GET", ("blobs", sha256), headers=headers), bytes_of)
