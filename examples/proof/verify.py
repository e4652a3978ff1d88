#!/usr/bin/env python3
"""Verifies an export of Annals, or the proof of one entry, as docs/proof.md specifies them, with Python's standard library.

Usage: verify.py <export.ndjson or proof.json> [anchors.ndjson] [--key <public key in hexadecimal>]
It prints what it found, a line each, and exits with 1 if that is anything.
"""

import hashlib
import json
import sys

sys.setrecursionlimit(10_000)
ZERO = "0" * 64


class Digits(str):
    """A number as it is written."""


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def parse(text: str):
    return json.loads(text, parse_int=Digits, parse_float=Digits)


def canonical(value) -> str:
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(canonical, value)) + "]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
        return "{" + ", ".join(f"{canonical(name)}: {canonical(value[name])}" for name in names) + "}"
    return json.dumps(value, ensure_ascii=False)


def link_after(link: bytes, entry: dict) -> bytes:
    content = [entry.get(name) for name in ("type", "role", "format", "key", "occurred_at", "data", "meta")]
    return link_of(link, entry, sha256(canonical(content).encode()))


def link_of(link: bytes, entry: dict, content_hash: bytes) -> bytes:
    frame = "".join(f"{entry[name]}\n" for name in ("seq", "id", "created_at", "kind"))
    return sha256(link, frame.encode(), content_hash)


def genesis(session: dict, after_seq: int) -> bytes:
    return sha256(f"annals-proof-1\n{session['id']}\n{after_seq}\n{session.get('forked_proof') or ''}".encode())


def leaf_hash(leaf: dict) -> bytes:
    return sha256(b"\0", "".join(f"{leaf[name]}\n" for name in ("session_id", "seq", "head", "state")).encode())


def merkle_root(level: list) -> bytes:
    while len(level) > 1:
        pairs = [sha256(b"\1", *level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0] if level else sha256()


def statement(anchor: dict) -> bytes:
    names = ("nth", "project", "made_at", "size", "root", "previous", "public_key")
    return ("annals-anchor-1\n" + "".join(f"{anchor[name]}\n" for name in names)).encode()


P = 2**255 - 19
D = -121665 * pow(121666, P - 2, P) % P
L = 2**252 + 27742317777372353535851937790883648493


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n: int, p):
    q = (0, 1, 1, 0)
    while n:
        if n & 1:
            q = add(q, p)
        p, n = add(p, p), n >> 1
    return q


def point(raw: bytes):
    y = int.from_bytes(raw, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - x2) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    if len(key) != 32 or len(signature) != 64:
        return False
    a, r, s = point(key), point(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    left, right = times(s, BASE), add(r, times(k, a))
    return all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))


def check_anchors(anchors: list, keys: set, found: list) -> None:
    """Each is signed, and names the one before it; so the signature of the last one under a key is for all before."""
    previous = ZERO
    for at, anchor in enumerate(anchors):
        name = f"anchor {anchor['nth']}"
        if int(anchor["nth"]) != at + 1 or anchor["previous"] != previous:
            found.append(f"{name}: it does not follow the anchor before it")
        previous = sha256(statement(anchor)).hex()
        if keys and anchor["public_key"] not in keys:
            found.append(f"{name}: it is signed with another key, {anchor['public_key']}")
        if at + 1 < len(anchors) and anchors[at + 1]["public_key"] == anchor["public_key"]:
            continue
        signature, key = bytes.fromhex(anchor["signature"]), bytes.fromhex(anchor["public_key"])
        if not is_signed(key, statement(anchor), signature):
            found.append(f"{name}: its signature is not that of its statement")


def check_proof(text: str, anchors, keys: set, found: list) -> None:
    """The proof of one entry, as the API answers it on one line."""
    answer = parse(text)
    proof = answer.get("data", answer)
    session_id, entry, anchor = proof["session_id"], proof["entry"], proof["anchor"]
    name, seq = f"session {session_id}, seq {entry['seq']}", int(entry["seq"])
    session = {"id": session_id, "forked_proof": proof["forked_proof"]}
    before = genesis(session, seq - 1) if proof["begins"] else bytes.fromhex(proof["before"])
    link = link_after(before, entry)
    if link.hex() != proof["link"] or before.hex() != proof["before"]:
        found.append(f"{name}: it is not what was chained")
    if anchor is None:
        print("1 entry, no anchor")
        return
    steps, leaf, stated = anchor["steps"], anchor["leaf"], anchor["statement"]
    nth = f"anchor {stated['nth']}"
    print(f"1 entry, {nth} signed with {stated['public_key']}")
    if steps is None:
        found.append(f"{name}: the anchored head is too far away for one answer; verify an export")
    for step in steps or []:
        seq += 1
        if int(step["seq"]) != seq:
            found.append(f"{name}: an entry before the anchored head is missing")
        link = link_of(link, step, bytes.fromhex(step["content_sha256"]))
    is_head = (leaf["session_id"], int(leaf["seq"]), leaf["head"], leaf["state"]) == (session_id, seq, link.hex(), "live")
    if steps is not None and not is_head:
        found.append(f"{name}: its chain does not lead to the head of {nth}")
    root = leaf_hash(leaf)
    for step in anchor["path"]:
        beside = bytes.fromhex(step["hash"])
        root = sha256(b"\1", beside, root) if step["side"] == "left" else sha256(b"\1", root, beside)
    if root.hex() != stated["root"]:
        found.append(f"{nth}: its root is not that of its leaves")
    if keys and stated["public_key"] not in keys:
        found.append(f"{nth}: it is signed with another key, {stated['public_key']}")
    if not is_signed(bytes.fromhex(stated["public_key"]), statement(stated), bytes.fromhex(stated["signature"])):
        found.append(f"{nth}: its signature is not that of its statement")
    if anchors is not None and statement(stated) not in map(statement, anchors):
        found.append(f"{nth}: the anchor file does not have it")


def main(export_path: str, anchors_path, keys: set) -> list:
    found, sessions, links, anchors = [], {}, set(), []
    session, link = {}, None

    if anchors_path:
        with open(anchors_path, encoding="utf-8") as lines:
            anchors = list(map(parse, lines))
    check_anchors(anchors, keys, found)
    with open(export_path, encoding="utf-8") as lines:
        first = next(lines)
        header = json.loads(first)
        if "annals_export" not in header:
            check_proof(first, anchors if anchors_path else None, keys, found)
            return found
        for text in lines:
            line = parse(text)
            kind = line["kind"]
            if kind == "session":
                session, link = line, None
                sessions[line["id"]] = line
            elif kind in ("event", "message"):
                if "proof" not in line:
                    if link:
                        found.append(f"session {line['session_id']}, seq {line['seq']}: it has no link, and those before it have")
                    continue
                expected = link_after(link or genesis(session, int(line["seq"]) - 1), line)
                if expected.hex() != line["proof"] or line["session_id"] != session["id"]:
                    found.append(f"session {line['session_id']}, seq {line['seq']}: it is not what was chained")
                link = bytes.fromhex(line["proof"])
                links.add((line["session_id"], line["seq"], line["proof"]))
    for anchor in anchors:
        leaves = anchor["leaves"]
        if len(leaves) != int(anchor["size"]) or merkle_root([*map(leaf_hash, leaves)]).hex() != anchor["root"]:
            found.append(f"anchor {anchor['nth']}: its root is not that of its leaves")
        if anchor["project"] != header["project_id"] or anchor["made_at"] > header["exported_at"]:
            continue
        for leaf in leaves:
            name = (leaf["session_id"], leaf["seq"], leaf["head"])
            # A session that is gone was erased; one that was created later under the same id is another one.
            created_at = sessions.get(leaf["session_id"], {}).get("created_at", "~")
            if leaf["state"] == "live" and created_at <= anchor["made_at"] and name not in links:
                found.append(f"session {name[0]}, seq {name[1]}: its log does not have the head of anchor {anchor['nth']}")
    signed_with = sorted({a["public_key"] for a in anchors})
    print(f"{len(sessions)} sessions, {len(links)} links, {len(anchors)} anchors signed with {', '.join(signed_with) or 'no key'}")
    return found


if __name__ == "__main__":
    arguments = sys.argv[1:]
    given = {arguments.pop(at + 1) for at in range(len(arguments) - 2, -1, -1) if arguments[at] == "--key"}
    paths = [argument for argument in arguments if argument != "--key"]
    if not 1 <= len(paths) <= 2:
        sys.exit(__doc__)
    problems = main(paths[0], paths[1] if len(paths) == 2 else None, given)
    print("\n".join(problems) or "Nothing was found.")
    sys.exit(1 if problems else 0)
