"""Atomic writing of files and folders: they appear complete or not at all, even if the process is killed.

A file is written in a temporary folder next to it. The folder is locked while it is in use, rather than the file, which
some writers replace. A killed process leaves its folder behind, unlocked; the next writer in the same place removes it.
Locks are file locks of the system, which releases them when the process ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from shotproof.core.errors import InputError, WriteFailed
from shotproof.core.storage.files import require_headroom
from shotproof.core.storage.places import require_writable, url_of
from shotproof.core.text import encoded

if sys.platform != "win32":
    import fcntl

PREFIX, SUFFIX = ".shotproof-", ".partial"
LOCK = "lock"  # lock file of a temporary folder
CONTENT = "made"  # file or folder that is being written

_cleaned: set[Path] = set()  # folders that this process has already cleaned up


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which is moved to `path` if the block succeeds and removed if it fails.

    Raises:
        WriteFailed: the file cannot be written.
        MemoryError: there is too little memory to write anything.
    """
    require_headroom()
    url = url_of(path)
    if url is not None:
        with _upload(url) as temporary:
            yield temporary
        return
    try:
        with _temporary_folder(path.parent) as folder:
            temporary = folder / CONTENT  # without an extension, so that no search for files of a kind finds it
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            # Some writers create private files; outputs get the usual permissions of a new file.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(path)
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def _upload(url: str) -> Iterator[Path]:
    """Yield a temporary local path, which is uploaded to an object store if the block succeeds."""
    from shotproof.core.storage import object_stores  # imports Arrow

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
    """Yield an empty folder, which replaces the one at `path` if the block succeeds.

    If the block fails, the folder at `path` stays as it was.

    Raises:
        WriteFailed: the folder cannot be written.
    """
    try:
        with _temporary_folder(path.parent) as folder:
            content, previous = folder / CONTENT, folder / "before"
            content.mkdir()
            try:
                yield content
                if path.exists():
                    path.replace(previous)
                content.replace(path)
            except OSError:
                if previous.exists() and not path.exists():
                    previous.replace(path)
                raise
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Create a folder and its parents if they are missing; remove it if the block fails and it is empty.

    Raises:
        WriteFailed: the folder cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error
    try:
        yield
    except Exception:
        with contextlib.suppress(OSError):  # the folder is not empty
            path.rmdir()
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    content = encoded(text, path)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """Create a locked temporary folder in a folder, which is created if missing; remove it when the block ends."""
    parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(parent)
    handle, folder = _locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _locked_folder(parent: Path) -> tuple[int, Path]:
    """Create a folder with a locked file, and return the file's handle and the folder."""
    while True:
        folder = Path(tempfile.mkdtemp(SUFFIX, PREFIX, parent))
        # Before it is locked, another process may take the folder for abandoned and remove it.
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR)
            if try_lock(handle) and (folder / LOCK).exists():
                return handle, folder
            os.close(handle)


def _remove_abandoned(parent: Path) -> None:
    """Remove temporary folders that killed processes have left in a folder, once per process."""
    if parent.absolute() in _cleaned:
        return
    _cleaned.add(parent.absolute())
    for leftover in parent.glob(f"{PREFIX}*{SUFFIX}"):
        with contextlib.suppress(OSError):  # already removed, or owned by another user
            try:
                handle = os.open(leftover / LOCK, os.O_RDWR)
            except FileNotFoundError:
                leftover.rmdir()  # its process was killed before it created the lock
                continue
            try:
                if try_lock(handle):
                    shutil.rmtree(leftover)
            finally:
                os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file or folder. Return False if another process, or another handle of this one, holds the lock.

    On a file system without locks, the lock is always granted.
    """
    if sys.platform != "win32":
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True


@contextlib.contextmanager
def exclusive_use(folder: Path) -> Iterator[None]:
    """Lock a folder for this process, creating it if it is missing; the folder itself is locked, no file is added.

    Raises:
        InputError: another process has locked it.
        WriteFailed: it cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY) if sys.platform != "win32" else None
    except OSError as error:
        raise WriteFailed(f"cannot write {folder}: {error.strerror or error}") from error
    try:
        if handle is not None and not try_lock(handle):
            raise InputError(
                f"{folder}: another run is using this folder: wait for it to finish, or choose another folder"
            )
        yield
    finally:
        if handle is not None:
            os.close(handle)
