#!/usr/bin/env python3
"""Verifies an export of Annals, or the proof of one entry, as docs/proof.md specifies them, with Python's standard library.

Usage: verify.py <export.ndjson or proof.json> [anchors.ndjson] [--key <public key in hexadecimal>]
It prints what it found, a line each, and exits with 1 if that is anything.
"""

import argparse
import hashlib
import json
import sys

sys.setrecursionlimit(10_000)
found = []


class Digits(str):
    """A number as it is written."""


def parse(text: str):
    return json.loads(text, parse_int=Digits, parse_float=Digits)


def expect(holds: bool, finding: str) -> None:
    if not holds:
        found.append(finding)


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


def leaf_hash(leaf: dict) -> bytes:
    return sha256(b"\0", lines(leaf, "session_id seq head state"))


def root_of(hashes: list) -> bytes:
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256()
    half = 1 << (len(hashes) - 1).bit_length() - 1
    return sha256(b"\1", root_of(hashes[:half]), root_of(hashes[half:]))


def statement(anchor: dict) -> bytes:
    return b"annals-anchor-1\n" + lines(anchor, "nth project made_at size root previous public_key")


# Ed25519, as RFC 8032 has it.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def add(p, q):
    (x, y), (u, v) = p, q
    t = D * x * y * u * v
    return (x * v + u * y) * pow(1 + t, -1, P) % P, (y * v + x * u) * pow(1 - t, -1, P) % P


def times(n: int, p):
    half = times(n // 2, add(p, p)) if n else (0, 1)
    return add(half, p) if n & 1 else half


def point(raw: bytes):
    y = int.from_bytes(raw, "little")
    odd, y = y >> 255, y & (2**255 - 1)
    xx = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(xx, (P + 3) // 8, P)
    x = root if root * root % P == xx else root * pow(2, (P - 1) // 4, P) % P
    if y >= P or x * x % P != xx or (x == 0 and odd):
        raise ValueError
    return (x if x % 2 == odd else P - x), y


BASE = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        a, r, s = point(key), point(signature[:32]), int.from_bytes(signature[32:], "little")
    except ValueError:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    return len(signature) == 64 and s < L and times(s, BASE) == add(r, times(k, a))


def check_signature(anchor: dict, keys: list, is_last: bool = True) -> None:
    key, name = anchor["public_key"], f"anchor {anchor['nth']}"
    # A statement has the hash of the one before it, so the last signature under a key is for all of these.
    if is_last:
        signed = is_signed(bytes.fromhex(key), statement(anchor), bytes.fromhex(anchor["signature"]))
        expect(signed, f"{name}: its signature is not that of its statement")
    expect(not keys or key in keys, f"{name}: it is signed with another key, {key}")


def check_anchors(anchors: list, keys: list) -> None:
    previous = "0" * 64
    for at, anchor in enumerate(anchors, 1):
        follows = int(anchor["nth"]) == at and anchor["previous"] == previous
        expect(follows, f"anchor {anchor['nth']}: it does not follow the anchor before it")
        previous = sha256(statement(anchor)).hex()
        check_signature(anchor, keys, at == len(anchors) or anchors[at]["public_key"] != anchor["public_key"])
        is_root = len(anchor["leaves"]) == int(anchor["size"])
        is_root = is_root and root_of([*map(leaf_hash, anchor["leaves"])]).hex() == anchor["root"]
        expect(is_root, f"anchor {anchor['nth']}: its root is not that of its leaves")


def check_proof(proof: dict, anchors, keys: list) -> str:
    """The proof of one entry: a chain from the entry to a head, and a path from there to a root that was signed."""
    session_id, entry, anchor, seq = proof["session_id"], proof["entry"], proof["anchor"], proof["entry"]["seq"]
    name = f"session {session_id}, seq {seq}"
    before = bytes.fromhex(proof["before"])
    start = genesis(session_id, seq, proof["forked_proof"]) if proof["begins"] else before
    head = link_after(start, entry, content_hash(entry))
    expect(head.hex() == proof["link"] and start == before, f"{name}: it is not what was chained")
    if anchor is None:
        return "1 entry, no anchor"
    steps, leaf, stated = anchor["steps"], anchor["leaf"], anchor["statement"]
    nth = f"anchor {stated['nth']}"
    for step in steps or []:
        seq = str(int(seq) + 1)
        expect(step["seq"] == seq, f"{name}: an entry before the anchored head is missing")
        head = link_after(head, step, bytes.fromhex(step["content_sha256"]))
    if steps is None:
        found.append(f"{name}: the anchored head is too far away for one answer; verify an export")
    elif lines(leaf, "session_id seq head state") != f"{session_id}\n{seq}\n{head.hex()}\nlive\n".encode():
        found.append(f"{name}: its chain does not lead to the head of {nth}")
    root = leaf_hash(leaf)
    for step in anchor["path"]:
        pair = (bytes.fromhex(step["hash"]), root)
        root = sha256(b"\1", *(pair if step["side"] == "left" else pair[::-1]))
    expect(root.hex() == stated["root"], f"{nth}: its root is not that of its leaves")
    check_signature(stated, keys)
    is_kept = anchors is None or statement(stated) in map(statement, anchors)
    expect(is_kept, f"{nth}: the anchor file does not have it")
    return f"1 entry, {nth} signed with {stated['public_key']}"


def check_export(path: str, anchors, keys: list) -> str:
    """The chain of each session, and of the anchors that were made before the export the heads."""
    sessions, links, header, session, link = {}, set(), None, {}, None
    for line in map(parse, open(path, encoding="utf-8")):
        header = header or line
        if "annals_export" not in header:
            return check_proof(line.get("data", line), anchors, keys)
        if line.get("kind") == "session":
            session, link = line, None
            sessions[line["id"]] = line["created_at"]
        if line.get("kind") not in ("event", "message"):
            continue
        name = f"session {line['session_id']}, seq {line['seq']}"
        if "proof" not in line:
            expect(link is None, f"{name}: it has no link, and those before it have")
            continue
        start = link or genesis(session["id"], line["seq"], session.get("forked_proof"))
        link = link_after(start, line, content_hash(line))
        is_chained = link.hex() == line["proof"] and line["session_id"] == session["id"]
        expect(is_chained, f"{name}: it is not what was chained")
        link = bytes.fromhex(line["proof"])
        links.add((line["session_id"], line["seq"], line["proof"]))
    for anchor in anchors or []:
        if anchor["project"] != header["project_id"] or anchor["made_at"] > header["exported_at"]:
            continue
        for leaf in anchor["leaves"]:
            session_id, seq, nth = leaf["session_id"], leaf["seq"], anchor["nth"]
            # A session that is gone was erased; one that was created later under the same id is another one.
            if leaf["state"] != "live" or sessions.get(session_id, "~") > anchor["made_at"]:
                continue
            is_there = (session_id, seq, leaf["head"]) in links
            expect(is_there, f"session {session_id}, seq {seq}: its log does not have the head of anchor {nth}")
    signers = ", ".join(sorted({anchor["public_key"] for anchor in anchors or []})) or "no key"
    return f"{len(sessions)} sessions, {len(links)} links, {len(anchors or [])} anchors signed with {signers}"


if __name__ == "__main__":
    given = argparse.ArgumentParser(description="Verifies an export of Annals, or the proof of one entry.")
    given.add_argument("path")
    given.add_argument("anchors", nargs="?")
    given.add_argument("--key", action="append", default=[])
    options = given.parse_args()
    kept = [parse(text) for text in open(options.anchors, encoding="utf-8")] if options.anchors else None
    check_anchors(kept or [], options.key)
    print(check_export(options.path, kept, options.key))
    print("\n".join(found) or "Nothing was found.")
    sys.exit(1 if found else 0)
