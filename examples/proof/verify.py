#!/usr/bin/env python3
"""Verifies an export of Annals as docs/proof.md specifies it, with Python's standard library.

Usage: verify.py <export.ndjson>
It prints what it found, a line each, and exits with 1 if that is anything.
"""

import hashlib
import json
import sys
from collections import namedtuple

sys.setrecursionlimit(10_000)
# What an export has: when each session was created, and session, seq and hash of each link.
Log = namedtuple("Log", "header created_at links")


class Digits(str):
    """A number as it is written."""


def parse(text: str):
    return json.loads(text, parse_int=Digits, parse_float=Digits)


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def lines(fields: dict, names: str) -> bytes:
    return "".join(f"{fields[name]}\n" for name in names.split()).encode()


def canonical(value) -> str:
    if isinstance(value, Digits):
        return value
    if isinstance(value, list):
        return "[" + ", ".join(map(canonical, value)) + "]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
        return "{" + ", ".join(f"{canonical(name)}: {canonical(value[name])}" for name in names) + "}"
    return json.dumps(value, ensure_ascii=False)


def content_hash(entry: dict) -> bytes:
    names = ("type", "role", "format", "key", "occurred_at", "data", "meta")
    return sha256(canonical([entry.get(name) for name in names]).encode())


def link_after(link: bytes, entry: dict, content: bytes) -> bytes:
    return sha256(link, lines(entry, "seq id created_at kind"), content)


def genesis(session_id: str, seq: str, forked_proof) -> bytes:
    return sha256(f"annals-proof-1\n{session_id}\n{int(seq) - 1}\n{forked_proof or ''}".encode())


def check_export(path: str, found: list) -> Log:
    header, created_at, links, session, link = None, {}, set(), {}, None
    for line in map(parse, open(path, encoding="utf-8")):
        if "annals_export" in line:
            header = header or line
        if line.get("kind") == "session":
            session, link = line, None
            created_at[line["id"]] = line["created_at"]
        if line.get("kind") not in ("event", "message"):
            continue
        name = f"session {line['session_id']}, seq {line['seq']}"
        if "proof" in line:
            start = link or genesis(session["id"], line["seq"], session.get("forked_proof"))
            link = bytes.fromhex(line["proof"])
            is_chained = link_after(start, line, content_hash(line)) == link
            if not is_chained or line["session_id"] != session["id"]:
                found.append(f"{name}: it is not what was chained")
            links.add((line["session_id"], line["seq"], line["proof"]))
        elif link:
            found.append(f"{name}: it has no link, and those before it have")
    return Log(header, created_at, links)


def read_of(log: Log) -> str:
    return f"{len(log.created_at)} sessions, {len(log.links)} links"


def report(read: str, found: list) -> None:
    print(read, *found or ["Nothing was found."], sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: verify.py <export.ndjson>")
    findings = []
    export = check_export(sys.argv[1], findings)
    if not export.header:
        sys.exit(f"{sys.argv[1]} is not an export. For the proof of one entry, use anchors.py.")
    report(read_of(export), findings)
