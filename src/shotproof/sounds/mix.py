"""Mixing of the sounds of a catalog by a mapping: to files, or to recipes that are mixed when they are read."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from shotproof.catalog.catalog import MIXTURE_COLUMNS, Catalog
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.limits import SEED
from shotproof.core.options import Checked, option
from shotproof.core.records import CatalogRecord, Source
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.store import file_digests
from shotproof.features.encoder import Encoder, encode
from shotproof.media.clip import Short, write_clip
from shotproof.media.mixture import MARGIN_DB, Mixture, Peak, mix_clips
from shotproof.sounds.loudness import Loudness, measure_loudness
from shotproof.sounds.mapping import PairMapping, read_mapping
from shotproof.sounds.mix_folder import claim_folder
from shotproof.sounds.quality import Separation, Thresholds, cosine_similarities, measure_separation
from shotproof.sounds.recipes import (
    CLEAN,
    Recipe,
    Recordings,
    draw_recipes,
    log_drawn_splits,
    recipe_columns,
    select_mapped,
)

FORMATS = ("flac", "wav")
MANNER_SETTINGS = ("peak", "short")  # settings that are also columns, for mixtures that are mixed when they are read
MIXTURES_PER_CHUNK = 48
SOUNDS, CATALOG = "sounds", "catalog.parquet"


@dataclass(frozen=True)
class MixSettings(Checked):
    """Settings of mixing.

    `dial` is a, and `margin_db` is g, in x = fg + a * 10^((L_fg - L_bg - g) / 20) * bg. `per_background`: number of
    recordings of a foreground to mix with each of its backgrounds; None for all. `clean`: add the foregrounds alone,
    with the context `clean`. `on_the_fly`: write no sounds. `embedding`: encoder that measures how alike two
    recordings are; None for none. `peak`: scale sums that would clip, or always, to full scale. `short`: repeat short
    recordings, or pad them with silence.
    """

    seed: int = option(0, "decides which recordings are paired, and splits that the mapping lacks", within=SEED)
    dial: float = option(1.0, "a: amplitude of the background, 0 for none, 1 as in SpurAudio", least=0)
    margin_db: float = option(MARGIN_DB, "g: decibels by which the foreground is louder", least=-200, most=200)
    per_background: int | None = option(
        None, "recordings of a foreground to mix with each background; all by default", least=1
    )
    clean: bool = option(False, "add the foregrounds alone, with the context 'clean'")
    on_the_fly: bool = option(False, "write the catalog only: the sounds are mixed when they are read")
    format: str = option("flac", "format of the files; the samples are the same", choices=FORMATS)
    embedding: str | Encoder | None = option("logmel", "encoder that measures how alike recordings are, or none")
    peak: Peak = option("clipping", "sums that are scaled to full scale: those that would clip, or all (always)")
    short: Short = option("repeat", "whether to repeat recordings shorter than 5 s, or to add silence (pad)")
    thresholds: Thresholds = field(default_factory=Thresholds)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds.max_alike is not None and self.embedding is None:
            raise InputError("max_alike needs an embedding, e.g. logmel")

    @property
    def spelled(self) -> MixSettings:
        """Return the settings with the embedding as text, for records."""
        return replace(self, embedding=None if self.embedding is None else str(self.embedding))


def mix(
    catalog: Catalog,
    mapping: PairMapping | str | Path,
    folder: str | Path,
    settings: MixSettings | None = None,
    *,
    runtime: Runtime | None = None,
) -> Catalog:
    """Mix the foregrounds of a catalog with their backgrounds. The same call resumes interrupted work.

    Args:
        catalog: recordings of foregrounds and backgrounds
        mapping: mapping of foregrounds to backgrounds: a TOML or CSV file, or the name of a shipped one
        folder: folder for the mixtures and their catalog
        settings: settings of mixing
        runtime: runtime settings

    Returns:
        The catalog that was written. Recordings without a loudness (silent, too short, unreadable) are left out, and
        listed in its record's `skipped`.

    Raises:
        InputError: the mapping does not fit the catalog, or the folder holds other mixtures.
        InsufficientData: no mixture passes the thresholds.
    """
    settings = settings or MixSettings()
    mapping = mapping if isinstance(mapping, PairMapping) else read_mapping(mapping)
    folder = Path(folder)
    runtime = resolve(runtime)
    used = select_mapped(catalog, mapping)
    recordings = Recordings(used, measure_loudness(used.paths, runtime, settings.short))
    recipes = _draw_recipes(recordings, mapping, settings)
    _claim(folder, settings, mapping, recordings, runtime)
    log_drawn_splits(used, mapping, settings.seed)
    cosines = _cosines(recipes, recordings, settings, runtime)
    limit = settings.thresholds.max_alike
    candidates = [row for row, cosine in enumerate(cosines) if limit is None or cosine is None or cosine <= limit]
    mixer = Mixer(used.paths, None if settings.on_the_fly else folder / SOUNDS, settings)
    outcomes = list(runtime.map(mixer, [recipes[row] for row in candidates], title="mixing", chunk=MIXTURES_PER_CHUNK))
    passed = [index for index, outcome in enumerate(outcomes) if outcome.failed is None]
    dropped = Counter(outcome.failed for outcome in outcomes if outcome.failed is not None)
    dropped.update({"alike": len(recipes) - len(candidates)} if len(candidates) < len(recipes) else {})
    if not passed:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(dropped.items()))
        raise InsufficientData(f"no mixture passes the thresholds: {counts}")
    rows = [candidates[index] for index in passed]
    columns = _recipe_columns([recipes[row] for row in rows], recordings, settings)
    columns |= _measure_columns([outcomes[index] for index in passed], [cosines[row] for row in rows], settings)
    record = _make_record(settings, catalog, mapping, recordings, dict(sorted(dropped.items())))
    mixed = _make_catalog(columns, used, folder, settings, record)
    mixed.write(folder / CATALOG)
    return mixed


def expected_mixtures(catalog: Catalog, mapping: PairMapping, folder: Path, settings: MixSettings) -> Catalog:
    """Predict the catalog that `mix` will write, without reading or mixing any sound.

    It has the labels, contexts, splits and sources of all mixtures, including those that will be left out because a
    recording is silent or the mixture fails a threshold.

    Raises:
        InputError: the mapping does not fit the catalog.
    """
    used = select_mapped(catalog, mapping)
    recordings = Recordings(used, [Loudness(0.0)] * len(used))
    columns = _recipe_columns(_draw_recipes(recordings, mapping, settings), recordings, settings)
    record = _make_record(settings, catalog, mapping, recordings, {})
    return _make_catalog(columns, used, folder, replace(settings, on_the_fly=True), record)


def _draw_recipes(recordings: Recordings, mapping: PairMapping, settings: MixSettings) -> list[Recipe]:
    names = ("seed", "dial", "margin_db", "per_background", "clean")
    return draw_recipes(recordings, mapping, **{name: getattr(settings, name) for name in names})


def _recipe_columns(recipes: Sequence[Recipe], recordings: Recordings, settings: MixSettings) -> dict[str, list[Any]]:
    """Return the columns that are known before mixing, including settings that are not at their defaults."""
    settings_columns = {
        name: [getattr(settings, name)] * len(recipes) for name in MANNER_SETTINGS if _is_set(settings, name)
    }
    return recipe_columns(recipes, recordings) | settings_columns


def _is_set(settings: MixSettings, name: str) -> bool:
    return bool(getattr(settings, name) != getattr(MixSettings, name))


@dataclass(frozen=True)
class Outcome:
    """Outcome of one recipe: the scale of its peak, its measures, and the threshold that it fails."""

    peak_scale: float
    separation: Separation | None
    failed: str | None


@dataclass(frozen=True)
class Mixer:
    """Function object that mixes recipes and writes or, without a folder, only measures them; sent to workers."""

    paths: Sequence[Path]
    folder: Path | None
    settings: MixSettings

    def __call__(self, recipe: Recipe) -> Outcome:
        """Mix and measure a recipe; write it if it passes the thresholds and does not exist yet."""
        background = None if recipe.background is None else self.paths[recipe.background]
        foreground = self.paths[recipe.foreground]
        mixture = Mixture(foreground, background, recipe.gain_db or 0.0, self.settings.peak, self.settings.short)
        front, back = mixture.parts()
        separation = None if back is None else measure_separation(front, back)
        failed = None if separation is None else separation.fails(self.settings.thresholds)
        pcm, scale = mix_clips(front, back, self.settings.peak)
        if self.folder is not None and failed is None:
            path = self.folder / f"{recipe.item}.{self.settings.format}"
            if not path.exists():  # an existing file is complete, and has the same settings
                write_clip(path, pcm, self.settings.format)
        return Outcome(scale, separation, failed)


def _cosines(
    recipes: Sequence[Recipe], recordings: Recordings, settings: MixSettings, runtime: Runtime
) -> list[float | None]:
    """Compute the cosine of the two recordings of each recipe; None without a background or without an embedding."""
    mixed = [index for index, recipe in enumerate(recipes) if recipe.background is not None]
    cosines: list[float | None] = [None] * len(recipes)
    if settings.embedding is None or not mixed:
        return cosines
    catalog = recordings.catalog
    rows = [row for row, loudness in enumerate(recordings.loudness) if loudness.problem is None]
    index_of_row = {row: index for index, row in enumerate(rows)}
    usable = Catalog(catalog.table.take(rows), catalog.root, catalog.record)
    features = encode(usable, settings.embedding, runtime=runtime)
    values = features.array[features.rows_of(usable.table.column("item"))]
    fronts = [index_of_row[recipes[index].foreground] for index in mixed]
    backs = [index_of_row[row] for index in mixed if (row := recipes[index].background) is not None]
    for index, cosine in zip(mixed, cosine_similarities(values, fronts, backs).round(4).tolist(), strict=True):
        cosines[index] = cosine
    return cosines


def _measure_columns(
    outcomes: Sequence[Outcome], cosines: Sequence[float | None], settings: MixSettings
) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"peak_scale": [round(outcome.peak_scale, 6) for outcome in outcomes]}
    for name in ("margin_db", "audible", "overwhelmed"):
        values = [getattr(outcome.separation, name, None) for outcome in outcomes]
        columns[name] = [None if value is None else round(value, 4) for value in values]
    return columns if settings.embedding is None else columns | {"alike": list(cosines)}


def _make_catalog(
    columns: dict[str, list[Any]], used: Catalog, folder: Path, settings: MixSettings, record: CatalogRecord
) -> Catalog:
    """Build the mixed catalog, with the folder as its root."""
    numbers = {name: pa.float64() for name in ("gain_db", "peak_scale", "margin_db", "audible", "overwhelmed", "alike")}
    arrays = {name: pa.array(values, numbers.get(name, pa.string())) for name, values in columns.items()}
    no_paths = pa.array([""] * len(columns["item"]), pa.string())
    mixtures = Catalog(pa.table({"item": arrays["item"], "path": no_paths, **arrays}), used.root, record)
    table = mixtures.moved_to(folder).table
    if not settings.on_the_fly:
        paths = pa.array([f"{SOUNDS}/{item}.{settings.format}" for item in columns["item"]], pa.string())
        table = table.set_column(table.column_names.index("path"), "path", paths)
    return Catalog(table, folder, record)


def _make_record(
    settings: MixSettings, catalog: Catalog, mapping: PairMapping, recordings: Recordings, dropped: dict[str, int]
) -> CatalogRecord:
    return CatalogRecord(
        name=catalog.record.name and f"{catalog.record.name}, mixed",
        sources={"catalog": Source(catalog.digest, catalog.record.name), "mapping": Source(mapping.digest)},
        license=catalog.record.license,
        citation=catalog.record.citation,
        clean_value=CLEAN if settings.clean else None,
        path_columns=MIXTURE_COLUMNS,
        mix={
            key: value
            for key, value in asdict(settings.spelled).items()
            if key != "on_the_fly" and (key not in MANNER_SETTINGS or _is_set(settings, key))
        },
        skipped=tuple(recordings.skipped),
        dropped=dropped,
    )


def _claim(folder: Path, settings: MixSettings, mapping: PairMapping, recordings: Recordings, runtime: Runtime) -> None:
    """Write the settings and sources of the sounds to the folder. Other settings in the folder are an error."""
    pairs = zip(recordings.catalog.paths, recordings.loudness, strict=True)
    usable = [(path, loudness.lufs) for path, loudness in pairs if loudness.lufs is not None]
    digests = file_digests([path for path, _ in usable], runtime).to_pylist()
    content = sorted(f"{digest} {lufs:.4f}" for digest, (_, lufs) in zip(digests, usable, strict=True))
    current = {
        **{name: getattr(settings, name) for name in ("seed", "dial", "margin_db", *MANNER_SETTINGS)},
        "mapping": mapping.digest,
        "recordings": hashlib.sha256("\n".join(content).encode()).hexdigest()[:32],
    }
    claim_folder(folder, current)
