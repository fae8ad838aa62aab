from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from shotproof.core.errors import InputError
from shotproof.sounds.mapping import PairMapping, read_mapping, shipped_mappings


def read(folder: Path, text: str) -> PairMapping:
    (folder / "mapping.toml").write_text(text)
    return read_mapping(folder / "mapping.toml")


def test_pairs_hard_and_splits_are_read(tmp_path: Path) -> None:
    mapping = read(
        tmp_path,
        """
        [pairs]
        dog = ["rain", "wind"]
        cat = "rain"
        [hard]
        cat = ["siren"]
        [splits]
        train = ["dog"]
        test = "cat"
        """,
    )
    assert mapping.foregrounds == ["cat", "dog"]
    assert mapping.backgrounds == ["rain", "siren", "wind"]
    assert mapping.backgrounds_of("cat") == ["rain", "siren"]
    assert mapping.split_by_label(seed=3) == {"dog": "train", "cat": "test"}


def test_a_csv_says_what_toml_says(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(
        "background,foreground,split,pairing\nrain,dog,train,pair\nwind,dog,,\nrain,cat,test,\nsiren,cat,test,hard\n"
    )
    text = "[pairs]\ndog = ['rain', 'wind']\ncat = 'rain'\n[hard]\ncat = 'siren'\n[splits]\ntrain = 'dog'\ntest = 'cat'"
    assert read_mapping(tmp_path / "m.csv") == read(tmp_path, text)
    (tmp_path / "m.csv").write_text("foreground,background\ndog,rain\ncat,wind\n")
    assert read_mapping(tmp_path / "m.csv") == PairMapping({"dog": ("rain",), "cat": ("wind",)}, {}, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foregrund,background\ndog,rain\n", "has no column 'foreground': did you mean 'foregrund'"),
        ("foreground,background,paring\ndog,rain,pair\n", "unknown column 'paring': did you mean 'pairing'"),
        ("foreground,background\ndog,\n", "line 2: expected a foreground .*found 'dog,'"),
        ("foreground,background,pairing\ndog,rain,easy\n", "line 2: expected pair or hard .*found 'easy'"),
        ("foreground,background,split\ndog,rain,test\ndog,wind,val\n", "line 3: 'dog' is in test and in val"),
        ("foreground,background,split\ndog,rain,tset\n", "unknown split 'tset': did you mean 'test'"),
        ("foreground,background\ndog,rain\ndog,rain\n", "'dog': 'rain' occurs twice"),
        ("foreground,background\ndog,cat\ncat,rain\n", "'cat' is a background of 'dog', and also a foreground"),
        ("foreground,background\n", r"has no \[pairs\]"),
    ],
)
def test_a_wrong_csv_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_mapping(tmp_path / "m.csv")


def test_others_are_the_backgrounds_of_the_other_foregrounds(tmp_path: Path) -> None:
    mapping = read(tmp_path, 'hard = "others"\n[pairs]\ndog = ["rain", "wind"]\ncat = ["siren"]\n')
    assert mapping.hard == {"dog": ("siren",), "cat": ("rain", "wind")}


def test_without_splits_the_classes_are_divided_70_10_20_by_the_seed(tmp_path: Path) -> None:
    mapping = read(tmp_path, "[pairs]\n" + "".join(f'c{number} = "rain"\n' for number in range(40)))
    assert Counter(mapping.split_by_label(0).values()) == {"train": 28, "val": 4, "test": 8}
    assert mapping.split_by_label(0) == mapping.split_by_label(0)
    assert mapping.split_by_label(0) != mapping.split_by_label(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pairs]\ndog = [", "TOML"),
        ("[pair]\ndog = ['rain']", r"unknown table 'pair': did you mean 'pairs'\?"),
        ("", r"has no \[pairs\]"),
        ("[pairs]\ndog = []", "'dog': expected a list of labels"),
        ("[pairs]\ndog = [3]", "'dog': expected a list of labels"),
        ("pairs = 3", r"\[pairs\]: expected a table, found 3"),
        ("[pairs]\ndog = ['rain', 'rain']", "'rain' occurs twice"),
        ("[pairs]\ndog = ['cat']\ncat = ['rain']", "'cat' is a background of 'dog', and also a foreground"),
        ("[pairs]\ndog = ['rain']\n[hard]\ndog = ['dog']", "'dog' is a background of 'dog', and also a foreground"),
        ("[pairs]\ndog = ['rain']\n[hard]\ndgo = ['wind']", r"'dgo' is not in \[pairs\]: did you mean 'dog'"),
        ("[pairs]\ndog = ['rain']\n[splits]\ntset = ['dog']", "unknown split 'tset': did you mean 'test'"),
        ("[pairs]\ndog = ['rain']\n[splits]\ntest = ['cat']", r"'cat' is not in \[pairs\]"),
        ("[pairs]\ndog = ['rain']\n[splits]\ntest = ['dog']\nval = ['dog']", "'dog' is in test and in val"),
        ("[pairs]\ndog = ['rain']\ncat = ['rain']\n[splits]\ntest = ['dog']", "'cat' is in no split"),
    ],
)
def test_a_wrong_mapping_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_a_label_that_no_recording_has_is_named_with_the_nearest() -> None:
    mapping = PairMapping({"dgo": ("rain",)}, {}, {})
    with pytest.raises(InputError, match="no recording has the foreground 'dgo': did you mean 'dog'"):
        mapping.require_labels(["dog", "rain"])
    with pytest.raises(InputError, match="no recording has the background 'rain'"):
        mapping.require_labels(["dgo"])


def test_a_mapping_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"mapping esc5 .*did you mean 'esc50'"):
        read_mapping("esc5")


@pytest.mark.parametrize("name", shipped_mappings())
def test_every_background_of_a_shipped_mapping_can_stand_behind_every_class(name: str) -> None:
    mapping = read_mapping(name)
    for label in mapping.foregrounds:
        assert mapping.backgrounds_of(label) == mapping.backgrounds
        assert not set(mapping.pairs[label]) & set(mapping.hard[label])
    # Five-way tasks need five classes, and as many contexts that are all different.
    assert min(Counter(mapping.splits.values()).values()) >= 5
    assert len(mapping.backgrounds) >= 5
