"""Features in parts: a folder `NAME.parts`, encoded and written part by part, so that memory need not hold them all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.records import FeaturesRecord, Source
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.files import path_exists, source_of
from shotproof.core.storage.parts import mark_incomplete, part_path, write_manifest
from shotproof.core.storage.store import OnError
from shotproof.core.tables import file_metadata, hash_columns, hash_lists, read_table, require_unique
from shotproof.features.encoder import Encoder, encode, encoders, with_record
from shotproof.features.features import TEXT, Features, Tally

ROWS = 2**16  # items per part
BATCH_ROWS = 2**14


@dataclass(frozen=True)
class EncodedParts:
    """Summary of features written in parts.

    record: record of the features
    items, size: number of items, and of values per item
    tally: numbers of encoded and reused items
    existing: number of parts that existed already
    """

    record: FeaturesRecord
    items: int
    size: int
    tally: Tally
    existing: int


def encode_parts(
    catalog: Catalog,
    encoder: str | Mapping[str, Any] | Encoder,
    path: str | Path,
    *,
    rows: int = ROWS,
    on_error: OnError = "raise",
    runtime: Runtime | None = None,
) -> EncodedParts:
    """Encode the items of a catalog and write the features in parts. The same call resumes at the first missing part.

    Args:
        catalog: items to encode
        encoder: encoder, in any form that `encode` accepts
        path: the folder, whose name ends with `.parts`; `Features.read` reads it
        rows: number of items per part
        on_error: what to do with an item whose file cannot be read: `raise` or `skip`
        runtime: runtime settings

    Returns:
        A summary. The digest in its record is that of the same features in one file.

    Raises:
        UnreadableItem: the file of an item cannot be read.
        InputError: an option is invalid, or the encoder does not support such items.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog = sp.worlds.ShapesWorld(classes=2, items=3).write(folder)
        >>> encode_parts(catalog, "pixels(size=4)", folder / "features.parts", rows=4).items
        6
        >>> sp.Features.read(folder / "features.parts").array.shape
        (6, 48)
    """
    encoder, path = encoders.make(encoder), Path(path)
    if not len(catalog):
        raise InputError(f"encoder '{encoder.name}': the catalog has no items")
    mark_incomplete(path)
    starts = range(0, len(catalog), rows)
    records, encoded, reused, existing = [], 0, 0, 0
    with resolve(runtime) as current:
        for number, start in enumerate(starts):
            part = replace(catalog, table=catalog.table.slice(start, rows))
            file = part_path(path, number)
            record = _read_finished(file, part, encoder)
            if record is None:
                features = encode(part, encoder, on_error=on_error, runtime=current)
                features.write(file)
                record, tally = features.record, features.tally or Tally()
                encoded, reused = encoded + tally.encoded, reused + tally.reused
            else:
                existing += 1
            records.append(record)
    skipped = tuple(item for record in records for item in record.skipped)
    record = replace(
        records[0],
        skipped=skipped,
        stated_digest=None,
        sources={**records[0].sources, "catalog": Source(catalog.digest, catalog.record.name)},
    )
    items, size = join_parts(path, len(starts), record)
    return EncodedParts(record, items, size, Tally(encoded, reused), existing)


def join_parts(folder: Path, count: int, record: FeaturesRecord) -> tuple[int, int]:
    """Complete a folder of features in parts; return the number of items, and of values per item.

    Raises:
        InputError: an item is in two parts, or the parts have different columns.
    """
    paths = [part_path(folder, number) for number in range(count)]
    schemas = [pq.read_schema(source_of(path)).remove_metadata() for path in paths]
    other = next((path for path, schema in zip(paths, schemas, strict=True) if schema != schemas[0]), None)
    if other is not None:
        raise InputError(f"features: {other} has other columns than {paths[0]}: expected parts of one encoder")
    tables = [read_table(path, "features", {"item": "string"}, FeaturesRecord, columns=["item"])[0] for path in paths]
    items = pa.concat_tables(tables)
    require_unique(items.column("item"), f"features {folder}, column 'item'")
    hasher = hashlib.sha256()
    hash_columns(hasher, items, ["item"])
    for name in [name for name in ("feature", TEXT) if name in schemas[0].names]:
        hasher.update(f"{name}:{len(items)};".encode())
        hash_lists(hasher, schemas[0].field(name).type.list_size, _chunks(paths, name))
    meta = file_metadata("features", record, hasher.hexdigest()[:32])
    write_manifest(folder, [len(table) for table in tables], meta)
    return len(items), schemas[0].field("feature").type.list_size


def _chunks(paths: list[Path], name: str) -> Iterator[pa.FixedSizeListArray]:
    for path in paths:
        with pq.ParquetFile(source_of(path), page_checksum_verification=True) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=[name], use_threads=False):
                yield batch.column(0)


def _read_finished(file: Path, items: Catalog, encoder: Encoder) -> FeaturesRecord | None:
    """Return the record of a part if it has the features of these items by this encoder; None if it must be encoded."""
    if not path_exists(file):
        return None
    try:
        _, record = read_table(file, "features", {"item": "string"}, FeaturesRecord, columns=["item"])
    except InputError:
        return None
    expected = with_record(Features.from_array(["a"], [[0.0]]), encoder, items).record
    is_same = record.encoder == expected.encoder and record.sources == expected.sources
    return record if is_same and not record.skipped else None
