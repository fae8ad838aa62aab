"""Files that name what a stranger would like to run, to ask or to read, wherever a file can name something."""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MANIFEST = "manifest.json"


def forgeries(file: str, content: bytes, payload: str) -> Iterator[tuple[str, bytes]]:
    """Put a text into each place of a file that holds one: keys of its metadata and columns, one at a time.

    Args:
        file: its name, by which its kind is told
        content: of a good file
        payload: the text

    Yields:
        Where it was put, and the forged content.
    """
    suffix = file.rpartition(".")[2]
    if suffix == "parquet":
        yield from _of_parquet(content, payload)
    elif suffix == "json":
        yield from ((place, json.dumps(forged).encode()) for place, forged in _leaves(json.loads(content), payload))
    elif suffix == "toml":
        for match in re.finditer(rb'"[^"\n]*"', content):
            yield match[0].decode(), content[: match.start()] + json.dumps(payload).encode() + content[match.end() :]
    elif suffix in ("model", "checkpoint"):
        yield from _of_tensors(content, payload)
    elif suffix == "zip" and MANIFEST in zipfile.ZipFile(io.BytesIO(content)).namelist():
        yield from _of_bundle(content, payload)


def _of_parquet(content: bytes, payload: str) -> Iterator[tuple[str, bytes]]:
    table = pq.read_table(pa.BufferReader(content))
    metadata = dict(table.schema.metadata or {})
    record = json.loads(metadata.get(b"shotproof", b"{}"))
    for place, forged in _leaves(record, payload):
        yield place, _written(table.replace_schema_metadata({**metadata, b"shotproof": json.dumps(forged).encode()}))
    for name in table.column_names:
        if pa.types.is_string(table.schema.field(name).type):
            forged = table.set_column(table.column_names.index(name), name, pa.array([payload] * len(table)))
            yield f"column {name}", _written(forged.replace_schema_metadata(metadata))
    if "method" in table.column_names:  # with records that agree, so that readers get as far as they can
        methods = [{**one, "spelling": payload} for one in record.get("methods", ())]
        column = pa.array([payload] * len(table))
        forged = table.set_column(table.column_names.index("method"), "method", column)
        of_one = forged.filter(
            pa.array([one == record["methods"][0]["spelling"] for one in table["method"].to_pylist()])
        )
        told = json.dumps({**record, "methods": methods[:1]}).encode()
        yield "method and its record", _written(of_one.replace_schema_metadata({**metadata, b"shotproof": told}))
    if isinstance(record.get("sampler"), dict):
        name, _, options = payload.partition("(")
        named = re.findall(r"(\w+)='([^']*)'", options)
        sampler = {"name": name, "spelling": payload, "options": dict(named)}
        told = json.dumps({**record, "sampler": sampler}).encode()
        yield "sampler", _written(table.replace_schema_metadata({**metadata, b"shotproof": told}))


def _written(table: pa.Table) -> bytes:
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


def _of_tensors(content: bytes, payload: str) -> Iterator[tuple[str, bytes]]:
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    for key, text in header["__metadata__"].items():
        for place, forged in _leaves(json.loads(text) if text[:1] in "{[" else text, payload):
            told = forged if isinstance(forged, str) else json.dumps(forged)
            changed = json.dumps({**header, "__metadata__": {**header["__metadata__"], key: told}}).encode()
            yield f"{key}{place}", struct.pack("<Q", len(changed)) + changed + content[8 + length :]


def _of_bundle(content: bytes, payload: str) -> Iterator[tuple[str, bytes]]:
    """Forge the manifest, and each table with a manifest that agrees with it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    manifest = json.loads(members[MANIFEST])
    for place, forged in _leaves(manifest, payload):
        yield place, _zipped({**members, MANIFEST: json.dumps(forged).encode()})
    for name in members:
        for place, forged in forgeries(name, members[name], payload) if name != MANIFEST else ():
            told = {**manifest["files"][name], "sha256": hashlib.sha256(forged).hexdigest(), "bytes": len(forged)}
            files = json.dumps({**manifest, "files": {**manifest["files"], name: told}}).encode()
            yield f"{name}, {place}", _zipped({**members, name: forged, MANIFEST: files})


def _zipped(members: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return written.getvalue()


def _leaves(value: Any, payload: str, place: str = "") -> Iterator[tuple[str, Any]]:
    """A JSON value with each of its texts, one at a time, replaced; where, and the whole."""
    for key, put in _children(value):
        inner = value[key]
        for below, changed in _leaves(inner, payload, f"{place}.{key}") if not isinstance(inner, str) else ():
            yield below, put(changed)
        if isinstance(inner, str) or inner is None:
            yield f"{place}.{key}", put(payload)


def _children(value: Any) -> Iterator[tuple[Any, Callable[[Any], Any]]]:
    if isinstance(value, dict):
        for key in value:
            yield key, lambda changed, key=key: {**value, key: changed}  # type: ignore[misc]
    elif isinstance(value, list):
        for place in range(min(len(value), 3)):
            yield place, lambda changed, place=place: [*value[:place], changed, *value[place + 1 :]]  # type: ignore[misc]
