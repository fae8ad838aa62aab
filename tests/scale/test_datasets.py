"""Image and sound data sets saved by `datasets`, through the whole flow; nothing is downloaded without consent."""

from __future__ import annotations

import io
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from typer.testing import CliRunner

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.catalog_check import check_catalog
from shotproof.catalog.layout import read_layout
from shotproof.cli.app import app
from shotproof.core.errors import InputError
from shotproof.core.storage.files import open_file
from shotproof.media.images import open_image
from shotproof.results.results import Results

pytestmark = [pytest.mark.scale, pytest.mark.filterwarnings("ignore::DeprecationWarning:(multiprocess|dill|datasets)")]

NAMES = ["jay", "owl", "rook", "teal", "wren"]
LABELS = [row % 5 for row in range(60)]
rng = np.random.default_rng(0)


def pixels(label: int) -> np.ndarray[Any, Any]:
    return (rng.random((8, 8, 3)) * 100 + 30 * label).astype(np.uint8)


def image(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "PNG")
    return {"bytes": buffer.getvalue(), "path": None}


def sound(label: int) -> dict[str, Any]:
    import soundfile

    buffer = io.BytesIO()
    wave = np.sin(np.arange(8000) * (0.05 + 0.1 * label)) + 0.1 * rng.normal(size=8000)
    soundfile.write(buffer, wave / 2, 16_000, format="FLAC")
    return {"bytes": buffer.getvalue(), "path": "recording.flac"}


def data_set(column: str, items: Sequence[dict[str, Any]], labels: Sequence[int] = LABELS) -> Any:
    import datasets

    kind = datasets.Image() if column == "image" else datasets.Audio()
    features = datasets.Features({column: kind, "label": datasets.ClassLabel(names=NAMES)})
    return datasets.Dataset(pa.Table.from_pydict({column: items, "label": labels}, schema=features.arrow_schema))


def run(*arguments: str) -> None:
    done = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(("column", "encoder"), [("image", "pixels(size=4)"), ("audio", "logmel")])
def test_a_saved_set_goes_through_the_whole_flow(tmp_path: Path, column: str, encoder: str) -> None:
    import datasets

    items = [image(pixels(label)) if column == "image" else sound(label) for label in LABELS]
    other = [image(pixels(label)) if column == "image" else sound(label) for label in LABELS]
    splits = {"train": data_set(column, other), "test": data_set(column, items)}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved", num_shards={"train": 1, "test": 3})
    catalog, features, tasks, results = (
        str(tmp_path / f"{name}.parquet") for name in ("catalog", "features", "tasks", "results")
    )
    sizes = ["--shot", "1", "--query", "5"]
    run("catalog", str(tmp_path / "saved"), "--layout", "hf", "-o", catalog)
    found = Catalog.read(catalog)
    assert found.splits == ["test", "train"]
    assert found.medium == ("image" if column == "image" else "sound")
    assert str(found.record.layout) == "hf"
    test = found.in_split("test")
    assert sorted(test.table.column("label").to_pylist()) == sorted(NAMES[label] for label in LABELS)
    contents = {items[row]["bytes"]: NAMES[LABELS[row]] for row in range(len(items))}
    for path, label in zip(test.paths, test.table.column("label").to_pylist(), strict=True):
        with open_file(path) as file:
            assert contents[file.read()] == label
    assert check_catalog(test, way=5, shot=1, query=5) == []
    cache = ["--cache", str(tmp_path / "cache")]
    run("encode", catalog, "--encoder", encoder, "--workers", "2", *cache, "-o", features)
    drawn = ["--split", "test", "--tasks", "20", *sizes, "-o", tasks]
    run("sample", catalog, "--sampler", "random", *drawn)
    run("evaluate", tasks, features, "-m", "ncc", "-o", results)
    assert Results.read(results).counts("ncc").accuracy_by_task().mean() > 60
    page = str(tmp_path / "report.html")
    run("compare", results, tasks, catalog, features, "-o", page, *cache)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_parquet_files_like_those_of_the_hub(tmp_path: Path) -> None:
    values = [pixels(label) for label in LABELS]
    made = data_set("image", [image(one) for one in values])
    for number, split in enumerate(("train", "validation")):
        path = tmp_path / f"data/{split}-00000-of-00001.parquet"
        path.parent.mkdir(exist_ok=True)
        made.select(range(30 * number, 30 * number + 30)).to_parquet(path)
    catalog = read_layout(tmp_path / "data", "hf")
    assert catalog.splits == ["train", "validation"]
    for row in (0, 29, 30, 59):
        assert np.array_equal(open_image(catalog.paths[row]), values[row])
        assert catalog.table.column("label")[row].as_py() == NAMES[LABELS[row]]


def test_parquet_files_of_a_store_are_read_in_place(bucket: str, tmp_path: Path) -> None:
    import boto3

    values = [pixels(label) for label in LABELS]
    data_set("image", [image(one) for one in values]).to_parquet(tmp_path / "test.parquet")
    boto3.client("s3").upload_file(str(tmp_path / "test.parquet"), bucket.removeprefix("s3://"), "data/test.parquet")
    catalog = read_layout(f"{bucket}/data", "hf")
    catalog.write(tmp_path / "catalog.parquet")
    again = Catalog.read(tmp_path / "catalog.parquet")
    assert again.table.column("path")[7].as_py() == f"{bucket}/data/test.parquet!/image/000000007.png"
    assert np.array_equal(open_image(again.paths[7]), values[7])


def test_a_name_is_not_downloaded_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("it asks the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    with pytest.raises(InputError, match=r"'owner/birds' has not been downloaded: .*hub=True"):
        read_layout(None, "hf:owner/birds")


def test_which_column_is_asked_for(tmp_path: Path) -> None:
    import datasets

    kinds = {"a": datasets.Image(), "b": datasets.Image(), "kind": datasets.ClassLabel(names=NAMES)}
    columns = {name: [image(pixels(label)) for label in LABELS] for name in ("a", "b")}
    schema = datasets.Features(kinds).arrow_schema
    datasets.Dataset(pa.Table.from_pydict({**columns, "kind": LABELS}, schema=schema)).save_to_disk(tmp_path / "saved")
    with pytest.raises(InputError, match=r"column='...', one of a, b"):
        read_layout(tmp_path / "saved", "hf")
    assert len(read_layout(tmp_path / "saved", "hf(column='b')")) == len(LABELS)
    with pytest.raises(InputError, match="unknown column 'c'"):
        read_layout(tmp_path / "saved", "hf(column='c')")
