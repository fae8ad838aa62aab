"""Damaged bytes, damaged text, and the containers of arrays and weights."""

from __future__ import annotations

import io
import json
import struct
import zipfile

import numpy as np

from tests.fuzzing.choices import Choices
from tests.fuzzing.values import LONG, changed, json_value, to_json


def damaged(content: bytes, choices: Choices) -> bytes:
    """Bytes flipped, cut, doubled, moved or replaced."""
    data = bytearray(content)
    for _ in range(1 + choices.below(3)):
        place = choices.below(len(data) or 1)
        action = choices.below(8)
        if action == 0:
            del data[place:]
        elif action == 1:
            del data[place : place + 1 + choices.below(16)]
        elif action == 2:
            data[place:place] = choices.some_bytes(16)
        elif action == 3:
            data[place:place] = data[place : place + 64]
        elif action == 4:
            data[place : place + 8] = choices.pick(
                (b"\0" * 8, b"\xff" * 8, b"\x7f" + b"\xff" * 7, struct.pack("<q", 2**40))
            )
        elif action == 5:
            data = bytearray(
                choices.pick((b"", b"\0", b"\xff\xfe\0", b"\n\n", b"\xef\xbb\xbf", b"a" * 2**20, b"\0" * 2**20))
            )
        elif len(data):
            data[place] ^= 1 << choices.below(8)
    return bytes(data)


def changed_csv(content: bytes, choices: Choices) -> bytes:
    """A CSV file with another cell, column or line."""
    rows = [line.split(b",") for line in content.splitlines()]
    row = choices.below(len(rows))
    column = choices.below(len(rows[row]) or 1)
    action = choices.below(7)
    strange = (
        b"",
        b'"',
        b"\xff",
        b"a\0b",
        b"x" * LONG,
        b"1e999",
        b"nan",
        b"-1",
        "\ud800".encode("utf-8", "surrogatepass"),
        b'"a\nb"',
        b"w" * 2**20,
        b"9" * 30,
    )
    if action < 3 and rows[row]:
        rows[row][column] = choices.pick(strange)
    elif action == 3:
        rows[row] = rows[row][:column]
    elif action == 4:
        rows = [[*row, row[min(column, len(row) - 1)] if row else b""] for row in rows]
    elif action == 5:
        rows = [row[:column] + row[column + 1 :] for row in rows]
    else:
        rows.insert(row, choices.pick(rows))
    return b"\n".join(b",".join(row) for row in rows) + b"\n"


def changed_json_lines(content: bytes, choices: Choices) -> bytes:
    """A file of JSON lines in which one line holds something else."""
    lines = content.splitlines()
    place = choices.below(len(lines))
    document = changed(json.loads(lines[place]), choices, json_value)
    if choices.below(6) == 0:
        document = {
            "item": document["item"] if isinstance(document, dict) and "item" in document else "x",
            "caption": "w" * 2**20,
        }
    lines[place] = to_json(document).encode("utf-8", "surrogatepass")
    return b"\n".join(lines) + b"\n"


def changed_npy(content: bytes, choices: Choices) -> bytes:
    """A NumPy array whose header says something else."""
    old = choices.pick((b"False", b"'<f4'", b"(", b"fortran_order", b"}", b"shape"))
    new = choices.pick(
        (b"True", b"'|O'", b"'<U4'", b"'<M8[s]'", b"(99999999999, ", b"(-1, ", b"\xff", b"'", b"((", b"[" * 200, b"")
    )
    header = content[:128].replace(old, new, 1)[:128].ljust(128)
    return header + content[128:]


def changed_npz(content: bytes, choices: Choices) -> bytes:
    """An archive of arrays in which one of them is something else, or unpacks to very much."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = choices.pick(sorted(members))
    action = choices.below(9)
    if action >= 6:
        members[name] = _other_array(members[name], choices)
    elif action == 0:
        del members[name]
    elif action == 1:
        members[name] = damaged(members[name], choices)
    elif action == 2:
        array = io.BytesIO()
        np.save(
            array,
            choices.pick(
                (
                    np.zeros(3),
                    np.array(["x"] * 3),
                    np.array(["\ud800", "x"]),
                    np.array([2**31 - 1], "<u4").view("<U1"),
                    np.zeros((2, 0)),
                    np.array(1),
                    np.array([1j]),
                    np.zeros((2, 2, 2)),
                )
            ),
        )
        members[name] = array.getvalue()
    elif action == 3:
        bomb = io.BytesIO()
        np.lib.format.write_array_header_1_0(bomb, {"descr": "<f4", "fortran_order": False, "shape": (2**25, 4)})
        members[name] = bomb.getvalue() + bytes(2**29)
    else:
        members[name] = changed_npy(members[name], choices)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return written.getvalue()


def _other_array(content: bytes, choices: Choices) -> bytes:
    """An array with other values, of its own type and size or of others."""
    array = np.load(io.BytesIO(content))
    place = choices.below(len(array) or 1)
    if array.dtype.kind == "U":
        names = array.tolist()
        names[place] = choices.pick(("\ud800", "a\0b", "", "\x1b[2J", "\u202ex", "x" * LONG, names[0], "\n"))
        array = np.array(names)
        others = (array, array[:, None], np.arange(len(names)), array.astype(object), array[:-1], array.astype(">U900"))
        array = choices.pick(others)
    else:
        with np.errstate(all="ignore"):
            array = array.astype(choices.pick(("<f4", "<f8", ">f4", "<f2", "|b1", "<c8")))
        array[place] = choices.pick((np.nan, np.inf, 0, 1e4))
        array = choices.pick((array, array[:-1], array[:0], array[:, :0], array.T, array.ravel(), array[None]))
    written = io.BytesIO()
    np.save(written, array, allow_pickle=True)
    return written.getvalue()


def changed_tensors(content: bytes, choices: Choices) -> bytes:
    """A file of safetensors whose header, or whose metadata within it, holds something else."""
    (size,) = struct.unpack("<Q", content[:8])
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    if choices.below(3):
        meta = changed(
            json.loads(header["__metadata__"]["shotproof"]), choices, json_value, ("format", "kind", "settings")
        )
        header["__metadata__"]["shotproof"] = to_json(meta)
    else:
        header = changed(header, choices, json_value, ("__metadata__",))
    text = to_json(header).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + body
