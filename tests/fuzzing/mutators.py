"""How files of each kind are damaged."""

from __future__ import annotations

import io
import json
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.fuzzing import raw
from tests.fuzzing.choices import Choices
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
        document = tomllib.loads(content.decode())
        for _ in range(1 + choices.below(2)):
            document = changed(document, choices, toml_value, keys) if isinstance(document, dict) else document
        return to_toml(document).encode("utf-8", "surrogatepass")

    return either(mutate)


def changed_json(content: bytes, choices: Choices) -> bytes:
    """Other values."""
    return to_json(changed(json.loads(content), choices, json_value)).encode("utf-8", "surrogatepass")


def changed_manifest(content: bytes, choices: Choices) -> bytes:
    """A bundle whose manifest says something else."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    members["manifest.json"] = changed_json(members["manifest.json"], choices)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
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
