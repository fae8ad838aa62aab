from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from shotproof.core.errors import InputError
from shotproof.core.storage.files import check_path, parse_toml, path_exists, read_json, require_file
from shotproof.core.storage.numpy_files import read_npy, read_npz


def test_only_regular_files_up_to_a_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"12345")
    for path, message in (
        (tmp_path / "pipe", "found a pipe"),
        (tmp_path, "found a folder"),
        (Path("/dev/zero"), "found a device"),
        (tmp_path / "a\0b", "NUL"),
        (tmp_path / ("x" * 300), "longer than 255 bytes"),
        (tmp_path / "fil", "does not exist: did you mean 'file'"),
        (tmp_path / "file" / "below", "does not exist"),
    ):
        with pytest.raises(InputError, match=message):
            require_file(path, "it")
    require_file(tmp_path / "file", "it", largest=5)
    with pytest.raises(InputError, match="at most 4 bytes, found 5"):
        require_file(tmp_path / "file", "it", largest=4)


def test_a_path_that_no_file_can_have_is_not_there(tmp_path: Path) -> None:
    assert path_exists(tmp_path)
    assert not path_exists(tmp_path / "none")
    for path in ("a\0b", "x" * 256, "y/" * 2_100, "\udcff", "\ud800"):
        assert not path_exists(path)
        with pytest.raises(OSError, match="its name"):
            check_path(path)


def test_text_that_nests_too_deep_is_refused(tmp_path: Path) -> None:
    for depth, fits in ((99, True), (150, False), (100_000, False)):
        (tmp_path / "x.json").write_text("[" * depth + "]" * depth)
        for read in (
            lambda: read_json(tmp_path / "x.json", "x"),
            lambda text=f"a = {'[' * (depth - 1)}{']' * (depth - 1)}": parse_toml(text, "x"),
        ):
            if fits:
                read()
                continue
            with pytest.raises(InputError, match="deeper than 100"):
                read()


def test_arrays_come_back_and_headers_that_claim_too_much_are_refused(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "x.npy", values)
    np.testing.assert_array_equal(read_npy(tmp_path / "x.npy", "x"), values)
    good = (tmp_path / "x.npy").read_bytes()
    for old, new, message in (
        (b"(2, 3)", b"(2**99)", "x is not .*readable"),
        (b"(2, 3), }   ", b"(999999, 9)}", "its header"),
        (b"'<f8'", b"'|O' ", "objects"),
        (b"'<f8'", b"'<f\xff'", "x is not .*readable"),
    ):
        (tmp_path / "x.npy").write_bytes(good.replace(old, new))
        with pytest.raises(InputError, match=message):
            read_npy(tmp_path / "x.npy", "x")


def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**24 + 2**12,)})
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a.npy", header.getvalue() + bytes(2**26 + 2**14))
    with pytest.raises(InputError, match="at most 200 times its"):
        read_npz(tmp_path / "x.npz", "x", ["a"])
    with pytest.raises(InputError, match="has no array 'b'"):
        read_npz(tmp_path / "x.npz", "x", ["b"])
    np.savez(tmp_path / "y.npz", a=np.ones(3), b=np.zeros(2))
    assert list(read_npz(tmp_path / "y.npz", "y", ["a"])) == ["a"]
