"""Photos of a phone: reading them for photometric words and for `lite0`, and `lite0` on images that are small already.

Both ways are timed in one run, in turns of a few images, so that other work on the machine slows both down. The old way
decodes every pixel, once for words and once for features, and runs the network as its package builds it; it is kept
here as a plain baseline only.

    python -m benchmarks.photos --photos 200
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageChops, ImageDraw

from shotproof.attributes.detectors.photometric import PhotometricDetector, photometric_words
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoders.lite0 import SIZE, Lite0, load_network
from shotproof.features.encoders.pretrained_network import look_while_encoding
from shotproof.features.features import Features
from shotproof.media.images import open_image

WIDTH, HEIGHT = 4000, 3000  # 12 megapixels
SMALL = 128  # pixels of the shorter side of images that are small already
CLASSES = 10
NOISE = 7.0  # standard deviation: files of 3 to 4 MB, as phones write them
SHAPES = 40
TURN = 30  # images that each way takes at a time
HERE = Runtime(cache=None, progress=False)


def run(arguments: Sequence[str] = ()) -> None:
    """Make photos in a temporary folder, and print how many times as fast the new way is."""
    parser = argparse.ArgumentParser(
        description="Time words and features of photos of a phone, and lite0 on small images."
    )
    parser.add_argument("--photos", type=int, default=200, help="number of photos; default: %(default)s")
    parser.add_argument("--small", type=int, default=1000, help="number of small images; default: %(default)s")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        photos = make_photos(Path(name) / "photos", options.photos, (WIDTH, HEIGHT))
        size = sum(path.stat().st_size for path in photos.paths) / len(photos) / 1e6
        print(f"{len(photos):,} photos of {WIDTH} x {HEIGHT} pixels, {size:.1f} MB each", flush=True)
        first_run(photos)
        small = make_photos(Path(name) / "small", options.small, (SMALL * WIDTH // HEIGHT, SMALL))
        print(f"{len(small):,} images of {SMALL} pixels on the shorter side", flush=True)
        timed("lite0", small, partial(features_of, FullLite0()), partial(features_of, Lite0()))


def first_run(photos: Catalog) -> None:
    """Time words and features of the photos, separately and together, and print how close the features are."""
    old_words, new_words = timed("photometric words", photos, full_words, words_of)
    old_features, new_features = timed(
        "lite0", photos, partial(features_of, FullLite0()), partial(features_of, Lite0())
    )
    encoder = FullLite0()
    _, together = timed(
        "words and lite0",
        photos,
        lambda catalog: [(full_words(catalog), features_of(encoder, catalog))],
        lambda catalog: [look_while_encoding(catalog, Lite0(), PhotometricDetector().look, HERE)],
    )
    assert [words_of_image for _, part in together for words_of_image in part] == new_words
    old, new, both = (
        np.concatenate([features.array for features in parts])
        for parts in (old_features, new_features, [features for features, _ in together])
    )
    assert both.tobytes() == new.tobytes()
    cosines = np.sum(old * new, axis=1) / np.prod([np.linalg.norm(array, axis=1) for array in (old, new)], axis=0)
    print(f"cosine of a photo's features: {cosines.min():.4f} at least, {np.median(cosines):.4f} median")
    same = np.mean([set(words) == set(others) for words, others in zip(old_words, new_words, strict=True)])
    print(f"photos with the same words: {same:.1%}")


def timed(
    title: str, catalog: Catalog, old: Callable[[Catalog], list[Any]], new: Callable[[Catalog], list[Any]]
) -> tuple[list[Any], list[Any]]:
    """Print the images per second of two ways, and their ratio; return the results of both, end to end."""
    outputs: tuple[list[Any], list[Any]] = ([], [])
    seconds = [0.0, 0.0]
    for start in range(0, len(catalog), TURN):
        part = Catalog(catalog.table.slice(start, TURN), catalog.root)
        for place, way in enumerate((old, new)):
            started = time.perf_counter()
            outputs[place].extend(way(part))
            seconds[place] += time.perf_counter() - started
    old_rate, new_rate = (len(catalog) / elapsed for elapsed in seconds)
    print(f"{title}: {old_rate:.1f} images/s before, {new_rate:.1f} now: {new_rate / old_rate:.2f} times", flush=True)
    return outputs


class FullLite0(Lite0):
    """Encoder as it was before: every pixel is decoded, and the network is as its package builds it."""

    @cached_property
    def network(self) -> Any:
        """Return the network with its batch norms."""
        return load_network().eval().to(memory_format=torch.channels_last)

    def load(self, path: Path) -> Any:
        """Load the image, resized from all of its pixels."""
        return np.asarray(open_image(path).resize((SIZE, SIZE), Image.Resampling.BICUBIC))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Compute features of images."""
        features: torch.Tensor = self.network.extract_features((batch.permute(0, 3, 1, 2).float() - 127) / 128)
        return features.mean(dim=(2, 3))


def full_words(catalog: Catalog) -> list[list[str]]:
    """Detect the words of images, decoding every pixel."""
    return list(HERE.map(full_words_of, catalog.paths, title=None, chunk=8))


def full_words_of(path: Path) -> list[str]:
    """Detect the words of an image, decoding every pixel."""
    return photometric_words(open_image(path))


def words_of(catalog: Catalog) -> list[Any]:
    """Detect the words of images by the detector."""
    return [*PhotometricDetector().detect(catalog, HERE).values()]


def features_of(encoder: Lite0, catalog: Catalog) -> list[Features]:
    """Encode without a cache."""
    return [encoder.encode(catalog, HERE, "raise")]


def make_photos(folder: Path, count: int, size: tuple[int, int]) -> Catalog:
    """Write JPEGs of random shapes on a slope, with a camera's noise, in a folder per class."""
    rng = np.random.default_rng(0)
    noise = Image.effect_noise(size, 2 * NOISE).convert("RGB")
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (2, 2, 3), dtype=np.uint8))
        photo = coarse.resize(size, Image.Resampling.BICUBIC)
        draw = ImageDraw.Draw(photo)
        for _ in range(SHAPES):
            (x, y), radius = rng.uniform(0, size), rng.uniform(0.02, 0.15) * size[1]
            color = tuple(int(value) for value in rng.integers(0, 256, 3))
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)
        path = folder / f"class{number % CLASSES}" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        ImageChops.add(photo, noise, offset=-128).save(path, quality=90)
    return read_layout(folder, "folder")


if __name__ == "__main__":
    run(sys.argv[1:])
