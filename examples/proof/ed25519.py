"""Verifies signatures of Ed25519, as RFC 8032 has it, which Python's standard library lacks."""

import hashlib

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def add(p, q):
    """Points are in extended coordinates (x, y, z, x·y ÷ z), which need no division: RFC 8032, 5.1.4."""
    (x1, y1, z1, t1), (x2, y2, z2, t2) = p, q
    a, b, c, d = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2), 2 * t1 * t2 * D, 2 * z1 * z2
    e, f, g, h = (b - a) % P, (d - c) % P, (d + c) % P, (b + a) % P
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n: int, p):
    half = times(n // 2, add(p, p)) if n else (0, 1, 1, 0)
    return add(half, p) if n & 1 else half


def is_same(p, q) -> bool:
    return (p[0] * q[2] - q[0] * p[2]) % P == (p[1] * q[2] - q[1] * p[2]) % P == 0


def point(raw: bytes):
    y = int.from_bytes(raw, "little")
    odd, y = y >> 255, y & (2**255 - 1)
    xx = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    root = pow(xx, (P + 3) // 8, P)
    x = root if root * root % P == xx else root * pow(2, (P - 1) // 4, P) % P
    if y >= P or x * x % P != xx or (x == 0 and odd):
        raise ValueError
    x = x if x % 2 == odd else P - x
    return x, y, 1, x * y % P


BASE = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        a, r, s = point(key), point(signature[:32]), int.from_bytes(signature[32:], "little")
    except ValueError:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    return len(signature) == 64 and s < L and is_same(times(s, BASE), add(r, times(k, a)))
