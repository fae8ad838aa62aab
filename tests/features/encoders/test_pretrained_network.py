from __future__ import annotations

import logging
import os
import pickle
import shutil
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import soundfile
import torch
from PIL import Image

from shotproof.attributes.detector import detect
from shotproof.attributes.detectors.photometric import PhotometricDetector
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, UnreadableItem
from shotproof.core.options import option
from shotproof.core.records import FeaturesRecord, Maker, Source
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import encode, with_record
from shotproof.features.encoders.pixels import Pixels
from shotproof.features.encoders.pretrained_network import NetworkEncoder, look_while_encoding
from shotproof.features.features import Features, Tally
from shotproof.media.images import open_image
from shotproof.media.mixture import Mixture
from tests.drawn_clips import draw_clips
from tests.drawn_images import catalog_of, draw_catalog, draw_image


@dataclass(frozen=True)
class Projection(NetworkEncoder):
    """A small network, which notes the sizes of the batches that it was given."""

    about = "a random projection"

    version: str = option("1", "part of the fingerprint")
    dimensions: int = option(5, "of the features")

    @cached_property
    def network(self) -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(24 * 16 * 3, self.dimensions, generator=generator)

    @cached_property
    def batches(self) -> list[int]:
        return []

    @property
    def fingerprint(self) -> str:
        return f"projection version={self.version}"

    def load(self, path: Path) -> npt.NDArray[Any]:
        return np.asarray(open_image(path), dtype=np.float32) / 255

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.batches.append(len(batch))
        return batch.flatten(1) @ self.network


def expected(catalog: Catalog, encoder: Projection) -> npt.NDArray[Any]:
    images = [np.asarray(Image.open(path), dtype=np.float64).ravel() / 255 for path in catalog.paths]
    return np.stack(images) @ encoder.network.numpy().astype(np.float64)


@pytest.mark.parametrize("batch_size", [1, 4, 7, 100])
def test_features_are_the_networks_whatever_the_batch_size(tmp_path: Path, batch_size: int) -> None:
    catalog = draw_catalog(tmp_path, 10)
    encoder = Projection()
    features = encode(catalog, encoder, runtime=Runtime(cache=None, batch_size=batch_size, workers=1))
    np.testing.assert_allclose(features.array, expected(catalog, encoder), rtol=1e-5, atol=1e-5)
    assert features.array.dtype == np.float32
    assert features.table.column("item").to_pylist() == catalog.table["item"].to_pylist()
    assert max(encoder.batches) <= batch_size


def test_the_file_is_the_same_to_the_byte_for_any_number_of_workers(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 9)
    for workers in (None, 1, 2):
        features = encode(catalog, Projection(), runtime=Runtime(cache=None, batch_size=2, workers=workers))
        features.write(tmp_path / f"{workers}.parquet")
    written = {(tmp_path / f"{workers}.parquet").read_bytes() for workers in (None, 1, 2)}
    assert len(written) == 1


def test_a_second_run_encodes_nothing(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 6)
    first = encode(catalog, Projection(), runtime=Runtime(cache=tmp_path / "cache", workers=1))
    again = Projection()
    second = encode(catalog, again, runtime=Runtime(cache=tmp_path / "cache", workers=1))
    assert again.batches == []
    assert second.tally == Tally(encoded=0, reused=6)
    assert second.table.equals(first.table)
    assert second.record == first.record


def test_after_adding_images_only_those_are_encoded(tmp_path: Path) -> None:
    encode(draw_catalog(tmp_path / "images", 6), Projection(), runtime=Runtime(cache=tmp_path / "cache", workers=1))
    catalog, encoder = draw_catalog(tmp_path / "images", 10), Projection()
    features = encode(catalog, encoder, runtime=Runtime(cache=tmp_path / "cache", workers=1))
    assert sum(encoder.batches) == 4
    assert features.tally == Tally(encoded=4, reused=6)
    np.testing.assert_allclose(features.array, expected(catalog, encoder), rtol=1e-5, atol=1e-5)


def test_a_changed_image_is_encoded_again(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 3)
    encode(catalog, Projection(), runtime=Runtime(cache=tmp_path / "cache", workers=1))
    draw_image(tmp_path / "images" / "001.png", seed=99)
    os.utime(tmp_path / "images" / "001.png", (1_100_000_000, 1_100_000_000))
    encoder = Projection()
    features = encode(catalog, encoder, runtime=Runtime(cache=tmp_path / "cache", workers=1))
    assert encoder.batches == [1]
    np.testing.assert_allclose(features.array, expected(catalog, encoder), rtol=1e-5, atol=1e-5)


def test_another_fingerprint_never_meets_the_same_entries(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 3)
    encode(catalog, Projection("1"), runtime=Runtime(cache=tmp_path / "cache", workers=1))
    other = Projection("2", dimensions=7)
    assert encode(catalog, other, runtime=Runtime(cache=tmp_path / "cache", workers=1)).array.shape == (3, 7)
    assert other.batches == [3]


def test_copies_moved_and_renamed_files_are_encoded_once(tmp_path: Path) -> None:
    draw_catalog(tmp_path / "a", 2)
    shutil.copy(tmp_path / "a" / "000.png", tmp_path / "a" / "copy.png")
    encoder = Projection()
    catalog = catalog_of(tmp_path / "a", ["000.png", "001.png", "copy.png"])
    features = encode(catalog, encoder, runtime=Runtime(cache=tmp_path / "cache", workers=1))
    assert encoder.batches == [2]
    assert features.tally == Tally(encoded=2, reused=1)
    np.testing.assert_array_equal(features.array[0], features.array[2])
    (tmp_path / "a").rename(tmp_path / "b")
    moved = Projection()
    encode(
        catalog_of(tmp_path / "b", ["copy.png", "001.png"]), moved, runtime=Runtime(cache=tmp_path / "cache", workers=1)
    )
    assert moved.batches == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_unreadable_image_is_named_and_what_was_encoded_is_kept(tmp_path: Path, workers: int) -> None:
    catalog = draw_catalog(tmp_path / "images", 6)
    (tmp_path / "images" / "004.png").write_bytes(b"no image at all")
    with pytest.raises(UnreadableItem, match=r"004\.png cannot be read") as caught:
        encode(catalog, Projection(), runtime=Runtime(cache=tmp_path / "cache", batch_size=2, workers=workers))
    assert "\n" not in str(caught.value)
    draw_image(tmp_path / "images" / "004.png", seed=4)
    again = Projection()
    encode(catalog, again, runtime=Runtime(cache=tmp_path / "cache", batch_size=2, workers=1))
    assert sum(again.batches) == 2


def test_an_interrupted_run_continues(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 8)
    sixth = torch.from_numpy(Projection().load(catalog.paths[6]))

    class Interrupted(Projection):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            if torch.equal(batch[0], sixth):
                raise KeyboardInterrupt
            return super().forward(batch)

    with pytest.raises(KeyboardInterrupt):
        encode(catalog, Interrupted(), runtime=Runtime(cache=tmp_path / "cache", batch_size=2, workers=1))
    again = Projection()
    encode(catalog, again, runtime=Runtime(cache=tmp_path / "cache", batch_size=2, workers=1))
    assert again.batches == [2]


def test_nobody_waits_for_a_batch_under_way_when_the_user_breaks_off(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path / "images", 8)
    begun, free, ended = threading.Event(), threading.Event(), threading.Event()

    class Slow(Projection):
        def load(self, path: Path) -> npt.NDArray[Any]:
            if path == catalog.paths[3]:
                begun.wait()
                raise KeyboardInterrupt
            return super().load(path)

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            begun.set()
            free.wait(10)
            ended.set()
            return super().forward(batch)

    with pytest.raises(KeyboardInterrupt):
        encode(catalog, Slow(), runtime=Runtime(cache=None, batch_size=2, workers=1))
    assert not ended.is_set()
    free.set()


def test_a_broken_segment_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    catalog = draw_catalog(tmp_path / "images", 3)
    first = encode(catalog, Projection(), runtime=Runtime(cache=tmp_path / "cache", workers=1))
    (segment,) = (tmp_path / "cache" / "features").rglob("*.parquet")
    content = bytearray(segment.read_bytes())
    for place in range(len(content) // 4, len(content) // 2):  # a single byte may be one that says nothing
        content[place] ^= 0xFF
    segment.write_bytes(content)
    again = Projection()
    with caplog.at_level(logging.WARNING, "shotproof"):
        second = encode(catalog, again, runtime=Runtime(cache=tmp_path / "cache", workers=1))
    assert again.batches == [3]
    assert segment.name in caplog.text
    assert second.table.equals(first.table)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableItem, match=r"gone\.png cannot be read: No such file"):
        encode(catalog_of(tmp_path, ["gone.png"]), Projection(), runtime=Runtime(cache=None))


def test_an_empty_catalog_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the catalog has no items"):
        encode(catalog_of(tmp_path, []), Projection(), runtime=Runtime(cache=None))


def test_images_of_different_shapes_are_refused(tmp_path: Path) -> None:
    draw_image(tmp_path / "a.png", 0)
    draw_image(tmp_path / "b.png", 1, width=30)
    with pytest.raises(InputError, match=r"different shapes, \[16, 24, 3\] and \[16, 30, 3\]"):
        encode(catalog_of(tmp_path, ["a.png", "b.png"]), Projection(), runtime=Runtime(cache=None))


def test_a_value_that_is_not_finite_never_reaches_the_cache(tmp_path: Path) -> None:
    encoder = Projection()
    encoder.network[0, 0] = torch.inf
    with pytest.raises(InputError, match=r"feature of .*000\.png .*not finite"):
        encode(draw_catalog(tmp_path / "images", 2), encoder, runtime=Runtime(cache=tmp_path / "cache", workers=1))
    assert not list((tmp_path / "cache" / "features").rglob("*.parquet"))


def test_a_network_without_one_vector_per_image_is_refused(tmp_path: Path) -> None:
    class Flat(Projection):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return super().forward(batch).flatten()

    with pytest.raises(InputError, match=r"expected features of shape \[2, d\], .* \[10\]"):
        encode(draw_catalog(tmp_path, 2), Flat(), runtime=Runtime(cache=None))


def test_the_network_is_not_sent_to_the_workers() -> None:
    sent = pickle.loads(pickle.dumps(Projection()))
    assert "network" not in vars(sent)
    assert sent.fingerprint == Projection().fingerprint


def test_the_users_random_state_is_left_alone(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path, 3)
    before = torch.get_rng_state()
    encode(catalog, Projection(), runtime=Runtime(cache=None, batch_size=1, workers=1))
    assert torch.equal(torch.get_rng_state(), before)


def test_features_and_thread_count_are_the_same_for_any_number_of_threads(tmp_path: Path) -> None:
    catalog, before = draw_catalog(tmp_path, 9), torch.get_num_threads()
    digests = set()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            digests.add(encode(catalog, Projection(), runtime=Runtime(cache=None, batch_size=2, workers=1)).digest)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert len(digests) == 1


def test_features_say_what_they_were_made_from(tmp_path: Path) -> None:
    catalog = draw_catalog(tmp_path, 2)
    features: Features = encode(catalog, Projection("3"), runtime=Runtime(cache=None))
    assert features.record == FeaturesRecord(
        sources={"catalog": Source(catalog.digest)},
        encoder=Maker("Projection", "Projection(version='3')", {"version": "3", "dimensions": 5}),
        fingerprint="projection version=3",
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_unreadable_items_are_left_out_and_named_where_asked(
    tmp_path: Path, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = draw_catalog(tmp_path / "images", 7)
    whole = encode(catalog, Projection(), runtime=Runtime(cache=None))
    (tmp_path / "images" / "001.png").write_bytes(b"no image at all")
    (tmp_path / "images" / "004.png").unlink()
    runtime = Runtime(cache=tmp_path / "cache", batch_size=2, workers=workers)
    features = encode(catalog, Projection(), on_error="skip", runtime=runtime)
    assert features.record.skipped == ("001.png", "004.png")
    (warning,) = caplog.messages
    assert "2 of 7 items" in warning
    assert "001.png, 004.png" in warning
    kept = [0, 2, 3, 5, 6]
    assert features.table["item"].to_pylist() == [catalog.items[row] for row in kept]
    np.testing.assert_allclose(features.array, whole.array[kept], rtol=1e-5, atol=1e-5)
    assert features.tally == Tally(encoded=5, reused=0)
    features.write(tmp_path / "f.parquet")
    assert Features.read(tmp_path / "f.parquet").record.skipped == features.record.skipped


def test_a_catalog_without_a_readable_item_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableItem, match=r"none of the 2 items can be read, e\.g\. 'a\.png'"):
        encode(catalog_of(tmp_path, ["a.png", "b.png"]), Projection(), on_error="skip", runtime=Runtime(cache=None))


def test_what_to_do_about_errors_is_one_of_two(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown value of on_error 'ignore'"):
        encode(draw_catalog(tmp_path, 1), Projection(), on_error="ignore")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """JPEGs that are large enough to be decoded at a part of their size, small images, a copy, and a broken one."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for number in range(3):
        coarse = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
        coarse.resize((1200, 960), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg")
    for number in range(3, 6):
        draw_image(folder / f"{number}.png", number)
    shutil.copy(folder / "1.jpg", folder / "copy.jpg")
    (folder / "broken.jpg").write_bytes((folder / "0.jpg").read_bytes()[:3000])
    return catalog_of(folder, sorted(path.name for path in folder.iterdir()))


@pytest.mark.parametrize(("workers", "batch_size"), [(1, 4), (2, 1), (None, 3)])
@pytest.mark.parametrize("known", [0, 4])
@pytest.mark.parametrize("encoder", [Pixels(size=4), Pixels(size=250)], ids=["same-scale", "another-scale"])
def test_words_and_features_are_the_same_made_together_or_apart(
    photos: Catalog, tmp_path: Path, encoder: Pixels, known: int, workers: int | None, batch_size: int
) -> None:
    runtime = Runtime(cache=tmp_path, workers=workers, batch_size=batch_size, progress=False)
    alone = Runtime(cache=None, workers=1, progress=False)
    if known:
        encode(Catalog(photos.table.slice(0, known), photos.root), encoder, runtime=runtime)
    features, seen = look_while_encoding(photos, encoder, PhotometricDetector().look, runtime)
    assert features is not None
    apart = encode(photos, encoder, on_error="skip", runtime=alone)
    assert with_record(features, encoder, photos).record == apart.record
    assert features.table.equals(apart.table)
    words = detect(photos, "photometric", runtime=alone).to_words()
    together = detect(photos, "photometric", reader=lambda catalog, look: seen, runtime=alone).to_words()
    assert together == words
    assert words["broken.jpg"] is None
    assert apart.record.skipped == ("broken.jpg",)


def test_if_no_image_can_be_read_there_are_no_features_and_errors_are_seen(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no image")
    catalog = catalog_of(tmp_path, ["a.png", "missing.png"])
    runtime = Runtime(cache=None, workers=1)
    features, seen = look_while_encoding(catalog, Pixels(), PhotometricDetector().look, runtime)
    assert features is None
    assert [type(one) for one in seen] == [UnreadableItem, UnreadableItem]


def mixtures(folder: Path, gains: list[float]) -> Catalog:
    """Mixtures of two clips that no file holds, one item per gain."""
    draw_clips(folder, 2)
    rows: list[dict[str, Any]] = [
        {"item": f"{gain:g}", "path": "", "label": "a", "split": "test", "gain_db": gain}
        | {"foreground": "000.wav", "background": "001.wav"}
        for gain in gains
    ]
    return Catalog(pa.Table.from_pylist(rows), folder)


def test_mixtures_on_the_fly_are_encoded_as_from_their_files(tmp_path: Path) -> None:
    catalog = mixtures(tmp_path, [-8.0, 0.0])
    names = []
    for gain in (-8.0, 0.0):
        names.append(f"mixed{gain:g}.wav")
        samples = Mixture(tmp_path / "000.wav", tmp_path / "001.wav", gain).samples()
        soundfile.write(tmp_path / names[-1], samples, 16_000, subtype="PCM_16")
    written = Catalog(catalog.table.set_column(1, "path", pa.array(names)), tmp_path)
    on_the_fly = encode(catalog, "logmel", runtime=Runtime(cache=None, workers=1)).array
    np.testing.assert_array_equal(on_the_fly, encode(written, "logmel", runtime=Runtime(cache=None, workers=1)).array)
    assert (on_the_fly[0] != on_the_fly[1]).any()


def test_a_mixture_is_cached_by_what_it_is_made_of(tmp_path: Path) -> None:
    tallies = []
    cached = Runtime(cache=tmp_path / "cache", workers=1)

    def encoded(gains: list[float]) -> None:
        tallies.append(encode(mixtures(tmp_path, gains), "logmel", runtime=cached).tally)

    encoded([-8.0])
    encoded([-8.0])
    encoded([-8.0, -4.0])
    soundfile.write(tmp_path / "other.wav", np.linspace(-0.5, 0.5, 8_000), 16_000)
    os.utime(tmp_path / "other.wav", (1_000_000_000, 1_000_000_000))
    catalog = mixtures(tmp_path, [-8.0])
    other = catalog.table.set_column(
        catalog.table.column_names.index("background"), "background", pa.array(["other.wav"])
    )
    tallies.append(encode(Catalog(other, tmp_path), "logmel", runtime=cached).tally)
    assert tallies == [Tally(1, 0), Tally(0, 1), Tally(1, 1), Tally(1, 0)]


def test_a_mixture_of_a_missing_recording_is_left_out_where_asked(tmp_path: Path) -> None:
    catalog = mixtures(tmp_path, [-8.0, 0.0])
    column = catalog.table.column_names.index("background")
    gone = Catalog(catalog.table.set_column(column, "background", pa.array(["gone.wav", "001.wav"])), tmp_path)
    features = encode(gone, "logmel", on_error="skip", runtime=Runtime(cache=None, workers=1))
    assert (features.table["item"].to_pylist(), features.record.skipped) == (["0"], ("-8",))
