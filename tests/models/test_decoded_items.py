from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch, UnreadableItem
from shotproof.core.runtime.runtime import Runtime
from shotproof.models.decoded_items import ItemStore, medium_of
from shotproof.models.preprocessing import ImagePreprocessing, SoundPreprocessing
from tests.drawn_clips import draw_clips
from tests.drawn_images import draw_catalog

SMALL = ImagePreprocessing(size=8, stored=10)


def files_in(cache: Path) -> list[Path]:
    return sorted((cache / "items").iterdir()) if (cache / "items").is_dir() else []


def test_items_are_decoded_once_and_mapped_from_then_on(tmp_path: Path) -> None:
    catalog, runtime = draw_catalog(tmp_path / "images", 3), Runtime(cache=tmp_path / "cache", workers=1)
    store = ItemStore.of(catalog, SMALL, runtime)
    expected = np.stack([SMALL.load(path) for path in catalog.paths])
    assert np.array_equal(store.values, expected)
    [file] = files_in(tmp_path / "cache")
    written, whole = file.stat().st_mtime_ns, file.read_bytes()
    assert np.array_equal(ItemStore.of(catalog, SMALL, runtime).values, expected)
    assert file.stat().st_mtime_ns == written  # it was read
    # A broken one is made anew: cut off, or with one byte altered in its head, its values or its digest.
    for place in (None, 20, 200, len(whole) - 1):
        broken = bytearray(whole if place is not None else whole[:-5])
        if place is not None:
            broken[place] ^= 1
        file.write_bytes(broken)
        assert np.array_equal(ItemStore.of(catalog, SMALL, runtime).values, expected)
        assert file.read_bytes() == whole
    assert np.array_equal(ItemStore.of(catalog, SMALL, Runtime(cache=None, workers=1)).values, expected)


def test_other_contents_or_another_preprocessing_have_their_own_file(tmp_path: Path) -> None:
    runtime = Runtime(cache=tmp_path / "cache", workers=1)
    catalog = draw_catalog(tmp_path / "images", 3)
    other = draw_catalog(tmp_path / "others", 4)
    keys = {
        ItemStore.of(catalog, SMALL, runtime).key,
        ItemStore.of(catalog, ImagePreprocessing(size=8, stored=9), runtime).key,
        ItemStore.of(other, SMALL, runtime).key,
    }
    # What the network makes of it has no say in what is kept.
    assert ItemStore.of(catalog, ImagePreprocessing(size=9, stored=10, std=(1, 1, 1)), runtime).key in keys
    assert len(keys) == len(files_in(tmp_path / "cache")) == 3


def test_rows_are_found_by_item_and_taken_in_any_shape(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 4)
    store = ItemStore.of(catalog, SMALL, Runtime(cache=None, workers=1))
    rows = store.rows_of(pa.array(catalog.items[::-1]))
    assert rows.tolist() == [3, 2, 1, 0]
    resident = store.tensor(torch.device("cpu"))
    taken = resident.take(torch.tensor([[3, 1], [0, 0]]))
    assert np.array_equal(taken, store.values[[[3, 1], [0, 0]]])
    with pytest.raises(Mismatch, match="the item store lacks"):
        store.rows_of(pa.array(["no such item"]))


def test_an_unreadable_file_is_named_and_nothing_is_kept(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 3)
    Path(catalog.paths[1]).write_bytes(b"no picture")
    with pytest.raises(UnreadableItem, match=Path(catalog.paths[1]).name):
        ItemStore.of(catalog, SMALL, Runtime(cache=tmp_path / "cache", workers=1))
    assert files_in(tmp_path / "cache") == []
    with pytest.raises(InputError, match="the catalog has no items"):
        ItemStore.of(Catalog(catalog.table.slice(0, 0), catalog.root), SMALL, Runtime(cache=None, workers=1))


def test_sounds_are_told_by_their_names_and_kept_in_half_precision(tmp_path: Path) -> None:
    images, sounds = draw_catalog(tmp_path / "images", 2), draw_clips(tmp_path / "clips", 2)
    assert (medium_of(images), medium_of(sounds)) == ("image", "sound")
    columns = ["item", "path", "label", "split"]
    both = pa.concat_tables([one.table.select(columns) for one in (images, sounds)])
    with pytest.raises(InputError, match=r"sounds and other files: \.\w+, \.wav"):
        medium_of(Catalog(both))
    store = ItemStore.of(sounds, SoundPreprocessing(seconds=0.5, bands=16), Runtime(cache=None, workers=1))
    assert (store.values.dtype, store.values.shape) == (np.float16, (2, 16, 16, 1))
    assert store.tensor(torch.device("cpu")).values.dtype == torch.float16
