"""How files of each kind are damaged."""

from __future__ import annotations

import hashlib
import io
import json
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.fuzzing import raw
from tests.fuzzing.choices import Choices
from tests.fuzzing.tables import changed_table
from tests.fuzzing.values import changed, json_value, to_json, to_toml, toml_value

Mutate = Callable[[bytes, Choices], bytes]


def either(*mutators: Mutate) -> Mutate:
    """One of these ways, or damage to the bytes themselves."""

    def mutate(content: bytes, choices: Choices) -> bytes:
        return choices.pick((*mutators, *mutators, raw.damaged))(content, choices)

    return mutate


def changed_toml(*keys: str) -> Mutate:
    """Other values, above all of these keys."""

    def mutate(content: bytes, choices: Choices) -> bytes:
        if choices.below(8) == 7:
            return _other_text(content, choices)
        document = tomllib.loads(content.decode())
        for _ in range(1 + choices.below(2)):
            document = changed(document, choices, toml_value, keys) if isinstance(document, dict) else document
        return to_toml(document).encode("utf-8", "surrogatepass")

    return either(mutate)


def _other_text(content: bytes, choices: Choices) -> bytes:
    """A TOML file that says something twice, or in text that is none."""
    lines = content.splitlines(keepends=True)
    place, line = choices.below(len(lines)), choices.pick(lines)
    strange = (b"\xef\xbb\xbf", b"\r", b"\0", b"\xff", b'"""', b"[[tasks]]\n", b"a.b.c = 1\n")
    inserted = choices.pick((line, *strange, b"x = " + b"9" * 5_000 + b"\n"))
    return b"".join([*lines[:place], inserted, *lines[place:]])


def changed_json(content: bytes, choices: Choices) -> bytes:
    """Other values."""
    return to_json(changed(json.loads(content), choices, json_value)).encode("utf-8", "surrogatepass")


def changed_manifest(content: bytes, choices: Choices) -> bytes:
    """A bundle whose manifest says something else."""
    members = _members(content)
    members["manifest.json"] = changed_json(members["manifest.json"], choices)
    return _zipped(members)


def changed_member(content: bytes, choices: Choices) -> bytes:
    """A bundle with a damaged file in it, whose manifest has the right SHA-256 and size of that; or a strange zip."""
    members = _members(content)
    manifest = json.loads(members["manifest.json"])
    name = choices.pick(sorted(manifest["files"]))
    by_kind: dict[str, Mutate] = {".parquet": changed_table, ".json": changed_json}
    change = by_kind.get(Path(name).suffix, raw.damaged)
    members[name] = choices.pick((change, change, raw.damaged))(members[name], choices)
    manifest["files"][name] |= {"sha256": hashlib.sha256(members[name]).hexdigest(), "bytes": len(members[name])}
    strange = ("../x", "/x", "a\\b", "con", "a//b", "./x", "x" * 300, "\u202ex", "manifest.json/x")
    other = choices.pick((*[name] * 9, *strange))
    manifest["files"][other] = manifest["files"].pop(name)
    members[other] = members.pop(name)
    members["manifest.json"] = to_json(manifest).encode()
    kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    packed = _zipped(members, choices.pick(kinds))
    return choices.pick((packed, packed, packed, packed[:-22], packed.replace(b"PK\x01\x02", b"PK\x01\x03", 1)))


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {one.filename: archive.read(one) for one in archive.infolist()}


def _zipped(members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", kind) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return written.getvalue()


def changed_onnx(content: bytes, choices: Choices) -> bytes:
    """A graph with other names, axes, or numbers."""
    import onnx

    model = onnx.load_from_string(content)
    action = choices.below(5)
    if action == 0:
        return content.replace(b"image", choices.pick((b"\xff\xfe\xfdaa", b"im\0ge", b"image"[::-1])))
    if action == 1:
        return content.replace(b"vector", b"\xff\xfe\xfdaaa")
    dims = model.graph.input[0].type.tensor_type.shape.dim
    if action == 2:
        dims[choices.below(4)].dim_value = choices.pick((0, -1, 2**31, 2**40, 1, 100_000))
    elif action == 3:
        del dims[choices.below(4)]
    else:
        model.graph.input[0].type.tensor_type.elem_type = choices.below(20)
    return bytes(model.SerializeToString())


def changed_listing(file: str) -> Mutate:
    """By the ending of the file."""
    kinds = {".csv": either(raw.changed_csv), ".json": either(changed_json)}
    return kinds.get(Path(file).suffix, raw.damaged)
