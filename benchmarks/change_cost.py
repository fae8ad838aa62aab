"""What encoding changed items costs, as a multiple of encoding the same items unchanged; a second run encodes nothing.

    python -m benchmarks change_cost

Images are birds (if they are installed, small JPEGs with GrabCut's masks) and drawn photos of 500 x 375 pixels, by
`lite0`. Sounds are clips of ESC-50, alone and mixed with backgrounds, by `logmel`. Both ways take turns in one process
without workers, and the least time of each counts, so that other work on the machine matters little.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image, ImageDraw

import shotproof as sp
from benchmarks.fixture import birds, sounds
from benchmarks.photos import make_photos
from shotproof.catalog.catalog import MASK, Catalog
from shotproof.catalog.changed_catalog import with_changes
from shotproof.changes import changed_items
from shotproof.changes.change import BackgroundChange, Change, changes
from shotproof.core.runtime.runtime import Runtime
from shotproof.features.encoder import Encoder, encoders
from shotproof.media import lufs, mixture
from shotproof.tasks.plates import Plates

IMAGES, CLIPS = 300, 300  # more than the layers that are kept
CLASSES = 10
PHOTO = (500, 375)  # pixels
ROUNDS = 2
MOST_VARIANTS = 2  # changed items per item on average; mixed-rival has 18 of each
LIMIT = 1.3
STYLES = {  # beside the default
    "noise": ("shot", "impulse"),
    "blur": ("motion", "zoom"),
    "light": ("darker", "contrast", "fog"),
    "color": ("hue", "white-balance"),
    "band": ("low-pass", "high-pass"),
    "gain": ("louder",),
    "sound-noise": ("pink",),
}
BACKGROUNDS = ("only-foreground", "only-background", "mixed-same", "mixed-random", "mixed-rival")


@dataclass(frozen=True)
class Times:
    """Milliseconds of encoding an item, of the processor and by the clock, and the number of encoded items."""

    processor: float
    clock: float
    items: int


def run() -> None:
    """Print a table per data set, and how many items a second run encodes."""
    image_changes = [*_spellings("image"), *BACKGROUNDS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        masked_birds = _masked_birds(folder)
        if masked_birds is None:
            print("skipped: the birds are missing (set SHOTPROOF_DATA to the folder that holds CUB_200_2011)")
        else:
            _measure("birds by lite0", masked_birds, "lite0", image_changes, folder)
        _measure("drawn photos by lite0", _masked_photos(folder), "lite0", image_changes, folder)
        root = sounds()
        if root is None:
            print("skipped: the sounds are missing (set SHOTPROOF_DATA to the folder that holds ESC-50)")
            return
        recordings = sp.read_layout(root, "esc50")
        _measure("clips by logmel", _spread(recordings, CLIPS), "logmel", _spellings("sound"), folder)
        settings = sp.sounds.MixSettings(on_the_fly=True, per_background=1)
        mixtures = sp.mix(recordings, "esc50", folder / "mixed", settings)
        _measure("mixtures by logmel", _of_classes(mixtures, CLIPS), "logmel", BACKGROUNDS, folder)


def _spellings(medium: str) -> list[str]:
    """Return the changes of a medium that have a severity, in all their styles, at the default severity."""
    names = [name for name in changes.names() if changes.get(name).media == (medium,)]
    return [spelling for name in names for spelling in (name, *(f"{name}(style='{s}')" for s in STYLES.get(name, ())))]


def _measure(title: str, catalog: Catalog, encoder_name: str, spellings: Sequence[str], folder: Path) -> None:
    """Print what each change costs, and what a second run does."""
    encoder, cache = encoders.make(encoder_name), folder / f"{encoder_name} of {len(catalog)} {title}"
    both = {spelling: _with_change(catalog, changes.make(spelling)) for spelling in spellings}
    _encode(encoder, catalog, cache)  # imports, and loads the network
    print(f"\n{title}: {len(catalog)} items; ms per item, unchanged and changed, and their ratio")
    print(f"{'change':32}{'items':>6}  {'processor':^24}  {'clock':^24}")
    over = []
    for spelling, changed in both.items():
        unchanged_times, changed_times = [], []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory(dir=folder) as empty:
                unchanged_times.append(_encode(encoder, catalog, Path(empty)))
            with tempfile.TemporaryDirectory(dir=folder) as filled:
                shutil.copytree(cache, filled, dirs_exist_ok=True)
                changed_times.append(_encode(encoder, changed, Path(filled)))
        cells, ratios = [], []
        for quantity in ("processor", "clock"):
            least = [min(getattr(times, quantity) for times in way) for way in (unchanged_times, changed_times)]
            ratios.append(least[1] / least[0])
            cells.append(f"  {least[0]:7.2f} {least[1]:7.2f} {ratios[-1]:7.2f} ")
        print(f"{spelling:32}{changed_times[0].items:6}{''.join(cells)}", flush=True)
        over += [spelling] if ratios[0] > LIMIT else []
    print(f"more than {LIMIT} times the processor time: {', '.join(over) or 'none'}")
    _print_second_run(list(both.values()), encoder, cache)


def _with_change(catalog: Catalog, change: Change) -> Catalog:
    """Return the items and their changed versions, of which MOST_VARIANTS per item are enough."""
    if not isinstance(change, BackgroundChange):
        return with_changes(catalog, [(catalog.item_column, pa.repeat(change.spelling, len(catalog)))])
    items, spellings = Plates.of(catalog, change).every_variant(np.array([-1]))
    order = pc.sort_indices(items)[: MOST_VARIANTS * len(catalog)]  # as runs encode them: item by item
    return with_changes(catalog, [(items.take(order), spellings.take(order))])


def _encode(encoder: Encoder, catalog: Catalog, cache: Path) -> Times:
    """Encode what a cache lacks, with nothing kept in memory."""
    for cached_function in (changed_items._cached_layers, mixture._read_cached):
        cached_function.cache_clear()
    lufs._measured.clear()
    started = time.perf_counter(), time.process_time()
    features = sp.encode(catalog, encoder, runtime=Runtime(workers=1, cache=cache, progress=False))
    clock, processor = time.perf_counter() - started[0], time.process_time() - started[1]
    assert features.tally is not None
    count = features.tally.encoded
    return Times(1000 * processor / max(count, 1), 1000 * clock / max(count, 1), count)


def _print_second_run(both: Sequence[Catalog], encoder: Encoder, cache: Path) -> None:
    """Encode all changes twice; print how many items each run encoded, and their times."""
    counts, seconds = [], []
    for _ in range(2):
        times = [_encode(encoder, changed, cache) for changed in both]
        counts.append(sum(part.items for part in times))
        seconds.append(sum(part.clock * max(part.items, 1) for part in times) / 1000)
    print(f"all changes: {counts[0]:,} items encoded in {seconds[0]:.1f} s; again: {counts[1]} in {seconds[1]:.1f} s")


def _masked_birds(folder: Path) -> Catalog | None:
    """Cut the foregrounds out of some birds; None if they are not installed."""
    root = birds()
    if root is None:
        return None
    catalog = sp.read_layout(root, "cub", splits=root.parent / "cub-libfewshot.csv").in_split("test")
    return sp.masks.cut(_of_classes(catalog, IMAGES), folder / "masked birds")


def _masked_photos(folder: Path) -> Catalog:
    """Draw photos, with an ellipse as the mask of each."""
    photos = make_photos(folder / "photos", IMAGES, PHOTO)
    mask = Image.new("L", PHOTO)
    ImageDraw.Draw(mask).ellipse((150, 90, 350, 280), fill=255)
    mask.save(folder / "ellipse.png")
    names = pa.repeat((folder / "ellipse.png").as_posix(), len(photos))
    return Catalog(photos.table.append_column(MASK, names), photos.root, photos.record)


def _of_classes(catalog: Catalog, count: int) -> Catalog:
    """Return the first items of CLASSES classes."""
    labels = catalog.table.column("label").to_pylist()
    taken_by_label = dict.fromkeys(sorted(set(labels))[:CLASSES], 0)
    rows = []
    for row, label in enumerate(labels):
        if label in taken_by_label and taken_by_label[label] < count // CLASSES:
            taken_by_label[label] += 1
            rows.append(row)
    return Catalog(catalog.table.take(pa.array(rows)), catalog.root, catalog.record)


def _spread(catalog: Catalog, count: int) -> Catalog:
    """Return items from all over a catalog."""
    rows = np.linspace(0, len(catalog) - 1, count).astype(np.int64)
    return Catalog(catalog.table.take(pa.array(rows)), catalog.root, catalog.record)
