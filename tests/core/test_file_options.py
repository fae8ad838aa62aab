"""Options that are files or objects, spelled with digests."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.core.errors import Mismatch
from shotproof.core.file_options import FileOptions
from shotproof.core.options import option

WORDS = Attributes.from_words({"a": ["red"], "b": []})


@dataclass(frozen=True)
class Worded(FileOptions):
    words: Path | Attributes | None = option(None, "words", path=True)
    plain: Path = option(Path("plain.txt"), "a path that is not read", path=True)
    size: int = option(1, "size")


def test_an_object_is_spelled_like_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    WORDS.write("words.parquet")
    digest = WORDS.digest[:8]
    assert Worded(words=Path("words.parquet"), size=2).spelling == f"Worded(words='words.parquet@{digest}', size=2)"
    assert Worded(words=WORDS).spelling == f"Worded(words='attributes@{digest}')"
    assert Worded().spelling == "Worded"
    assert Worded().content("words") is None
    parameters = Worded(words=tmp_path / "words.parquet").parameters()
    assert parameters == {"words": f"words.parquet@{digest}", "plain": Path("plain.txt"), "size": 1}


def test_a_digest_is_checked_when_the_file_is_read(tmp_path: Path) -> None:
    WORDS.write(tmp_path / "my@words.parquet")
    for name in ("my@words.parquet", f"my@words.parquet@{WORDS.digest[:8]}", f"my@words.parquet@{WORDS.digest}"):
        assert Worded(words=tmp_path / name).content("words").digest == WORDS.digest
    with pytest.raises(Mismatch, match=rf"words\.parquet has the digest {WORDS.digest}, not 0bad\.\.\."):
        Worded(words=tmp_path / "my@words.parquet@0bad").content("words")


def test_a_file_is_read_once_and_not_pickled(tmp_path: Path) -> None:
    file = tmp_path / "words.parquet"
    WORDS.write(file)
    component = Worded(words=file)
    assert component.content("words") is component.content("words")
    assert vars(pickle.loads(pickle.dumps(component))).keys() == {"words", "plain", "size"}


def test_a_file_that_a_record_names_is_found_below_folders_by_its_digest(tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "maps", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir(parents=True)
    Attributes.from_words({"a": ["blue"]}).write(first / "words.parquet")  # the same name, other content
    WORDS.write(second / "words.parquet")
    recorded = Worded(words=Path(f"words.parquet@{WORDS.digest[:8]}"), size=2)
    folders = [tmp_path / "first", tmp_path / "missing", second]
    assert recorded.located(folders).content("words").digest == WORDS.digest
    assert recorded.located(folders).spelling == f"Worded(words='words.parquet@{WORDS.digest[:8]}', size=2)"
    assert recorded.located(folders[:2]) == recorded
    here = Worded(words=second / "words.parquet")
    assert here.located(folders) == here
