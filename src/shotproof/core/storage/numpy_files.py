"""NumPy files from untrusted sources: the sizes in their headers are checked before anything is allocated."""

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

MOST_UNPACKED = 200  # times its compressed size: the largest that an array of more than SMALL bytes may unpack to
SMALL = 2**26

# Errors that NumPy raises on damaged headers and archives, documented or not.
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


def read_npy(path: Path, subject: str) -> npt.NDArray[Any]:
    """Read the array of a .npy file. Python objects are rejected.

    Args:
        path: the file
        subject: the kind of file and its path, for messages

    Raises:
        InputError: it is not a .npy file, or is truncated.
    """
    require_file(path, subject)
    try:
        with open_file(path) as file:
            return _read_array(file, find(path).size)
    except BROKEN as error:
        raise InputError(f"{subject} is not a readable .npy file: {first_line(error)}") from error


def read_npz(path: Path, subject: str, names: Sequence[str]) -> Mapping[str, npt.NDArray[Any]]:
    """Read some arrays of a .npz file, by name.

    Args:
        path: the file
        subject: the kind of file and its path, for messages
        names: the arrays to read

    Raises:
        InputError: it is not a .npz file, lacks an array, or unpacks to far more than its compressed size.
    """
    require_file(path, subject)
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            missing = next((name for name in names if name not in members), None)
            if missing is not None:
                raise InputError(f"{subject} has no array '{missing}'{did_you_mean(missing, members)}")
            return {name: _unpack(archive, members[name], subject) for name in names}
    except InputError:
        raise
    except BROKEN as error:
        raise InputError(f"{subject} is not a readable .npz file: {first_line(error)}") from error


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, subject: str) -> npt.NDArray[Any]:
    size = member.file_size  # the most that is ever unpacked
    if size > max(SMALL, MOST_UNPACKED * member.compress_size):
        raise InputError(
            f"{subject}, array '{member.filename}': unpacks to {size:,} bytes; expected at most {MOST_UNPACKED} times "
            f"its {member.compress_size:,} bytes in the archive"
        )
    with archive.open(member) as file:
        head = io.BytesIO(file.read(2**16))
        _check_header(head, size)
    with archive.open(member) as file:
        values: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return values


def _read_array(file: IO[bytes], size: int) -> npt.NDArray[Any]:
    _check_header(file, size)
    file.seek(0)
    values: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return values


def _check_header(file: IO[bytes], size: int) -> None:
    """Reject a header that declares more values than the file has bytes for."""
    version = np.lib.format.read_magic(file)
    readers = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    if version[0] not in readers:
        raise ValueError(f"expected format version 1 or 2, found {version[0]}")
    shape, _, kind = readers[version[0]](file)
    if kind.hasobject:
        raise ValueError("contains Python objects")
    declared_size = math.prod(shape) * kind.itemsize
    if any(length < 0 for length in shape) or declared_size > size - file.tell():
        raise ValueError(
            f"its header declares shape {list(shape)} of {kind}, {declared_size:,} bytes; the file has {size:,}"
        )
