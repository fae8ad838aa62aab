"""The whole flow on an object store: same outputs as on disk, atomic writes, and no secrets in outputs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import InputError, WriteFailed
from shotproof.core.storage.files import names_below, open_file, path_exists
from shotproof.features.features import Features
from shotproof.pipeline.read import read
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.shapes import ShapesWorld
from tests.scale.conftest import SECRET

pytestmark = pytest.mark.scale


@pytest.fixture
def images(bucket: str, tmp_path: Path) -> Path:
    """Write a folder of images, and upload it to the bucket."""
    import boto3

    ShapesWorld(classes=5, items=12).write(tmp_path / "birds")
    (tmp_path / "birds/catalog.parquet").unlink(missing_ok=True)
    store = boto3.client("s3")
    for path in (tmp_path / "birds").rglob("*.png"):
        store.upload_file(str(path), bucket.removeprefix("s3://"), path.relative_to(tmp_path).as_posix())
    return tmp_path / "birds"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--workers", "1", "--no-progress"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def flow(place: str, cache: Path, images: str, features: str) -> str:
    """Run catalog, encode, sample, evaluate and report, and return their output."""
    cached = ["--cache", str(cache)]
    sizes = ["--shot", "1", "--query", "5"]
    output = run("catalog", images, "-o", f"{place}/catalog.parquet", "--check", *sizes)
    encoder = ["--encoder", "pixels(size=4)", "-o", f"{place}/{features}"]
    output += run("encode", f"{place}/catalog.parquet", *encoder, *cached)
    sampler = ["--sampler", "hardest", "--tasks", "20", *sizes]
    output += run("sample", f"{place}/catalog.parquet", f"{place}/{features}", *sampler, "-o", f"{place}/tasks.parquet")
    methods = ["-m", "ncc", "-m", "ridge", "-o", f"{place}/results.parquet"]
    output += run("evaluate", f"{place}/tasks.parquet", f"{place}/{features}", *methods)
    made = [f"{place}/{name}" for name in ("results.parquet", "tasks.parquet", "catalog.parquet", features)]
    return output + run("compare", *made, "-o", f"{place}/report.html", *cached)


@pytest.mark.parametrize("features", ["features.parquet", "features.parts"])
def test_the_flow_is_the_same_as_on_disk(bucket: str, images: Path, tmp_path: Path, features: str) -> None:
    output = flow(bucket, tmp_path / "cache", f"{bucket}/birds", features)
    flow(str(tmp_path), tmp_path / "cache", str(images), features)
    for kind, name in ((Catalog, "catalog.parquet"), (TaskSet, "tasks.parquet"), (Results, "results.parquet")):
        assert kind.read(f"{bucket}/{name}").digest == kind.read(tmp_path / name).digest  # type: ignore[attr-defined]
    assert Features.read(f"{bucket}/{features}").digest == Features.read(tmp_path / features).digest
    assert read(bucket).results[0].digest == Results.read(tmp_path / "results.parquet").digest
    assert Catalog.read(f"{bucket}/catalog.parquet").table.column("path")[0].as_py().startswith("birds/")
    with open_file(Path(bucket) / "report.html") as page:
        assert b"data:image/" in page.read()  # the items' thumbnails
    assert SECRET not in output
    for name in names_below(Path(bucket)):
        with open_file(Path(bucket) / name) as file:
            assert SECRET.encode() not in file.read()


def test_items_in_an_archive_of_the_store(bucket: str, images: Path, tmp_path: Path) -> None:
    import boto3

    archive = shutil.make_archive(str(tmp_path / "birds"), "zip", images)
    boto3.client("s3").upload_file(archive, bucket.removeprefix("s3://"), "archive/birds.zip")
    digests = []
    for name, place in (("here", str(images)), ("there", f"{bucket}/archive/birds.zip")):
        catalog, features = str(tmp_path / f"{name}.parquet"), str(tmp_path / f"{name}-features.parquet")
        run("catalog", place, "-o", catalog)
        run("encode", catalog, "--encoder", "pixels(size=4)", "--cache", str(tmp_path / name), "-o", features)
        digests.append((Catalog.read(catalog).digest, Features.read(features).digest))
    assert digests[0] == digests[1]


def test_an_encoding_that_was_ended_goes_on(bucket: str, tmp_path: Path) -> None:
    import boto3

    from shotproof.features.feature_parts import encode_parts

    catalog = ShapesWorld(classes=5, items=12).write(tmp_path / "again")
    folder = f"{bucket}/features.parts"
    first = encode_parts(catalog, "pixels(size=4)", folder, rows=25)
    store = boto3.resource("s3").Bucket(bucket.removeprefix("s3://"))
    store.delete_objects(
        Delete={"Objects": [{"Key": f"features.parts/{n}"} for n in ("whole.json", "part-00001.parquet")]}
    )
    with pytest.raises(InputError, match=r"features.parts is incomplete"):
        Features.read(folder)
    again = encode_parts(catalog, "pixels(size=4)", folder, rows=25)
    assert (first.existing, again.existing, again.items) == (0, 2, 60)


def test_what_is_not_there_is_told_in_one_line(bucket: str, tmp_path: Path) -> None:
    for path, message in (
        (f"{bucket}/catalog.parquet", r"s3://shotproof-tests/catalog.parquet does not exist"),
        ("s3://no-such-bucket/catalog.parquet", r"s3://no-such-bucket/catalog.parquet does not exist"),
    ):
        with pytest.raises(InputError, match=message):
            Catalog.read(path)
    with pytest.raises(WriteFailed, match=r"cannot write s3://no-such-bucket/tasks.parquet: .*NO_SUCH_BUCKET"):
        ShapesWorld(classes=5, items=12).catalog().write("s3://no-such-bucket/tasks.parquet")


def test_a_store_that_goes_away_leaves_nothing(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setattr("shotproof.core.storage.object_stores.ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(WriteFailed, match=r"cannot write s3://shotproof-tests/catalog.parquet"):
        ShapesWorld(classes=5, items=12).catalog().write(f"{bucket}/catalog.parquet")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert not path_exists(f"{bucket}/catalog.parquet")
