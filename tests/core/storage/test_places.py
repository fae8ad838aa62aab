"""URLs and archive members as paths; credentials are rejected, and never shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, WriteFailed
from shotproof.core.storage.places import InArchive, resolve_path, split_archive_path, url_of
from shotproof.core.storage.whole_files import write_text
from shotproof.core.tables import check_output

WITH_SECRETS = [
    "s3://key:hidden@bucket/a.parquet",
    "https://me:hidden@host/a.parquet",
    "https://host/a.parquet?X-Amz-Signature=hidden&size=3",
    "https://host/a.parquet?size=3&access_token=hidden",
    "gs://bucket/a.parquet?sig=hidden",
]


@pytest.mark.parametrize("url", WITH_SECRETS)
def test_credentials_in_a_url_are_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    table = pa.table({"item": ["a"], "path": [url], "label": ["jay"], "split": ["test"]})
    for refused in (lambda: url_of(url), lambda: Catalog(table), lambda: Catalog.read(Path(url))):
        with pytest.raises(InputError, match="credentials in the environment") as caught:
            refused()
        assert "hidden" not in str(caught.value)
        assert "hidden" not in str(pickle.loads(pickle.dumps(caught.value)))


def test_queries_that_are_no_credentials_are_kept() -> None:
    assert url_of("https://host/a.png?size=3&keyword=owl") == "https://host/a.png?size=3&keyword=owl"


def test_a_url_stays_one_through_joining() -> None:
    folder = Path("s3://bucket/birds").parent / "more"
    assert url_of(folder / "1.png") == "s3://bucket/more/1.png"
    assert url_of(resolve_path(Path("data"), "gs://bucket/1.png")) == "gs://bucket/1.png"
    assert resolve_path(Path("data"), "1.png") == Path("data/1.png")


def test_a_catalog_moves_between_stores_and_disks(tmp_path: Path) -> None:
    paths = ["jay/1.png", "s3://other/2.png", "/data/3.png"]
    columns = {"item": ["a", "b", "c"], "path": paths, "label": ["jay"] * 3, "split": ["test"] * 3}
    catalog = Catalog(pa.table(columns), Path("s3://bucket/birds"))

    def moved(folder: str) -> list[str]:
        return catalog.moved_to(Path(folder)).table.column("path").to_pylist()

    assert moved("s3://bucket") == ["birds/jay/1.png", *paths[1:]]
    assert moved("s3://bucket/tasks/new") == ["../../birds/jay/1.png", *paths[1:]]
    assert moved("s3://elsewhere") == moved(str(tmp_path)) == ["s3://bucket/birds/jay/1.png", *paths[1:]]
    assert [url_of(path) for path in catalog.paths] == ["s3://bucket/birds/jay/1.png", "s3://other/2.png", None]
    local = Catalog(catalog.table, tmp_path).moved_to(Path("gs://bucket"))
    assert local.table.column("path")[0].as_py() == (tmp_path / "jay/1.png").as_posix()


def test_members_of_archives() -> None:
    assert split_archive_path(Path("a/birds.zip!/jay/1.jpg")) == InArchive(Path("a/birds.zip"), "jay/1.jpg")
    assert split_archive_path(Path("s3://b/x.tar!/1.jpg")) == InArchive(Path("s3://b/x.tar"), "1.jpg")
    assert split_archive_path(Path("a/what!/1.jpg")) is None


@pytest.mark.parametrize("scheme", ["https", "hf"])
def test_what_is_for_reading_is_not_written(scheme: str) -> None:
    path = Path(f"{scheme}://datasets/owner/tasks.parquet")
    for write in (lambda: check_output(path), lambda: write_text(path, "text")):
        with pytest.raises(
            InputError,
            match=f"cannot write {scheme}://datasets/owner/tasks.parquet: .* expected a local path, s3:// or gs://",
        ):
            write()


def test_a_store_out_of_reach_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hidden@127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setattr("shotproof.core.storage.object_stores.ATTEMPTS", 1)
    with pytest.raises(InputError, match=r"catalog file s3://bucket/catalog.parquet cannot be read") as caught:
        Catalog.read("s3://bucket/catalog.parquet")
    with pytest.raises(WriteFailed, match=r"cannot write s3://bucket/tasks.txt") as failed:
        write_text(Path("s3://bucket/tasks.txt"), "text")
    for error in (caught, failed):
        assert "\n" not in str(error.value)
        assert "hidden" not in str(error.value)
