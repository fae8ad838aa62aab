"""From a catalog of sounds and a mapping to mixtures: files, or recipes made on the fly, and their catalog."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from shotproof.catalog.catalog import MIXTURE_COLUMNS, Catalog
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.limits import SEED
from shotproof.core.options import Checked, option
from shotproof.core.plain_values import typed
from shotproof.core.records import CatalogRecord, Source
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.storage.files import read_json
from shotproof.core.storage.store import file_digests
from shotproof.core.storage.whole_files import write_text
from shotproof.core.tables import check_output
from shotproof.features.encoder import Encoder, encode
from shotproof.media.clip import Short, write_clip
from shotproof.media.mixture import MARGIN_DB, Mixture, Peak, mix_clips
from shotproof.sounds.loudness import Loudness, measure_loudness
from shotproof.sounds.mapping import PairMapping, read_mapping
from shotproof.sounds.quality import Separation, Thresholds, alike, separation
from shotproof.sounds.recipes import CLEAN, Recipe, Recordings, draw_recipes, labeled, recipe_columns

logger = logging.getLogger("shotproof")

FORMATS = ("flac", "wav")
MANNER = ("peak", "short")  # settings that are columns, since mixtures made on the fly need them
MIXTURES_PER_CHUNK = 48
SOUNDS, CATALOG, SETTINGS = "sounds", "catalog.parquet", "mix.json"


@dataclass(frozen=True)
class MixSettings(Checked):
    """What is mixed and how.

    `dial` is a, and `margin_db` is g, of x = fg + a * 10^((L_fg - L_bg - g) / 20) * bg. `per_background`: so many
    recordings of a foreground with each of its backgrounds; None for all. `clean`: the foregrounds alone as well, with
    the context `clean`. `on_the_fly`: write no sounds. `embedding`: the encoder that says what is alike; None for none.
    `peak`: scale sums that would clip, or always, to full scale. `short`: repeat short recordings, or pad them with
    silence.
    """

    seed: int = option(0, "decides which recordings meet, and splits that the mapping leaves open", within=SEED)
    dial: float = option(1.0, "a: the background's amplitude, 0 for none, 1 as in SpurAudio", least=0)
    margin_db: float = option(MARGIN_DB, "g: decibels by which the foreground is louder", least=-200, most=200)
    per_background: int | None = option(
        None, "recordings of a foreground to mix with each background; all unless given", least=1
    )
    clean: bool = option(False, "also the foregrounds alone, with the context 'clean'")
    on_the_fly: bool = option(False, "write the catalog only: the sounds are mixed when they are read")
    format: str = option("flac", "of the files; the samples are the same", choices=FORMATS)
    embedding: str | Encoder | None = option("logmel", "the encoder that says which recordings are alike, or none")
    peak: Peak = option("clipping", "sums that are brought to full scale: those that would clip, or all (always)")
    short: Short = option("repeat", "recordings of less than 5 s are repeated, or followed by silence (pad)")
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
    """Mix the foregrounds of a catalog with their backgrounds. The same call continues work that was interrupted.

    Args:
        catalog: recordings, foregrounds and backgrounds
        mapping: which foreground is mixed with which backgrounds: a TOML or CSV file, or the name of one that comes
            along
        folder: where the mixtures and their catalog are written
        settings: what is mixed and how
        runtime: how to compute

    Returns:
        The catalog that was written. Recordings without a loudness (silent, too short, unreadable) are left out, and
        listed in its record's `skipped`.

    Raises:
        InputError: the mapping and the catalog do not fit, or the folder holds other mixtures.
        InsufficientData: no mixture keeps to the thresholds.

    Example:
        >>> import tempfile
        >>> from shotproof.worlds.sounds import SoundsWorld
        >>> world = SoundsWorld(foregrounds=1, backgrounds=1, items=1)
        >>> recordings = world.write(tempfile.mkdtemp())
        >>> settings = MixSettings(on_the_fly=True, embedding=None)
        >>> mix(recordings, world.mapping(), tempfile.mkdtemp(), settings).table.column("context").to_pylist()
        ['rumble']
    """
    settings = settings or MixSettings()
    mapping = mapping if isinstance(mapping, PairMapping) else read_mapping(mapping)
    folder = Path(folder)
    runtime = resolve(runtime)
    used = labeled(catalog, mapping)
    recordings = Recordings(used, measure_loudness(used.paths, runtime, settings.short))
    recipes = _recipes(recordings, mapping, settings)
    _claim(folder, settings, mapping, recordings, runtime)
    if not mapping.splits and len(used.splits) == 1:
        classes = Counter(mapping.split_of(settings.seed).values())
        logger.warning(
            "the mapping has no [splits]: its %d foregrounds are divided by the seed into %s",
            classes.total(),
            ", ".join(f"{count} for {name}" for name, count in sorted(classes.items())),
        )
    cosines = _cosines(recipes, recordings, settings, runtime)
    limit = settings.thresholds.max_alike
    unlike = [row for row, cosine in enumerate(cosines) if limit is None or cosine is None or cosine <= limit]
    mixer = Mixer(used.paths, None if settings.on_the_fly else folder / SOUNDS, settings)
    made = list(runtime.map(mixer, [recipes[row] for row in unlike], title="mixing", chunk=MIXTURES_PER_CHUNK))
    good = [place for place, clip in enumerate(made) if clip.failed is None]
    dropped = Counter(clip.failed for clip in made if clip.failed is not None)
    dropped.update({"alike": len(recipes) - len(unlike)} if len(unlike) < len(recipes) else {})
    if not good:
        counts = ", ".join(f"{count:,} {why}" for why, count in sorted(dropped.items()))
        raise InsufficientData(f"no mixture keeps to the thresholds: {counts}")
    rows = [unlike[place] for place in good]
    columns = _columns([recipes[row] for row in rows], recordings, settings)
    columns |= _measures([made[place] for place in good], [cosines[row] for row in rows], settings)
    record = _record(settings, catalog, mapping, recordings, dict(sorted(dropped.items())))
    mixed = _catalog(columns, used, folder, settings, record)
    mixed.write(folder / CATALOG)
    return mixed


def expected_mixtures(catalog: Catalog, mapping: PairMapping, folder: Path, settings: MixSettings) -> Catalog:
    """The catalog that `mix` will write, as far as it can be told without listening: nothing is read or made.

    It has the labels, contexts, splits and sources of all mixtures, also of those that will be left out since a
    recording is silent or a threshold is broken.

    Raises:
        InputError: the mapping and the catalog do not fit.
    """
    used = labeled(catalog, mapping)
    recordings = Recordings(used, [Loudness(0.0)] * len(used))
    columns = _columns(_recipes(recordings, mapping, settings), recordings, settings)
    record = _record(settings, catalog, mapping, recordings, {})
    return _catalog(columns, used, folder, replace(settings, on_the_fly=True), record)


def _recipes(recordings: Recordings, mapping: PairMapping, settings: MixSettings) -> list[Recipe]:
    names = ("seed", "dial", "margin_db", "per_background", "clean")
    return draw_recipes(recordings, mapping, **{name: getattr(settings, name) for name in names})


def _columns(recipes: Sequence[Recipe], recordings: Recordings, settings: MixSettings) -> dict[str, list[Any]]:
    """The columns that are known before anything is mixed; how it is mixed, where that is not the default."""
    manner = {name: [getattr(settings, name)] * len(recipes) for name in MANNER if _is_set(settings, name)}
    return recipe_columns(recipes, recordings) | manner


def _is_set(settings: MixSettings, name: str) -> bool:
    return bool(getattr(settings, name) != getattr(MixSettings, name))


@dataclass(frozen=True)
class MadeMixture:
    """What came of one recipe: the scale that brought it to its peak, its measures, the threshold that it broke."""

    peak_scale: float
    separation: Separation | None
    failed: str | None


@dataclass(frozen=True)
class Mixer:
    """Makes mixtures and writes them (without a folder, only measures them); sent to worker processes."""

    paths: Sequence[Path]
    folder: Path | None
    settings: MixSettings

    def __call__(self, recipe: Recipe) -> MadeMixture:
        """Mix, measure and, where it passes and is not there yet, write."""
        background = None if recipe.background is None else self.paths[recipe.background]
        manner = (self.settings.peak, self.settings.short)
        mixture = Mixture(self.paths[recipe.foreground], background, recipe.gain_db or 0.0, *manner)
        front, back = mixture.parts()
        measured = None if back is None else separation(front, back)
        failed = None if measured is None else measured.fails(self.settings.thresholds)
        pcm, scale = mix_clips(front, back, self.settings.peak)
        if self.folder is not None and failed is None:
            path = self.folder / f"{recipe.item}.{self.settings.format}"
            if not path.exists():  # files appear whole, and the folder holds one set of settings
                write_clip(path, pcm, self.settings.format)
        return MadeMixture(scale, measured, failed)


def _cosines(
    recipes: Sequence[Recipe], recordings: Recordings, settings: MixSettings, runtime: Runtime
) -> list[float | None]:
    """How alike the two recordings of each recipe are; None without a background or without an embedding."""
    mixed = [place for place, recipe in enumerate(recipes) if recipe.background is not None]
    cosines: list[float | None] = [None] * len(recipes)
    if settings.embedding is None or not mixed:
        return cosines
    catalog = recordings.catalog
    rows = [row for row, loudness in enumerate(recordings.loudness) if loudness.problem is None]
    place_of = {row: place for place, row in enumerate(rows)}
    usable = Catalog(catalog.table.take(rows), catalog.root, catalog.record)
    features = encode(usable, settings.embedding, runtime=runtime)
    values = features.array[features.rows_of(usable.table.column("item"))]
    fronts = [place_of[recipes[place].foreground] for place in mixed]
    backs = [place_of[row] for place in mixed if (row := recipes[place].background) is not None]
    for place, cosine in zip(mixed, alike(values, fronts, backs).round(4).tolist(), strict=True):
        cosines[place] = cosine
    return cosines


def _measures(
    made: Sequence[MadeMixture], cosines: Sequence[float | None], settings: MixSettings
) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"peak_scale": [round(clip.peak_scale, 6) for clip in made]}
    for name in ("margin_db", "audible", "overwhelmed"):
        values = [getattr(clip.separation, name, None) for clip in made]
        columns[name] = [None if value is None else round(value, 4) for value in values]
    return columns if settings.embedding is None else columns | {"alike": list(cosines)}


def _catalog(
    columns: dict[str, list[Any]], used: Catalog, folder: Path, settings: MixSettings, record: CatalogRecord
) -> Catalog:
    """The mixed catalog, its root the folder."""
    numbers = {name: pa.float64() for name in ("gain_db", "peak_scale", "margin_db", "audible", "overwhelmed", "alike")}
    arrays = {name: pa.array(values, numbers.get(name, pa.string())) for name, values in columns.items()}
    none = pa.array([""] * len(columns["item"]), pa.string())
    from_used = Catalog(pa.table({"item": arrays["item"], "path": none, **arrays}), used.root, record)
    table = from_used.moved_to(folder).table
    if not settings.on_the_fly:
        paths = pa.array([f"{SOUNDS}/{item}.{settings.format}" for item in columns["item"]], pa.string())
        table = table.set_column(table.column_names.index("path"), "path", paths)
    return Catalog(table, folder, record)


def _record(
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
            if key != "on_the_fly" and (key not in MANNER or _is_set(settings, key))
        },
        skipped=tuple(recordings.skipped),
        dropped=dropped,
    )


def _claim(folder: Path, settings: MixSettings, mapping: PairMapping, recordings: Recordings, runtime: Runtime) -> None:
    """Say in the folder what its sounds are made from; refuse a folder whose sounds are made otherwise."""
    pairs = zip(recordings.catalog.paths, recordings.loudness, strict=True)
    usable = [(path, loudness.lufs) for path, loudness in pairs if loudness.lufs is not None]
    digests = file_digests([path for path, _ in usable], runtime).to_pylist()
    content = sorted(f"{digest} {lufs:.4f}" for digest, (_, lufs) in zip(digests, usable, strict=True))
    chosen = {
        **{name: getattr(settings, name) for name in ("seed", "dial", "margin_db", *MANNER)},
        "mapping": mapping.digest,
        "recordings": hashlib.sha256("\n".join(content).encode()).hexdigest()[:32],
    }
    path = folder / SETTINGS
    check_output(path)
    if path.is_file():
        try:
            before = typed(read_json(path, str(path)), Mapping[str, Any]) or {}
        except InputError as error:
            raise InputError(f"{path} is not what a run of mixing leaves: choose another folder") from error
        for key, value in chosen.items():
            if before.get(key) != value:
                raise InputError(
                    f"{folder} holds mixtures made with another {key} ({before.get(key)}, now {value}): "
                    "choose another folder, or remove it"
                )
    write_text(path, json.dumps(chosen, indent=2) + "\n")
