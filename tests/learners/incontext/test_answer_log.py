from __future__ import annotations

from pathlib import Path

import pytest

from shotproof.core.errors import InputError, WriteFailed
from shotproof.learners.incontext.answer_log import AnswerLog


def test_answers_are_on_disk_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "log.jsonl"
    with AnswerLog(path) as log:
        log.add("a", "a wren\nö")
        assert AnswerLog(path).answers == {"a": "a wren\nö"}
        log.add("b", "")
    assert AnswerLog(path).answers == {"a": "a wren\nö", "b": ""}
    assert len(path.read_text().splitlines()) == 2


def test_a_line_that_was_cut_off_is_passed_over_and_the_next_one_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"request": "a", "answer": "one"}\nnull\n{"request": 3}\n' + '{"request": "b", "ä'.encode()[:-1])
    with AnswerLog(path) as log:
        assert log.answers == {"a": "one"}
        log.add("c", "three")
    assert AnswerLog(path).answers == {"a": "one", "c": "three"}


def test_without_a_path_nothing_is_written() -> None:
    with AnswerLog(None) as log:
        log.add("a", "one")
    assert log.answers == {"a": "one"}


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        AnswerLog(tmp_path / "file" / "log.jsonl") as log,
        pytest.raises(WriteFailed, match=r"cannot write .*log.jsonl"),
    ):
        log.add("a", "one")


def test_a_file_that_is_no_log_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "thesis.tex"
    path.write_text("years of work\n")
    with pytest.raises(InputError, match=r"thesis.tex is not a log .*: name another file"):
        AnswerLog(path)
    assert path.read_text() == "years of work\n"
