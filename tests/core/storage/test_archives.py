"""Archives that would write outside their folder or fill the disk are rejected before anything is unpacked."""

from __future__ import annotations

import stat
import struct
import warnings
import zipfile
from pathlib import Path

import pytest

from shotproof.core.errors import InputError
from shotproof.core.storage.archives import open_archive, write_archive


def written(path: Path, *names: str, mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names that are there twice
        for name in names:
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            archive.writestr(member, b"content")
    return path


def test_the_same_files_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.zip", {"b": b"2", "a/c": b"1"})
    write_archive(tmp_path / "b.zip", {"a/c": b"1", "b": b"2"})
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with open_archive(tmp_path / "a.zip", "it") as archive:
        assert list(archive.members) == ["a/c", "b"]
        archive.unpack(tmp_path / "out")
    assert (tmp_path / "out" / "a" / "c").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["../evil"], r"'\.\./evil': expected a path"),
        (["a/../../evil"], "expected a path"),
        (["/etc/evil"], "'/etc/evil': expected a path"),
        (["C:/evil"], "expected .*plain characters"),
        (["..\\evil"], "expected .*plain characters"),
        (["a//b"], "expected a path"),
        (["folder/"], "expected a path"),
        (["./a"], "expected a path"),
        (["x" * 300], "longer than 255 bytes"),
        (["a", "a"], "'a': .*twice"),
        (["a", "A"], "'A': .*twice"),
        (["é", "é"], "twice"),
        (["a", "a/b"], "'a/b': .*folder .*a file"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message), open_archive(written(tmp_path / "x.zip", *names), "archive x.zip"):
        pass


@pytest.mark.parametrize(("kind", "message"), [(stat.S_IFLNK, "a symbolic link"), (stat.S_IFIFO, "special file")])
def test_links_and_pipes_are_refused(tmp_path: Path, kind: int, message: str) -> None:
    file = written(tmp_path / "x.zip", "link", mode=kind | 0o777)
    with (
        pytest.raises(InputError, match=f"'link': expected a regular file, found .*{message}"),
        open_archive(file, "it"),
    ):
        pass


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros", "w") as file:
        for _ in range(80):
            file.write(bytes(2**20))
    message = r"'zeros': .*83,886,080 .*200 times its"
    with pytest.raises(InputError, match=message), open_archive(tmp_path / "x.zip", "it"):
        pass


def test_sizes_that_lie_are_found_when_it_is_read(tmp_path: Path) -> None:
    file = written(tmp_path / "x.zip", "a")
    content = bytearray(file.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = struct.pack("<I", 5)  # the size that the directory claims
    file.write_bytes(content)
    with open_archive(file, "it") as archive, pytest.raises(InputError, match="'a' is damaged"):
        archive.sha256("a")


def test_files_that_overlap_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "x.zip", "a", "b")
    content = bytearray(file.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 20 : entry + 28] = struct.pack("<II", 4000, 4000)
    file.write_bytes(content)
    with pytest.raises(InputError, match="overlap"), open_archive(file, "it"):
        pass


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(InputError, match=r"it is not .* zip"), open_archive(tmp_path / "x.zip", "it"):
        pass
