"""From a catalog of sounds and a mapping to mixtures: files, or recipes made on the fly, and their catalog."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Starved, UnknownName
from shotproof.features.cache import file_digests
from shotproof.features.encoder import default_cache, encode
from shotproof.processes import in_processes
from shotproof.progress import progress
from shotproof.sounds.clip import RATE, soundfile_module
from shotproof.sounds.loudness import measure_loudness
from shotproof.sounds.mapping import PairMapping, read_mapping
from shotproof.sounds.mixing import MARGIN_DB, mix_clips
from shotproof.sounds.mixture import Mixture
from shotproof.sounds.quality import Separation, Thresholds, alike, separation
from shotproof.sounds.recipes import CLEAN, Recipe, Recordings, draw_recipes, labelled, recipe_columns
from shotproof.tables import Meta, whole_file, write_text

FORMATS = ("flac", "wav")
PATH_COLUMNS = ["foreground", "background"]
MIXTURES_PER_CHUNK = 48
SOUNDS, CATALOG, SETTINGS = "sounds", "catalog.parquet", "mix.json"


@dataclass(frozen=True)
class MixSettings:
    """What is mixed and how.

    `dial` is a, and `margin_db` is g, of x = fg + a * 10^((L_fg - L_bg - g) / 20) * bg. `per_background`: so many
    recordings of a foreground with each of its backgrounds; None for all. `clean`: the foregrounds alone as well, with
    the context `clean`. `on_the_fly`: write no sounds. `embedding`: the encoder that says what is alike; None for none.
    """

    seed: int = 0
    dial: float = 1.0
    margin_db: float = MARGIN_DB
    per_background: int | None = None
    clean: bool = False
    on_the_fly: bool = False
    format: str = "flac"
    embedding: str | None = "logmel"
    thresholds: Thresholds = field(default_factory=Thresholds)

    def __post_init__(self) -> None:
        if not 0 <= self.dial < math.inf:
            raise InputError(f"dial is {self.dial:g}: expected a number of 0 or more")
        if not math.isfinite(self.margin_db):
            raise InputError(f"margin is {self.margin_db:g} dB: expected a finite number")
        if self.per_background is not None and self.per_background < 1:
            raise InputError(f"per background: {self.per_background} recordings, expected 1 or more")
        if self.format not in FORMATS:
            raise UnknownName("sound format", self.format, FORMATS)
        if self.thresholds.max_alike is not None and self.embedding is None:
            raise InputError("max_alike needs an embedding, e.g. logmel")


def mix(
    catalog: Catalog,
    mapping: PairMapping | str | Path,
    folder: str | Path,
    settings: MixSettings | None = None,
    *,
    cache: str | Path | bool | None = True,
    workers: int | None = None,
) -> Catalog:
    """Mix the foregrounds of a catalog with their backgrounds into a folder; returns the catalog written there.

    Recordings without a loudness (silent, too short, unreadable) are left out, and listed in the metadata's `skipped`.
    The same call continues work that was interrupted.
    """
    settings = settings or MixSettings()
    mapping = mapping if isinstance(mapping, PairMapping) else read_mapping(mapping)
    folder = Path(folder)
    kept = default_cache() if cache is True else Path(cache) if cache else None
    used = labelled(catalog, mapping)
    recordings = Recordings(used, measure_loudness(used.paths, kept, workers))
    recipes = draw_recipes(
        recordings,
        mapping,
        seed=settings.seed,
        dial=settings.dial,
        margin_db=settings.margin_db,
        per_background=settings.per_background,
        clean=settings.clean,
    )
    _claim(folder, settings, mapping, recordings, kept)
    cosines = _cosines(recipes, recordings, settings, kept, workers)
    limit = settings.thresholds.max_alike
    unlike = [row for row, cosine in enumerate(cosines) if limit is None or cosine is None or cosine <= limit]
    made = list(_make([recipes[row] for row in unlike], used, folder, settings, workers))
    good = [place for place, outcome in enumerate(made) if outcome.failed is None]
    dropped = Counter(outcome.failed for outcome in made if outcome.failed is not None)
    dropped.update({"alike": len(recipes) - len(unlike)} if len(unlike) < len(recipes) else {})
    if not good:
        raise Starved(f"no mixture keeps to the thresholds: {_counts(dropped)}")
    rows = [unlike[place] for place in good]
    columns = recipe_columns([recipes[row] for row in rows], recordings)
    columns |= _measures([made[place] for place in good], [cosines[row] for row in rows], settings)
    meta = _meta(settings, catalog, mapping, recordings, dict(sorted(dropped.items())))
    mixed = _catalog(columns, used, folder, settings, meta)
    mixed.write(folder / CATALOG)
    return mixed


@dataclass(frozen=True)
class Outcome:
    """What came of one recipe: the scale that kept it from clipping, its measures, the threshold that it broke."""

    peak_scale: float
    separation: Separation | None
    failed: str | None


class Mixer:
    """Makes mixtures and writes them; sent to worker processes."""

    def __init__(self, paths: Sequence[Path], folder: Path | None, settings: MixSettings) -> None:
        self.paths = paths
        self.folder = folder  # None: measure only
        self.settings = settings

    def __call__(self, recipe: Recipe) -> Outcome:
        """Mix, measure and, where it passes and is not there yet, write."""
        background = None if recipe.background is None else self.paths[recipe.background]
        mixture = Mixture(self.paths[recipe.foreground], background, recipe.gain_db or 0.0)
        front, back = mixture.parts()
        measured = None if back is None else separation(front, back)
        failed = None if measured is None else measured.fails(self.settings.thresholds)
        pcm, scale = mix_clips(front, back)
        if self.folder is not None and failed is None:
            path = self.folder / f"{recipe.item}.{self.settings.format}"
            if not path.exists():  # files appear whole, and the folder holds one set of settings
                with whole_file(path) as temporary:
                    soundfile_module().write(temporary, pcm, RATE, "PCM_16", format=self.settings.format)
        return Outcome(scale, measured, failed)


def _make(
    recipes: Sequence[Recipe], used: Catalog, folder: Path, settings: MixSettings, workers: int | None
) -> Iterator[Outcome]:
    mixer = Mixer(used.paths, None if settings.on_the_fly else folder / SOUNDS, settings)
    with progress("mixing", len(recipes)) as advance:
        for outcome in in_processes(mixer, recipes, workers or os.cpu_count() or 1, MIXTURES_PER_CHUNK):
            yield outcome
            advance(1)


def _cosines(
    recipes: Sequence[Recipe], recordings: Recordings, settings: MixSettings, cache: Path | None, workers: int | None
) -> list[float | None]:
    """How alike the two recordings of each recipe are; None without a background or without an embedding."""
    mixed = [place for place, recipe in enumerate(recipes) if recipe.background is not None]
    cosines: list[float | None] = [None] * len(recipes)
    if settings.embedding is None or not mixed:
        return cosines
    catalog = recordings.catalog
    rows = [row for row, measured in enumerate(recordings.measured) if measured.problem is None]
    place_of = {row: place for place, row in enumerate(rows)}
    usable = Catalog(catalog.table.take(rows), catalog.root, catalog.meta)
    features = encode(usable, settings.embedding, cache=cache or False, workers=workers)
    values = features.array[features.rows_of(usable.items)]
    fronts = [place_of[recipes[place].foreground] for place in mixed]
    backs = [place_of[row] for place in mixed if (row := recipes[place].background) is not None]
    for place, cosine in zip(mixed, alike(values, fronts, backs).round(4).tolist(), strict=True):
        cosines[place] = cosine
    return cosines


def _measures(
    outcomes: Sequence[Outcome], cosines: Sequence[float | None], settings: MixSettings
) -> dict[str, list[Any]]:
    measured = [outcome.separation for outcome in outcomes]
    columns: dict[str, list[Any]] = {"peak_scale": [round(outcome.peak_scale, 6) for outcome in outcomes]}
    for name in ("margin_db", "audible", "overwhelmed"):
        values = [None if one is None else getattr(one, name) for one in measured]
        columns[name] = [None if value is None else round(value, 4) for value in values]
    return columns if settings.embedding is None else columns | {"alike": list(cosines)}


def _catalog(columns: dict[str, list[Any]], used: Catalog, folder: Path, settings: MixSettings, meta: Meta) -> Catalog:
    """The mixed catalog, its root the folder."""
    numbers = {name: pa.float64() for name in ("gain_db", "peak_scale", "margin_db", "audible", "overwhelmed", "alike")}
    arrays = {name: pa.array(values, numbers.get(name, pa.string())) for name, values in columns.items()}
    none = pa.array([""] * len(columns["item"]), pa.string())
    from_used = Catalog(pa.table({"item": arrays["item"], "path": none, **arrays}), used.root, meta)
    table = from_used.moved_to(folder).table
    if not settings.on_the_fly:
        paths = pa.array([f"{SOUNDS}/{item}.{settings.format}" for item in columns["item"]], pa.string())
        table = table.set_column(table.column_names.index("path"), "path", paths)
    return Catalog(table, folder, meta)


def _meta(
    settings: MixSettings, catalog: Catalog, mapping: PairMapping, recordings: Recordings, dropped: dict[str, int]
) -> Meta:
    made_by = {"mix": {key: value for key, value in asdict(settings).items() if key != "on_the_fly"}}
    meta: Meta = {"made_by": made_by, "from": {"catalog": catalog.digest, "mapping": _mapping_digest(mapping)}}
    meta |= {"path_columns": PATH_COLUMNS, "skipped": recordings.skipped, "dropped": dropped}
    meta |= {"clean_value": CLEAN} if settings.clean else {}
    return meta | {key: catalog.meta[key] for key in ("licence", "citation") if key in catalog.meta}


def _claim(
    folder: Path, settings: MixSettings, mapping: PairMapping, recordings: Recordings, cache: Path | None
) -> None:
    """Say in the folder what its sounds are made from; refuse a folder whose sounds are made otherwise."""
    measured = zip(recordings.catalog.paths, recordings.measured, strict=True)
    usable = [(path, one.lufs) for path, one in measured if one.lufs is not None]
    digests = file_digests([path for path, _ in usable], cache).to_pylist()
    content = sorted(f"{digest} {lufs:.4f}" for digest, (_, lufs) in zip(digests, usable, strict=True))
    chosen = {
        "seed": settings.seed,
        "dial": settings.dial,
        "margin_db": settings.margin_db,
        "mapping": _mapping_digest(mapping),
        "recordings": hashlib.sha256("\n".join(content).encode()).hexdigest()[:32],
    }
    path = folder / SETTINGS
    if path.is_file():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            before = None
        if not isinstance(before, dict):
            raise InputError(f"{path} is not what a run of mixing leaves: choose another folder")
        for key, value in chosen.items():
            if before.get(key) != value:
                raise InputError(
                    f"{folder} holds mixtures made with another {key} ({before.get(key)}, now {value}): "
                    "choose another folder, or remove it"
                )
    write_text(path, json.dumps(chosen, indent=2) + "\n")


def _mapping_digest(mapping: PairMapping) -> str:
    text = json.dumps(asdict(mapping), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _counts(dropped: Counter[str]) -> str:
    return ", ".join(f"{count:,} {why}" for why, count in sorted(dropped.items()))
