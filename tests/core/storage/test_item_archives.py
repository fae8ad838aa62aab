"""Members of archives and rows of tables, read in place and with limits."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shotproof.core.storage import item_archives
from shotproof.core.storage.files import check_regular, find, is_folder, names_below, open_file, read_text

MEMBERS = {"jay/1.txt": b"one", "owl/deep/2.txt": b"two"}


def written(path: Path, members: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(path, "w") as tar:
            for name, data in members.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    return path.with_name(f"{path.name}!")


@pytest.mark.parametrize("end", ["zip", "tar"])
def test_members_are_files_and_folders(tmp_path: Path, end: str) -> None:
    root = written(tmp_path / f"birds.{end}", MEMBERS)
    assert sorted(names_below(root)) == sorted(MEMBERS)
    assert list(names_below(root / "owl")) == ["deep/2.txt"]
    assert read_text(root / "jay/1.txt", "member") == "one"
    assert is_folder(root)
    assert is_folder(root / "owl/deep")
    assert find(root / "jay/1.txt").size == 3
    with pytest.raises(FileNotFoundError):
        open_file(root / "jay/2.txt")


@pytest.mark.parametrize("end", ["zip", "tar"])
def test_an_archive_that_changed_is_read_anew(tmp_path: Path, end: str) -> None:
    root = written(tmp_path / f"birds.{end}", {"1.txt": b"one"})
    assert open_file(root / "1.txt").read() == b"one"
    written(tmp_path / f"birds.{end}", {"1.txt": b"another" * 2000})
    assert open_file(root / "1.txt").read() == b"another" * 2000


@pytest.mark.parametrize("end", ["zip", "tar"])
def test_names_that_lead_out_are_no_members(tmp_path: Path, end: str) -> None:
    (tmp_path / "secret.txt").write_text("mine")
    root = written(tmp_path / f"birds.{end}", {"../secret.txt": b"theirs", "/etc/passwd": b"theirs", "a/../b": b""})
    assert list(names_below(root)) == []
    with pytest.raises(FileNotFoundError):
        open_file(root / "../secret.txt")


def test_links_and_devices_of_a_tar_are_no_members(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "birds.tar", "w") as tar:
        for name, kind in (("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("device", tarfile.CHRTYPE)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)
    assert list(names_below(tmp_path / "birds.tar!")) == []


def test_a_bomb_is_refused_before_it_unpacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_archives, "SMALL", 1000)
    root = written(tmp_path / "birds.zip", {"1.txt": b"0" * 1_000_000})
    with pytest.raises(OSError, match="more than 200 times its"):
        open_file(root / "1.txt")
    with pytest.raises(OSError, match="expected at most 10 bytes, found 1,000,000"):
        check_regular(root / "1.txt", 10)


@pytest.mark.parametrize("end", ["zip", "tar", "parquet", "arrow"])
def test_what_is_no_archive_is_told(tmp_path: Path, end: str) -> None:
    (tmp_path / f"birds.{end}").write_bytes(b"\x01" * 2000)
    with pytest.raises(OSError, match=f"birds.{end} is not .*{end}"):
        open_file(tmp_path / f"birds.{end}!" / "a/1")


@pytest.mark.parametrize("end", ["parquet", "arrow"])
def test_rows_of_tables(tmp_path: Path, end: str) -> None:
    values = [{"bytes": b"%d" % row, "path": None} for row in range(30)]
    table = pa.table({"image": values, "plain": [one["bytes"] for one in values], "number": range(30)})
    file = tmp_path / f"birds.{end}"
    if end == "parquet":
        pq.write_table(table, file, row_group_size=7)
    else:
        with pa.ipc.new_stream(str(file), table.schema) as stream:
            stream.write_table(table, max_chunksize=7)
    for row in (0, 6, 7, 29, 3):
        for column in ("image", "plain"):
            assert open_file(tmp_path / f"birds.{end}!" / column / f"{row:06}.png").read() == b"%d" % row
    for lacking in ("image/30.png", "images/0.png", "image/x.png", "0.png"):
        with pytest.raises(FileNotFoundError):
            open_file(tmp_path / f"birds.{end}!" / lacking)
    with pytest.raises(OSError, match=r"column 'number'.*row 3"):
        open_file(tmp_path / f"birds.{end}!" / "number/3.png")
