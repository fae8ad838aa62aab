"""Files and folders that appear whole or not at all, also where a process is killed while it writes.

A file is written under a temporary name beside its own, and locked as long as it is written. A process that is killed
leaves it there, without the lock: whoever writes into the folder next removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from shotproof.core.errors import WriteFailed
from shotproof.core.headroom import require_headroom
from shotproof.core.locks import try_lock
from shotproof.core.places import require_writable, url_of

PREFIX, SUFFIX = ".shotproof-", ".partial"
LOCK = "lock"  # the file of a temporary folder that is locked as long as the folder is written

_swept: set[Path] = set()  # the folders that this process has looked through


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; move it there when the block ends well, remove it when it does not.

    Raises:
        WriteFailed: the system does not let it be written.
        MemoryError: there is too little memory to write anything.
    """
    require_headroom()
    url = url_of(path)
    if url is not None:
        with _put(url) as temporary:
            yield temporary
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        handle, temporary = _locked_file(path.parent)
        try:
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            # mkstemp makes private files; an output gets the permissions that any new file would have.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
            os.close(handle)
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def _put(url: str) -> Iterator[Path]:
    """The same for an object of a store, which takes whole objects: written here, and put there at the end."""
    from shotproof.core import object_stores  # which needs Arrow

    require_writable(url)
    try:
        with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
            temporary = Path(folder) / "object"
            yield temporary
            object_stores.put(temporary, url)
    except OSError as error:
        raise WriteFailed(f"cannot write {url}: {error.strerror or error}") from error


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder; when the block ends well it takes the place of the one at `path`, as a whole.

    When the block does not end well, all stays as it was.

    Raises:
        WriteFailed: the system does not let it be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        with tempfile.TemporaryDirectory(SUFFIX, PREFIX, path.parent, ignore_cleanup_errors=True) as name:
            made, before = Path(name) / "made", Path(name) / "before"
            handle = os.open(Path(name) / LOCK, os.O_CREAT | os.O_RDWR)
            try:
                try_lock(handle)
                made.mkdir()
                yield made
                if path.exists():
                    path.replace(before)
                made.replace(path)
            except OSError:
                if before.exists() and not path.exists():
                    before.replace(path)
                raise
            finally:
                os.close(handle)
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _locked_file(folder: Path) -> tuple[int, Path]:
    """A new file in a folder, locked."""
    while True:
        handle, name = tempfile.mkstemp(SUFFIX, PREFIX, folder)
        # Before it was locked, somebody who swept the folder may have taken it for abandoned.
        if try_lock(handle) and Path(name).exists():
            return handle, Path(name)
        os.close(handle)


def _sweep(folder: Path) -> None:
    """Remove what killed processes have left in a folder, once per process."""
    if folder.absolute() in _swept:
        return
    _swept.add(folder.absolute())
    for left in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with contextlib.suppress(OSError):  # gone already, or not ours
            handle = os.open(left / LOCK if left.is_dir() else left, os.O_RDONLY)
            try:
                if try_lock(handle):
                    _remove(left)
            finally:
                os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
