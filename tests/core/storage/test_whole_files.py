from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shotproof.core.errors import InputError, WriteFailed
from shotproof.core.storage.whole_files import exclusive_use, new_folder, whole_file, whole_folder, write_text

# Is killed while it writes one file of a folder; then another process writes another one.
KILLED = """
import os, pathlib, signal
from shotproof.core.storage.whole_files import whole_file
with whole_file(pathlib.Path("killed.txt")) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
NEXT = """
import pathlib
from shotproof.core.storage.whole_files import write_text
write_text(pathlib.Path('next.txt'), 'whole')
"""


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def python(script: str, folder: Path) -> int:
    return subprocess.run([sys.executable, "-c", script], cwd=folder, check=False).returncode


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    write_text(path, "old")

    def write_half() -> None:
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["out.txt"]


def test_an_output_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_text(tmp_path / "ours", "text")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("name", ["file/out.txt", "folder"])
def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteFailed, match=name):
        write_text(tmp_path / name, "text")
    assert names_in(tmp_path) == ["file", "folder"]


def test_a_new_folder_that_cannot_be_made_is_one_clear_error_and_one_that_fails_is_removed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteFailed, match=r"cannot write .*file/new"), new_folder(tmp_path / "file" / "new"):
        pass
    with pytest.raises(InputError), new_folder(tmp_path / "new"):
        raise InputError("the data cannot be read")
    with new_folder(tmp_path / "used"):
        (tmp_path / "used" / "kept").touch()
    with pytest.raises(InputError), new_folder(tmp_path / "used"):
        raise InputError("it failed later")
    assert names_in(tmp_path) == ["file", "used"]


def test_what_a_killed_process_leaves_is_removed_by_the_next_but_not_what_is_being_written(tmp_path: Path) -> None:
    assert python(KILLED, tmp_path) < 0
    assert len(names_in(tmp_path)) == 1
    with whole_file(tmp_path / "mine.txt") as temporary:
        temporary.write_text("mine")
        beside = temporary.parent.name
        assert names_in(tmp_path) == [beside]
        assert not [*tmp_path.rglob("*.txt")]
        assert python(NEXT, tmp_path) == 0
        assert names_in(tmp_path) == sorted([beside, "next.txt"])
    assert names_in(tmp_path) == ["mine.txt", "next.txt"]


def test_a_writer_may_put_another_file_in_place_of_its_own(tmp_path: Path) -> None:
    # As safetensors does: a lock on the first file would be gone with it.
    with whole_file(tmp_path / "mine.txt") as temporary:
        temporary.write_text("first")
        temporary.with_name("second").write_text("second")
        temporary.with_name("second").replace(temporary)
        assert python(NEXT, tmp_path) == 0
    assert (tmp_path / "mine.txt").read_text() == "second"
    assert names_in(tmp_path) == ["mine.txt", "next.txt"]


def test_a_folder_whose_process_was_killed_before_it_had_a_lock_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".shotproof-early.partial").mkdir()
    assert python(NEXT, tmp_path) == 0
    assert names_in(tmp_path) == ["next.txt"]


def test_a_folder_is_used_by_one_at_a_time_and_no_trace_of_it_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with exclusive_use(folder):
        assert names_in(folder) == []
        with pytest.raises(InputError, match=r"another run .* this folder"), exclusive_use(folder):
            pass
    with exclusive_use(folder):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(WriteFailed, match="file"), exclusive_use(tmp_path / "file"):
        pass


def test_a_folder_takes_the_place_of_the_old_one_as_a_whole(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with whole_folder(tmp_path / "out") as made:
            write_text(made / name, name)
        assert names_in(tmp_path / "out") == [name]
    assert names_in(tmp_path) == ["out"]


def test_a_folder_that_fails_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_text(tmp_path / "out" / "old", "old")

    def write_half() -> None:
        with whole_folder(tmp_path / "out") as made:
            write_text(made / "half", "half")
            raise InputError("no more")

    with pytest.raises(InputError, match="no more"):
        write_half()
    assert (names_in(tmp_path), names_in(tmp_path / "out")) == (["out"], ["old"])


def test_what_a_killed_process_left_of_a_folder_is_removed_by_the_next(tmp_path: Path) -> None:
    killed = (
        KILLED.replace("whole_file\n", "whole_folder\n")
        .replace("whole_file(", "whole_folder(")
        .replace("temporary.write_text", "(temporary / 'a').write_text")
    )
    assert python(killed, tmp_path) != 0
    assert len(names_in(tmp_path)) == 1
    assert python(NEXT, tmp_path) == 0
    assert names_in(tmp_path) == ["next.txt"]
