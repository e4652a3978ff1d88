#!/usr/bin/env python3
"""Verifies an export of Annals together with anchors, or the proof of one entry, as docs/proof.md specifies them.

It needs Python's standard library, and verify.py and ed25519.py beside it.
Usage: anchors.py <export.ndjson or proof.json> [anchors.ndjson] [--key <public key in hexadecimal>]
It prints what it found, a line each, and exits with 1 if that is anything.
"""

import argparse

from ed25519 import is_signed
from verify import (
    Log,
    check_export,
    content_hash,
    genesis,
    lines,
    link_after,
    parse,
    read_of,
    report,
    sha256,
)


def leaf_hash(leaf: dict) -> bytes:
    return sha256(b"\0", lines(leaf, "session_id seq head state"))


def root_of(hashes: list) -> bytes:
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256()
    half = 1 << (len(hashes) - 1).bit_length() - 1
    return sha256(b"\1", root_of(hashes[:half]), root_of(hashes[half:]))


def statement(anchor: dict) -> bytes:
    return b"annals-anchor-1\n" + lines(anchor, "nth project made_at size root previous public_key")


def check_signature(anchor: dict, keys: list, found: list) -> None:
    key, name = anchor["public_key"], f"anchor {anchor['nth']}"
    if not is_signed(bytes.fromhex(key), statement(anchor), bytes.fromhex(anchor["signature"])):
        found.append(f"{name}: its signature is not that of its statement")
    if keys and key not in keys:
        found.append(f"{name}: it is signed with another key, {key}")


def read_anchors(path: str, keys: list, found: list) -> list:
    with open(path, encoding="utf-8") as file:
        anchors = [*map(parse, file)]
    previous = "0" * 64
    for at, anchor in enumerate(anchors, 1):
        name, leaves = f"anchor {anchor['nth']}", anchor["leaves"]
        if int(anchor["nth"]) != at or anchor["previous"] != previous:
            found.append(f"{name}: it does not follow the anchor before it")
        previous = sha256(statement(anchor)).hex()
        check_signature(anchor, keys, found)
        if len(leaves) != int(anchor["size"]) or root_of([*map(leaf_hash, leaves)]).hex() != anchor["root"]:
            found.append(f"{name}: its root is not that of its leaves")
    return anchors


def check_heads(log: Log, anchors: list, found: list) -> str:
    """Looks for the heads that were anchored before the export was made."""
    for anchor in anchors:
        if anchor["project"] != log.header["project_id"] or anchor["made_at"] > log.header["exported_at"]:
            continue
        for leaf in anchor["leaves"]:
            session_id, seq, head = leaf["session_id"], leaf["seq"], leaf["head"]
            # A session that is gone was erased; one that was created later under the same id is another one.
            if leaf["state"] != "live" or log.created_at.get(session_id, "~") > anchor["made_at"]:
                continue
            if (session_id, seq, head) not in log.links:
                name = f"session {session_id}, seq {seq}"
                found.append(f"{name}: its log does not have the head of anchor {anchor['nth']}")
    signers = ", ".join(sorted({anchor["public_key"] for anchor in anchors})) or "no key"
    return f"{len(anchors)} anchors signed with {signers}"


def check_proof(proof: dict, anchors, keys: list, found: list) -> str:
    """Follows a chain from an entry to a head, and a path from there to a root that was signed."""
    session_id, entry, anchor, seq = proof["session_id"], proof["entry"], proof["anchor"], proof["entry"]["seq"]
    name = f"session {session_id}, seq {seq}"
    before = bytes.fromhex(proof["before"])
    start = genesis(session_id, seq, proof["forked_proof"]) if proof["begins"] else before
    head = link_after(start, entry, content_hash(entry))
    if head.hex() != proof["link"] or start != before:
        found.append(f"{name}: it is not what was chained")
    if anchor is None:
        return "no anchor"
    steps, leaf, stated = anchor["steps"], anchor["leaf"], anchor["statement"]
    nth = f"anchor {stated['nth']}"
    for step in steps or []:
        seq = str(int(seq) + 1)
        if step["seq"] != seq:
            found.append(f"{name}: an entry before the anchored head is missing")
        head = link_after(head, step, bytes.fromhex(step["content_sha256"]))
    if steps is None:
        found.append(f"{name}: the anchored head is too far away for one answer; verify an export")
    elif lines(leaf, "session_id seq head state") != f"{session_id}\n{seq}\n{head.hex()}\nlive\n".encode():
        found.append(f"{name}: its chain does not lead to the head of {nth}")
    root = leaf_hash(leaf)
    for step in anchor["path"]:
        pair = (bytes.fromhex(step["hash"]), root)
        root = sha256(b"\1", *(pair if step["side"] == "left" else pair[::-1]))
    if root.hex() != stated["root"]:
        found.append(f"{nth}: its root is not that of its leaves")
    check_signature(stated, keys, found)
    if anchors is not None and statement(stated) not in map(statement, anchors):
        found.append(f"{nth}: the anchor file does not have it")
    return f"{nth} signed with {stated['public_key']}"


if __name__ == "__main__":
    given = argparse.ArgumentParser(description="Verifies an export with its anchors, or the proof of one entry.")
    given.add_argument("path")
    given.add_argument("anchors", nargs="?")
    given.add_argument("--key", action="append", default=[])
    options, findings = given.parse_args(), []
    export = check_export(options.path, findings)
    known = read_anchors(options.anchors, options.key, findings) if options.anchors else None
    if export.header:
        report(f"{read_of(export)}, {check_heads(export, known or [], findings)}", findings)
    with open(options.path, encoding="utf-8") as proof_file:
        answer = parse(proof_file.read())
    report(f"1 entry, {check_proof(answer.get('data', answer), known, options.key, findings)}", findings)
