"""Files of object stores, and of servers by HTTPS: found, listed, opened, put. Credentials come from the environment.

Amazon S3 and what speaks like it (`AWS_ENDPOINT_URL`), and Google Cloud Storage, by Arrow; the Hugging Face hub by its
own library; `https` by range requests.
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
from shotproof.core.printable import told
from shotproof.core.storage.places import Found

SECONDS = 60  # that a store may take for an answer
ATTEMPTS = 3


def find(url: str) -> Found:
    """What is there; FileNotFoundError where there is nothing."""
    if url.startswith("https://"):
        from shotproof.core.storage.https_files import HttpsFile

        with HttpsFile(url) as file:
            return Found("file", file.size, None)
    from pyarrow.fs import FileType

    with _told():
        info = _system(url).get_file_info(_key(url))
    if info.type == FileType.NotFound:
        raise FileNotFoundError(errno.ENOENT, "does not exist")
    return _found(info)


def find_in(url: str) -> dict[str, Found]:
    """What lies in a folder itself, by name, from one listing; empty where there is no such folder."""
    from pyarrow.fs import FileSelector

    with _told():
        infos = _system(url).get_file_info(FileSelector(_key(url).rstrip("/"), allow_not_found=True))
    return {info.base_name: _found(info) for info in infos}


def open_file(url: str) -> IO[bytes]:
    """The file, to be read from any place."""
    if url.startswith("https://"):
        from shotproof.core.storage.https_files import HttpsFile

        return io.BufferedReader(HttpsFile(url), 2**20)
    with _told():
        file: IO[bytes] = _system(url).open_input_file(_key(url))
    return file


def names_below(url: str) -> Iterator[str]:
    """The files below a folder, as relative paths."""
    if url.startswith("https://"):
        raise InputError(f"{url}: files of a server cannot be listed: expected a table that names them")
    from pyarrow.fs import FileSelector, FileType

    key = _key(url).rstrip("/")
    with _told():
        found = _system(url).get_file_info(FileSelector(key, recursive=True))
    return (info.path.removeprefix(f"{key}/") for info in found if info.type == FileType.File)


def put(local: Path, url: str) -> None:
    """Put a whole file; the object appears when all of it is there."""
    with _told(), _system(url).open_output_stream(_key(url)) as target:
        if local.stat().st_size:
            target.write(pa.memory_map(str(local)).read_buffer())  # at once: what is cut off is never completed


def remove(url: str) -> None:
    """Remove a file."""
    with _told():
        _system(url).delete_file(_key(url))


def _found(info: Any) -> Found:
    return Found("file" if info.is_file else "folder", info.size or 0, info.mtime_ns)


def _key(url: str) -> str:
    return url.partition("://")[2]


def _system(url: str) -> Any:
    """The file system of a URL, made once for each process and environment."""
    scheme = url.partition(":")[0]
    return _made(scheme, os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"))


@lru_cache
def _made(scheme: str, endpoint: str | None) -> Any:
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
def _told() -> Iterator[None]:
    """What a store refuses, as an OSError of one line that repeats no credentials."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, "does not exist") from error
    except (OSError, pa.ArrowException, ValueError) as error:
        raise OSError(errno.EIO, told(first_line(error))) from error
