"""NumPy's files of arrays, which may be anything: what their headers claim is checked before it is allocated."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from shotproof.core.errors import InputError, did_you_mean, first_line
from shotproof.core.storage.files import find, open_file, require_file

MOST_UNPACKED = 200  # times its size in the archive that an array may have, beyond SMALL bytes
SMALL = 2**26

# What NumPy raises on damaged headers and archives; the documented ones and those that slip through.
BROKEN = (
    ValueError,
    OSError,
    EOFError,
    SyntaxError,
    TypeError,
    KeyError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npy(path: Path, what: str) -> npt.NDArray[Any]:
    """The array of a .npy file; of plain values, and no larger than the file.

    Args:
        path: of the file
        what: the kind of file and its path, for messages

    Raises:
        InputError: it is no such file, or cut off.
    """
    require_file(path, what)
    try:
        with open_file(path) as file:
            return _array(file, find(path).size)
    except BROKEN as error:
        raise InputError(f"{what} is not readable as npy of plain arrays: {first_line(error)}") from error


def read_npz(path: Path, what: str, names: Sequence[str]) -> Mapping[str, npt.NDArray[Any]]:
    """Arrays of a .npz file, by name; others in it are not read.

    Args:
        path: of the file
        what: the kind of file and its path, for messages
        names: of the arrays

    Raises:
        InputError: it is no such file, lacks an array, or unpacks to far more than its own size.
    """
    require_file(path, what)
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            found = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
            missing = next((name for name in names if name not in found), None)
            if missing is not None:
                raise InputError(f"{what} has no array '{missing}'{did_you_mean(missing, found)}")
            return {name: _unpacked(archive, found[name], what) for name in names}
    except InputError:
        raise
    except BROKEN as error:
        raise InputError(f"{what} is not readable as npz of plain arrays: {first_line(error)}") from error


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, what: str) -> npt.NDArray[Any]:
    size = member.file_size  # no more than this is ever unpacked
    if size > max(SMALL, MOST_UNPACKED * member.compress_size):
        raise InputError(
            f"{what}, array '{member.filename}': expected at most {MOST_UNPACKED} times its {member.compress_size:,} "
            f"bytes in the archive, it unpacks to {size:,}"
        )
    with archive.open(member) as file:
        head = io.BytesIO(file.read(2**16))
        _check_header(head, size)
    with archive.open(member) as file:
        values: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return values


def _array(file: IO[bytes], size: int) -> npt.NDArray[Any]:
    _check_header(file, size)
    file.seek(0)
    values: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return values


def _check_header(file: IO[bytes], size: int) -> None:
    """Refuse a header that claims more values than there are bytes for."""
    version = np.lib.format.read_magic(file)
    reads = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    if version[0] not in reads:
        raise ValueError(f"expected version 1 or 2, found {version[0]}")
    shape, _, kind = reads[version[0]](file)
    if kind.hasobject:
        raise ValueError("it holds objects of Python")
    claimed = math.prod(shape) * kind.itemsize
    if any(length < 0 for length in shape) or claimed > size - file.tell():
        raise ValueError(f"its header claims {list(shape)} values of {kind}, {claimed:,} bytes, of a file of {size:,}")
