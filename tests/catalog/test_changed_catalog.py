from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from PIL import Image

from shotproof.catalog.catalog import CHANGE, MASK, UNCHANGED, Catalog
from shotproof.catalog.changed_catalog import can_be_changed, has_layers, is_changed, unchanged_names, with_changes
from shotproof.catalog.item_files import item_digests, item_files
from shotproof.changes.change import changes
from shotproof.changes.changed_items import ChangedImage
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode
from shotproof.features.features import Features, Tally
from shotproof.media.clip import read_clip
from shotproof.media.images import open_image
from shotproof.media.mixture import amplified
from tests.drawn_clips import draw_clips
from tests.drawn_images import catalog_of, draw_catalog
from tests.drawn_layers import draw_masked
from tests.meter import lufs

NO_CACHE = Runtime(cache=None, workers=1)


def changed(catalog: Catalog, *spellings: str) -> Catalog:
    """The catalog with every item changed in each of these ways."""
    return with_changes(catalog, [(catalog.item_column, pa.repeat(text, len(catalog))) for text in spellings])


def rows(features: Features, items: Sequence[str]) -> npt.NDArray[np.float32]:
    """The features of these items."""
    place = {item: row for row, item in enumerate(features.table.column("item").to_pylist())}
    return features.array[[place[item] for item in items]]


def test_changed_items_follow_the_others_each_once(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path, 3)
    pairs = [(pa.array(["002.png", "000.png", "002.png"]), pa.array(["blur(severity=1)", "noise", "blur(severity=1)"]))]
    both = with_changes(catalog, [*pairs, (pa.array(["000.png"]), pa.array(["blur(severity=1)"]))])
    names = ["000.png @ blur(severity=1)", "000.png @ noise", "002.png @ blur(severity=1)"]
    assert both.items == [*catalog.items, *names]
    assert both.table.column(UNCHANGED).to_pylist() == [None] * 3 + ["000.png", "000.png", "002.png"]
    assert both.table.column(CHANGE).to_pylist()[3:] == ["blur(severity=1)", "noise", "blur(severity=1)"]
    assert both.table.column("label").to_pylist() == ["a"] * 6
    assert with_changes(catalog, pairs[::-1]).digest == with_changes(catalog, pairs).digest
    with pytest.raises(Mismatch, match=r"the changes: the catalog lacks 1 of the 1 items, e\.g\. 'x'"):
        with_changes(catalog, [(pa.array(["x"]), pa.array(["noise"]))])


@pytest.mark.parametrize("size", [(24, 16), (300, 260)], ids=["small", "larger than published"])
def test_features_are_those_of_the_changed_picture_in_a_file(tmp_path: Path, size: tuple[int, int]) -> None:
    catalog = draw_catalog(tmp_path / "images", 2, *size)
    spellings = ["noise(severity=2)", "blur(style='motion')", "crop(severity=5)"]
    both = changed(catalog, *spellings)
    features = encode(both, "pixels", runtime=NO_CACHE)
    names = []
    (tmp_path / "saved").mkdir()
    for item, file in zip(both.items, item_files(both), strict=True):
        if isinstance(file, ChangedImage):
            open_image(file).save(tmp_path / "saved" / f"{len(names)}.png")
            names.append(item)
    written = catalog_of(tmp_path / "saved", [f"{number}.png" for number in range(len(names))])
    assert len(names) == 2 * len(spellings)
    np.testing.assert_array_equal(rows(features, names), encode(written, "pixels", runtime=NO_CACHE).array)


def test_any_number_of_workers_and_the_cache_give_the_same(tmp_path: Path) -> None:
    catalog = changed(draw_masked(tmp_path, classes=2, items=2), "noise", "rotation", "only-background")
    alone = encode(catalog, "pixels", runtime=NO_CACHE)
    cached = Runtime(cache=tmp_path / "cache", workers=2)
    together, again = (encode(catalog, "pixels", runtime=cached) for _ in range(2))
    assert alone.digest == together.digest == again.digest
    assert again.tally == Tally(0, len(catalog))


def test_severity_0_has_the_features_of_the_item(tmp_path: Path) -> None:
    """Of large JPEGs too, which encoders decode at a part of their size."""
    path = tmp_path / "large.jpg"
    pixels = np.random.default_rng(0).integers(0, 256, (600, 700, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    both = changed(catalog_of(tmp_path, ["large.jpg"]), "blur(severity=0)", "rotation(severity=0)")
    features = encode(both, "pixels", runtime=NO_CACHE).array
    np.testing.assert_array_equal(features, np.repeat(features[:1], 3, axis=0))


def test_severity_0_of_sounds_has_the_features_of_the_item(tmp_path: Path) -> None:
    """Whatever the rate of the file."""
    both = changed(draw_clips(tmp_path, 2, rate=22_050), "gain(severity=0)", "gain")
    features = encode(both, "logmel", runtime=NO_CACHE)
    unchanged = rows(features, ["000.wav", "001.wav"])
    np.testing.assert_array_equal(rows(features, [f"00{n}.wav @ gain(severity=0)" for n in (0, 1)]), unchanged)
    assert not np.allclose(rows(features, [f"00{n}.wav @ gain" for n in (0, 1)]), unchanged)


def test_digests_differ_between_changes_and_agree_for_equal_content(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, classes=2, items=2)
    (tmp_path / "copy.png").write_bytes((tmp_path / "0-0.png").read_bytes())
    row = {**catalog.table.slice(0, 1).to_pylist()[0], "item": "copy", "path": "copy.png"}
    catalog = Catalog(pa.concat_tables([catalog.table, pa.Table.from_pylist([row])]), tmp_path)
    both = changed(catalog, "noise", "noise(severity=1)", "blur", "only-background", "blur(severity=0)")
    digests = dict(zip(both.items, item_digests(item_files(both), NO_CACHE).to_pylist(), strict=True))
    for change in ("", " @ noise", " @ only-background"):
        assert digests[f"0-0.png{change}"] == digests[f"copy{change}"]
    assert digests["0-0.png @ blur(severity=0)"] == digests["0-0.png"]
    distinct = {digest for name, digest in digests.items() if "copy" not in name}
    assert len(distinct) == 5 * 4


def test_a_new_mask_changes_the_digest(tmp_path: Path) -> None:
    both = changed(draw_masked(tmp_path, classes=1, items=2), "only-background")
    before = item_digests(item_files(both), NO_CACHE).to_pylist()
    Image.new("1", (64, 48), 1).save(tmp_path / "masks" / "0-0.png")
    after = item_digests(item_files(both), NO_CACHE).to_pylist()
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, True, False, True]


def test_items_without_a_mask_or_a_plate_are_named(tmp_path: Path) -> None:
    masked = draw_masked(tmp_path, classes=1, items=3)
    masks = pa.array(["masks/0-0.png", None, "masks/0-2.png"], pa.string())
    catalog = Catalog(masked.table.set_column(masked.table.column_names.index(MASK), MASK, masks), tmp_path)
    assert can_be_changed(catalog, changes.make("only-background")).tolist() == [True, False, True]
    assert can_be_changed(catalog, changes.make("blur")).all()
    for item, spelling, message in (
        ("0-1.png", "only-background", "item '0-1.png' or its plate .*: images need masks"),
        ("0-0.png", "mixed-same(plate='0-1.png')", "item '0-0.png' or its plate"),
        ("0-0.png", "mixed-same", "item '0-0.png' has no plate"),
        ("0-0.png", "mixed-same(plate='x')", "has the plate 'x', .*catalog"),
        ("0-0.png", "gain", "change 'gain' does not apply to images"),
    ):
        with pytest.raises(InputError, match=message.replace("(", r"\(")):
            item_files(with_changes(catalog, [(pa.array([item]), pa.array([spelling]))]))


def test_no_masks_at_all_tell_what_would_give_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"change 'mixed-same' .*foreground.*mix CATALOG --cutter grabcut"):
        can_be_changed(draw_catalog(tmp_path, 2), changes.make("mixed-same"))


@pytest.mark.parametrize("is_written", [True, False])
def test_mixed_sounds_are_taken_apart_whether_files_hold_them_or_not(tmp_path: Path, is_written: bool) -> None:
    draw_clips(tmp_path, 5, seconds=5.0)
    parts = {"foreground": ["000.wav", "001.wav"], "background": ["002.wav", "003.wav"], "gain_db": [-9.0, -3.0]}
    files = ["004.wav", "004.wav"] if is_written else ["", ""]
    columns = {"item": ["a", "b"], "path": files, "label": ["x", "x"], "split": ["test"] * 2, **parts}
    catalog = Catalog(pa.table(columns), tmp_path)
    both = with_changes(
        catalog,
        [(pa.array(["a"] * 3), pa.array(["only-foreground", "only-background", "mixed-same(plate='b')"]))],
    )
    front, back, other = (read_clip(tmp_path / f"00{number}.wav") for number in (0, 2, 3))
    clips = dict(zip(both.items[2:], (read_clip(file) for file in item_files(both)[2:]), strict=True))
    np.testing.assert_allclose(clips["a @ only-foreground"], front, atol=1 / 32768)
    np.testing.assert_allclose(clips["a @ only-background"], amplified(back, -9.0), atol=1 / 32768)
    added = clips["a @ mixed-same(plate='b')"] - front
    np.testing.assert_allclose(added, other * (added @ other) / (other @ other), atol=2 / 32768)
    assert lufs(added) == pytest.approx(lufs(amplified(back, -9.0)), abs=0.1)


def test_mixtures_without_a_background_cannot_be_taken_apart(tmp_path: Path) -> None:
    draw_clips(tmp_path, 3)
    parts = {"foreground": ["000.wav", "001.wav"], "background": ["002.wav", None], "gain_db": [-9.0, None]}
    columns = {"item": ["a", "b"], "path": ["", ""], "label": ["x", "x"], "split": ["test"] * 2, **parts}
    catalog = Catalog(pa.table(columns), tmp_path)
    assert can_be_changed(catalog, changes.make("only-background")).tolist() == [True, False]
    with pytest.raises(InputError, match=r"item 'b' or its plate .* sounds need to be mixtures"):
        item_files(changed(catalog, "only-background"))
    with pytest.raises(InputError, match="change 'blur' does not apply to sounds"):
        item_files(changed(catalog, "blur"))


def test_only_the_columns_of_the_medium_are_layers(tmp_path: Path) -> None:
    images, sounds = draw_catalog(tmp_path / "images", 2), draw_clips(tmp_path / "sounds", 2)
    parts = {"foreground": ["000.wav"] * 2, "background": ["001.wav", ""], "gain_db": [-3.0, None]}
    for catalog, columns, expected in (
        (images, {"background": ["forest", "street"]}, None),
        (images, parts, None),
        (images, {"mask": ["a.png", None]}, [True, False]),
        (sounds, {"mask": ["a.png", "b.png"]}, None),
        (sounds, {"background": ["street", "rain"]}, None),
        (sounds, parts, [True, False]),
    ):
        table = catalog.table
        for name, values in columns.items():
            table = table.append_column(name, pa.array(values))
        known = Catalog(table, catalog.root)
        assert has_layers(known).tolist() == (expected or [False, False])
        if expected is None:
            with pytest.raises(InputError, match="change 'mixed-same' needs the foreground"):
                can_be_changed(known, changes.make("mixed-same"))


def test_images_with_the_columns_of_mixtures_are_taken_apart_by_their_masks(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path, classes=1, items=2)
    table = catalog.table.append_column("foreground", pa.array(["bird"] * 2))
    both = changed(Catalog(table.append_column("background", pa.array(["sea"] * 2)), tmp_path), "only-background")
    assert [type(file) for file in item_files(both)[2:]] == [ChangedImage] * 2


@pytest.mark.parametrize("values", [[1, 2], [1.5, None], [True, False]])
def test_masks_that_are_no_text_are_refused_by_the_column(tmp_path: Path, values: list[object]) -> None:
    catalog = draw_catalog(tmp_path, 2)
    numbered = Catalog(catalog.table.append_column(MASK, pa.array(values)), tmp_path)
    with pytest.raises(InputError, match=r"catalog, column 'mask': expected string, found (int64|double|bool)"):
        can_be_changed(numbered, changes.make("only-background"))
    assert can_be_changed(numbered, changes.make("blur")).all()


def test_masks_may_be_codes_of_text_or_all_empty(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path, 2)
    coded = catalog.table.append_column(MASK, pa.array(["a.png", None]).dictionary_encode())
    assert has_layers(Catalog(coded, tmp_path)).tolist() == [True, False]
    assert not has_layers(Catalog(catalog.table.append_column(MASK, pa.nulls(2)), tmp_path)).any()


@pytest.mark.parametrize("name", [CHANGE, UNCHANGED])
def test_a_column_of_the_user_with_a_name_of_ours_is_no_change(tmp_path: Path, name: str) -> None:
    plain = draw_catalog(tmp_path, 2)
    catalog = Catalog(plain.table.append_column(name, pa.array(["price", "weather"])), tmp_path)
    assert not is_changed(catalog)
    assert item_files(catalog) == plain.paths
    both = changed(catalog, "blur")
    assert is_changed(both)
    assert both.table.column(CHANGE).to_pylist() == [None, None, "blur", "blur"]
    files = item_files(both)
    assert files[:2] == plain.paths
    assert all(isinstance(file, ChangedImage) for file in files[2:])
    expected = encode(changed(plain, "blur"), "pixels", runtime=NO_CACHE)
    np.testing.assert_array_equal(encode(both, "pixels", runtime=NO_CACHE).array, expected.array)


def test_an_item_with_the_name_of_a_changed_one_is_told_with_the_change(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path, 2)
    names = pa.array(["a.png", "a.png @ blur"])
    catalog = Catalog(catalog.table.set_column(0, "item", names), tmp_path)
    assert len(changed(catalog, "noise")) == 4
    with pytest.raises(InputError, match=r"'a\.png @ blur' .* item 'a\.png' with the change 'blur'"):
        changed(catalog, "noise", "blur")


def test_the_item_that_a_changed_item_is_made_of() -> None:
    names = ["a", "a @ b", "c"]
    catalog = Catalog(pa.table(dict.fromkeys(("item", "path", "label", "split"), names)))
    items = ["a", "a @ blur", "a @ b @ blur", "a @ mixed-same(plate='a @ b')", "c @", "d @ blur", "d"]
    expected = ["a", "a", "a @ b", "a", None, None, None]
    assert unchanged_names(catalog, pa.array(items)).to_pylist() == expected
    changed = with_changes(catalog, [(pa.array(["c"]), pa.array(["blur"]))])
    assert unchanged_names(changed, pa.array(["c @ blur", "c", "a @ b @ noise"])).to_pylist() == ["c", "c", "a @ b"]
