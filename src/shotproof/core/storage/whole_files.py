"""Files and folders that appear whole or not at all, also where a process is killed while it writes.

A file is written in a temporary folder beside it, which has a lock as long as it is written; not on the file itself, in
whose place some writers put another one. A process that is killed leaves the folder there, without the lock: whoever
writes beside it next removes it. Locks are those of the system, which lets them go when their process ends.
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
LOCK = "lock"  # the file of a temporary folder that is locked as long as anything in it is written
MADE = "made"  # what is written there

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
        with _temporary_folder(path.parent) as folder:
            temporary = folder / MADE  # no name that whoever looks for files of a kind would take for one
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            # Some writers make private files; an output gets the permissions that any new file would have.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(path)
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def _put(url: str) -> Iterator[Path]:
    """The same for an object of a store, which takes whole objects: written here, and put there at the end."""
    from shotproof.core.storage import object_stores  # which needs Arrow

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
        with _temporary_folder(path.parent) as folder:
            made, before = folder / MADE, folder / "before"
            made.mkdir()
            try:
                yield made
                if path.exists():
                    path.replace(before)
                made.replace(path)
            except OSError:
                if before.exists() and not path.exists():
                    before.replace(path)
                raise
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Make a folder, and those that it lies in, unless they are there; remove it if the block fails and it is empty.

    Raises:
        WriteFailed: the system does not let it be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error
    try:
        yield
    except Exception:
        with contextlib.suppress(OSError):  # it has files in it
            path.rmdir()
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    content = encoded(text, path)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """A new folder in another one, which is made where it is not there; locked, and removed when the block ends."""
    parent.mkdir(parents=True, exist_ok=True)
    _sweep(parent)
    handle, folder = _locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _locked_folder(parent: Path) -> tuple[int, Path]:
    """A new folder with a locked file, and the file's handle."""
    while True:
        folder = Path(tempfile.mkdtemp(SUFFIX, PREFIX, parent))
        # Before it is locked, somebody who sweeps may take the folder for abandoned.
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR)
            if try_lock(handle) and (folder / LOCK).exists():
                return handle, folder
            os.close(handle)


def _sweep(parent: Path) -> None:
    """Remove what killed processes have left in a folder, once per process."""
    if parent.absolute() in _swept:
        return
    _swept.add(parent.absolute())
    for left in parent.glob(f"{PREFIX}*{SUFFIX}"):
        with contextlib.suppress(OSError):  # gone already, or not ours
            try:
                handle = os.open(left / LOCK, os.O_RDWR)
            except FileNotFoundError:
                left.rmdir()  # its process was killed before it had a lock
                continue
            try:
                if try_lock(handle):
                    shutil.rmtree(left)
            finally:
                os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file or folder; False where another process, or another handle of this one, holds it.

    Where a file system knows no locks, everybody gets them.
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
def sole_use(folder: Path) -> Iterator[None]:
    """Have a folder, made where it is not there, to oneself; the lock is on the folder itself, and no file of it.

    Raises:
        InputError: another process has it.
        WriteFailed: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY) if sys.platform != "win32" else None
    except OSError as error:
        raise WriteFailed(f"cannot write {folder}: {error.strerror or error}") from error
    try:
        if handle is not None and not try_lock(handle):
            raise InputError(f"{folder}: another run is at work in this folder: wait for it, or choose another folder")
        yield
    finally:
        if handle is not None:
            os.close(handle)
