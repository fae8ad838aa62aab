from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shotproof.core.errors import InputError
from shotproof.pipeline.file_kinds import holds_files, kind_of, read_kind
from shotproof.worlds.shapes import ShapesWorld


def test_a_file_says_what_it_holds_by_its_metadata_or_its_columns(tmp_path: Path) -> None:
    world, file = ShapesWorld(classes=2, items=2), tmp_path / "file.parquet"
    world.attributes().write(file)
    assert kind_of(file) == "attributes"
    assert read_kind(file, "attributes").digest == world.attributes().digest
    with pytest.raises(InputError, match=r"expected a file of kind .catalog., found kind 'attributes'"):
        read_kind(file, "catalog")
    pq.write_table(world.catalog().table.replace_schema_metadata(None), file)
    assert kind_of(file) == "catalog"
    pq.write_table(pa.table({"a": [1]}), file)
    with pytest.raises(InputError, match=r"is not a Shotproof file: .*results, tasks, .* columns are a"):
        kind_of(file)


def test_a_table_in_parts_is_no_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "features.parts").mkdir()
    assert holds_files(tmp_path / "run")
    assert not holds_files(tmp_path / "features.parts")


def test_looking_does_not_import_torch() -> None:
    code = "import sys, shotproof.pipeline.file_kinds; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
