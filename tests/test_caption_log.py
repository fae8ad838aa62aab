"""Captions kept as they come."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.attributes.caption_log import Captioned, CaptionLog, file_digest
from shotproof.errors import InputError, Mismatch, WriteFailed

MADE_BY = {"model": "tiny", "num_beams": 4}
ROWS = [Captioned("a", "1", "a dog"), Captioned("b", "2", "zwei Vögel\n"), Captioned("c", "3", error="broken")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "captions.jsonl"


def write(path: Path | None, rows: list[Captioned], made_by: dict[str, Any] = MADE_BY) -> None:
    with CaptionLog(path, made_by) as log:
        log.append(rows)


def captions(path: Path, made_by: dict[str, Any] = MADE_BY) -> dict[str, str | None]:
    with CaptionLog(path, made_by) as log:
        return {row.item: log.caption(row.item, row.digest) for row in ROWS}


def test_captions_are_there_again_and_errors_are_tried_again(path: Path) -> None:
    write(path, ROWS)
    assert captions(path) == {"a": "a dog", "b": "zwei Vögel\n", "c": None}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == {"shotproof captions": MADE_BY}
    assert lines[3] == {"item": "c", "digest": "3", "error": "broken"}


def test_a_changed_file_needs_a_new_caption_and_the_last_one_counts(path: Path) -> None:
    write(path, ROWS)
    write(path, [Captioned("a", "1b", "a cat")])
    with CaptionLog(path, MADE_BY) as log:
        assert log.caption("a", "1") is None
        assert log.caption("a", "1b") == "a cat"
        assert log.caption("a", None) is None
        assert log.caption("unheard of", "1") is None


def test_a_caption_is_on_disk_before_the_run_ends(path: Path) -> None:
    with CaptionLog(path, MADE_BY) as log:
        log.append(ROWS[:1])
        assert json.loads(path.read_text().splitlines()[-1])["caption"] == "a dog"


@given(cut=st.integers(0, 400))
@settings(deadline=None)
def test_a_run_killed_at_any_byte_keeps_its_whole_lines(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("log") / "captions.jsonl"
    write(path, ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    survivors = max(whole[:cut].count(b"\n") - 1, 0)
    found = captions(path)
    assert [item for item, caption in found.items() if caption is not None] == ["a", "b"][:survivors]
    write(path, ROWS[survivors:])
    assert path.read_bytes() == whole


def test_without_a_path_captions_are_known_for_the_run_alone(tmp_path: Path) -> None:
    with CaptionLog(None, MADE_BY) as log:
        log.append(ROWS)
        assert log.caption("a", "1") == "a dog"
    assert list(tmp_path.iterdir()) == []


def test_captions_of_another_model_are_refused_and_kept(path: Path) -> None:
    write(path, ROWS)
    before = path.read_bytes()
    with pytest.raises(Mismatch, match="were made with model 'tiny' and not 'large', num_beams 4 and not None"):
        captions(path, {"model": "large"})
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"PAR1\x00", b"no newline", b'{"item": "a"}\n', b"\n", b"[" * 100_000 + b"\n"])
def test_a_file_that_is_no_log_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "catalog.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is no caption log"):
        captions(path)
    assert path.read_bytes() == content


def test_a_damaged_line_in_the_middle_is_named(path: Path) -> None:
    write(path, ROWS)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], "}\n", *lines[2:]]))
    with pytest.raises(InputError, match="line 3: expected an object with an item"):
        captions(path)


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        captions(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises((InputError, WriteFailed), match="caption log"):
        captions(tmp_path / "file" / "captions.jsonl")


def test_a_full_disk_is_one_error_and_the_lines_before_it_remain(path: Path) -> None:
    write(path, ROWS[:1])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, hard))
    try:
        with pytest.raises(WriteFailed, match="cannot write caption log"):
            write(path, ROWS[1:])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert captions(path) == {"a": "a dog", "b": None, "c": None}


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"same")
    two.write_bytes(b"same")
    assert file_digest(one) == file_digest(two)
    two.write_bytes(b"other")
    assert file_digest(one) != file_digest(two)
    assert file_digest(tmp_path / "none") is None
