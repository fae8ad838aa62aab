"""Files in object stores and on HTTPS servers, read and written with credentials from the environment.

Amazon S3, compatible services (`AWS_ENDPOINT_URL`) and Google Cloud Storage are accessed with Arrow, the Hugging Face
Hub with its own library, and `https` by range requests.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from shotproof.core.errors import InputError, MissingExtra, first_line
from shotproof.core.printable import without_credentials
from shotproof.core.storage.places import FileInfo

SECONDS = 60  # timeout of a request
ATTEMPTS = 3


def find(url: str) -> FileInfo:
    """Look up a file or folder. Raise FileNotFoundError if it does not exist."""
    if url.startswith("https://"):
        from shotproof.core.storage.https_files import HttpsFile

        with HttpsFile(url) as file:
            return FileInfo("file", file.size, None)
    from pyarrow.fs import FileType

    with _plain_errors():
        info = _system(url).get_file_info(_key(url))
    if info.type == FileType.NotFound:
        raise FileNotFoundError(errno.ENOENT, "does not exist")
    return _to_file_info(info)


def find_in(url: str) -> dict[str, FileInfo]:
    """List the direct children of a folder, by name, with one request; empty if there is no such folder."""
    from pyarrow.fs import FileSelector

    with _plain_errors():
        infos = _system(url).get_file_info(FileSelector(_key(url).rstrip("/"), allow_not_found=True))
    return {info.base_name: _to_file_info(info) for info in infos}


def open_file(url: str) -> IO[bytes]:
    """Open a file for reading with random access."""
    if url.startswith("https://"):
        from shotproof.core.storage.https_files import HttpsFile

        return io.BufferedReader(HttpsFile(url), 2**20)
    with _plain_errors():
        file: IO[bytes] = _system(url).open_input_file(_key(url))
    return file


def names_below(url: str) -> Iterator[str]:
    """List the files below a folder, as relative paths."""
    if url.startswith("https://"):
        raise InputError(f"{url}: files on an HTTPS server cannot be listed; expected a table that names them")
    from pyarrow.fs import FileSelector, FileType

    key = _key(url).rstrip("/")
    with _plain_errors():
        infos = _system(url).get_file_info(FileSelector(key, recursive=True))
    return (info.path.removeprefix(f"{key}/") for info in infos if info.type == FileType.File)


def put(local: Path, url: str) -> None:
    """Upload a file; the object appears only once the upload is complete."""
    with _plain_errors(), _system(url).open_output_stream(_key(url)) as target:
        if local.stat().st_size:
            target.write(
                pa.memory_map(str(local)).read_buffer()
            )  # in one write, so an interrupted upload is never completed


def remove(url: str) -> None:
    """Remove a file."""
    with _plain_errors():
        _system(url).delete_file(_key(url))


def _to_file_info(info: Any) -> FileInfo:
    return FileInfo("file" if info.is_file else "folder", info.size or 0, info.mtime_ns)


def _key(url: str) -> str:
    return url.partition("://")[2]


def _system(url: str) -> Any:
    """Return the file system of a URL, created once per process and environment."""
    scheme = url.partition(":")[0]
    return _create_system(scheme, os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"))


@lru_cache
def _create_system(scheme: str, endpoint: str | None) -> Any:
    from pyarrow import fs

    if scheme == "s3":
        return fs.S3FileSystem(
            endpoint_override=endpoint,
            connect_timeout=SECONDS / 4,
            request_timeout=SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        )
    if scheme == "gs":
        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=SECONDS))
    try:
        from huggingface_hub import HfFileSystem
    except ImportError as error:
        raise MissingExtra("hf:// paths", "hub") from error
    return fs.PyFileSystem(fs.FSSpecHandler(HfFileSystem()))


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Translate errors of a store into an OSError whose message is one line without credentials."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, "does not exist") from error
    except (OSError, pa.ArrowException, ValueError) as error:
        raise OSError(errno.EIO, without_credentials(first_line(error))) from error
