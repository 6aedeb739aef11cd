"""Inputs as a bad day makes them: seeded changes of bytes, of text, and of trees of values."""

import random
import re
import struct

WHOLE = (0, 1, -1, 2, 255, 256, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**53, 2**63 - 1, -(2**63), 2**64 - 1, 10**30)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 1e-320, 1e-12, 1e12, 1e30, -1e30, 1.7e308, -1.7e308, float("inf"), -float("inf"), float("nan"))
TEXTS = ("", "\0", "a" * 300, "x" * 5000, "9" * 5000, "-" + "9" * 5000, "1e999", "nan", "inf", "../../etc/passwd", "/dev/zero", "/dev/null",
         "part", "\u00b2", "\u0663", "\ud7ff\uffff", "[" * 2000, "{}", "true", "'", '"', "#", ",", "\n", "\r\n", ";" * 50)  # fmt: skip
NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def mutated_bytes(rng: random.Random, data: bytes, others: list[bytes], most: int = 4) -> bytes:
    """`data` after one to `most` changes; others: where spliced pieces come from."""
    out = bytearray(data)
    for _ in range(rng.randint(1, most)):
        _change(rng, out, others)
    return bytes(out)


def _change(rng: random.Random, out: bytearray, others: list[bytes]) -> None:
    size = len(out)
    at = rng.randrange(size) if size else 0
    kind = rng.randrange(9)
    if kind == 0 and size:
        out[at] ^= 1 << rng.randrange(8)
    elif kind == 1 and size:
        out[at] = rng.choice((0, 1, 0x20, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    elif kind == 2:
        del out[at:]
    elif kind == 3:
        del out[at : at + rng.choice((1, 2, 4, 8, 16, 100, 1000))]
    elif kind == 4:
        out[at:at] = out[at : at + rng.choice((1, 4, 16, 256))] * rng.choice((1, 2, 40))
    elif kind == 5:
        other = rng.choice(others)
        start = rng.randrange(len(other) + 1)
        out[at : at + rng.choice((0, 8, 64))] = other[start : start + rng.choice((4, 16, 64, 1000))]
    elif kind == 6:
        # a length, an offset or a number of a binary format
        form = rng.choice("<B <H <I <Q >H >I >Q <i <d".split())
        number = rng.choice(NUMBERS) if form == "<d" else rng.choice(WHOLE)
        word = struct.pack("<d", number) if form == "<d" else (int(number) & (1 << 8 * struct.calcsize(form)) - 1).to_bytes(
            struct.calcsize(form), "little" if form[0] == "<" else "big")  # fmt: skip
        out[at : at + len(word)] = word
    elif kind == 7:
        # a number of a text format
        found = [m for _, m in zip(range(400), NUMBER.finditer(bytes(out), max(0, at - 200)), strict=False)]
        if found:
            one = rng.choice(found)
            out[one.start() : one.end()] = str(rng.choice((*WHOLE, *NUMBERS, "9" * 5000, "0x10", "1_000", "1e999", ""))).encode()
    else:
        noise = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 30))))
        out[at:at] = rng.choice((noise, rng.choice(TEXTS).encode("utf-8", "replace")))


def any_value(rng: random.Random, depth: int = 0):
    """Some value of any kind."""
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return rng.choice(WHOLE)
    if kind == 1:
        return rng.choice(NUMBERS)
    if kind == 2:
        return rng.choice(TEXTS)
    if kind == 3:
        return rng.random() * 10 ** rng.randint(-6, 6)
    if kind == 4:
        return rng.random() < 0.5
    if kind == 5:
        return rng.randint(-3, 40)
    if kind == 6:
        return [any_value(rng, depth + 1) for _ in range(rng.randint(0, 7))]
    if kind == 7:
        return {rng.choice(("part", "a", "", "x.y", "id")): any_value(rng, depth + 1) for _ in range(rng.randint(0, 3))}
    return [any_value(rng, depth + 1)] * rng.choice((0, 1, 3, 6, 7, 100))


def mutated_tree(rng: random.Random, tree, most: int = 3):
    """A copy of a tree of tables and lists with one to `most` places changed."""
    tree = _copy(tree)
    for _ in range(rng.randint(1, most)):
        holder, key = _place(rng, tree)
        if holder is None:
            return any_value(rng)
        kind = rng.randrange(6)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[rng.choice((f"{key}x", str(key)[:-1], "", "part"))] = holder.pop(key)
        elif kind == 2 and isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = type(holder[key])(rng.choice((0, -1, 1, 1e9, -1e9))) * (rng.random() if isinstance(holder[key], float) else 1)
        elif kind == 3:
            holder[key] = rng.choice((*WHOLE, *NUMBERS))
        else:
            holder[key] = any_value(rng)
    return tree


def _copy(value):
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    return [_copy(v) for v in value] if isinstance(value, list) else value


def _place(rng: random.Random, tree):
    """(holder, key) of some value in the tree, (None, None) in an empty one."""
    holder, key = None, None
    while isinstance(tree, dict | list) and tree:
        holder, key = tree, rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        tree = tree[key]
        if rng.random() < 0.15:
            break
    return holder, key
