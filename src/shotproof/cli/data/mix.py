"""`shotproof mix`: foregrounds on other backgrounds, of sounds and of images, which are cut out first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import AsJson, Seed, Settings, Split, read_settings
from shotproof.cli.console import print_json, print_table, printed_notes, say
from shotproof.core import limits
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.catalog.catalog import Catalog
    from shotproof.core.options import Checked
    from shotproof.masks.cut_images import CutSettings
    from shotproof.masks.mix_images import ImageMixSettings
    from shotproof.sounds.mix import MixSettings

MAX_SHOWN = 10
MAX_NAMED = 3
NO_EMBEDDING = "none"
CUT_FOLDER = "cut"  # folder of the masks, if the images are also mixed


def mix(
    catalog: Annotated[
        Path, typer.Argument(help="Catalog of sounds or images, catalog.parquet: foregrounds and backgrounds.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write: catalog.parquet, and the mixtures or masks.")
    ],
    mapping: Annotated[
        str | None,
        typer.Option(help="TOML or CSV file with the backgrounds of each foreground, or esc50 (built in)."),
    ] = None,
    cutter: Annotated[
        str | None,
        typer.Option(help="Images: cut the foregrounds out first, with grabcut, onnx:FILE or hf:MODEL."),
    ] = None,
    masks: Annotated[
        Path | None, typer.Option(help="Images: folder of existing masks, named as the images, instead of --cutter.")
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="Page to write with what was cut out, and what was left out and why.")
    ] = None,
    split: Split = None,
    seed: Seed = 0,
    dial: Annotated[
        float, typer.Option(help="Sounds: amplitude of the background: 0 for none, 1 as in SpurAudio.")
    ] = 1.0,
    gain: Annotated[float, typer.Option(help="Sounds: decibels by which the foreground is louder, at dial 1.")] = 8.0,
    per_background: Annotated[
        int | None,
        typer.Option(
            min=1, max=limits.MOST, help="Items of each foreground to mix with each background. Default: all."
        ),
    ] = None,
    clean: Annotated[
        bool, typer.Option("--clean", help="Also add the foregrounds without a background, as context 'clean'.")
    ] = False,
    on_the_fly: Annotated[
        bool, typer.Option("--on-the-fly", help="Sounds: write only the catalog, and mix when items are read.")
    ] = False,
    setting: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Put foregrounds on other backgrounds, and create a catalog with contexts; or cut the foregrounds of images out.

    What cannot be used is left out and listed. After an interruption, run the same command again to continue. Settings
    for --set, of sounds: embedding, format, peak, short, min_audible, max_overwhelmed, max_alike; of images that are
    cut out: box_side, min_area, max_area, min_box_area, max_pieces, max_border, min_background, min_agreement.

    shotproof mix catalog.parquet --mapping esc50 --seed 0 -o mixed/

    shotproof mix catalog.parquet --cutter grabcut --sheet sheet.html -o masked/
    """
    import time

    from shotproof.catalog.catalog import Catalog

    started = time.perf_counter()
    items = Catalog.read(catalog)
    items = items if split is None else items.in_split(split)
    flags = {"seed": seed, "per_background": per_background, "clean": clean}
    sound_flags = {"dial": dial, "margin_db": gain, "on_the_fly": on_the_fly}
    values = read_settings(setting or [])
    _require_consistent(catalog, items, mapping, cutter, masks, sheet, flags, sound_flags)
    is_cut = cutter is not None or masks is not None
    if items.medium != "image" and not is_cut:
        assert mapping is not None
        result = _mix_sounds(items, mapping, output, values, {**flags, **sound_flags}, as_json)
    else:
        cut_settings = _build_cut_settings(values, cutter, masks, is_cut)
        result = _mix_images(items, mapping, output, flags, cut_settings if is_cut else None, sheet, as_json)
    if not as_json:
        say(f"{output}: {counted(len(result), result.medium or 'item')}, {time.perf_counter() - started:.1f} s")


def _mix_sounds(
    items: Catalog, mapping: str, output: Path, values: dict[str, Any], flags: Mapping[str, Any], as_json: bool
) -> Catalog:
    """Mix sounds with backgrounds, and print the quality of the mixtures and what was left out."""
    from shotproof.masks.mix import mix as mix_items

    mixed = mix_items(items, mapping, output, _build_settings(values, flags))
    if as_json:
        print_json(_to_json(mixed))
    else:
        _print_quality(mixed)
        _print_left_out(mixed)
    return mixed


def _mix_images(
    items: Catalog,
    mapping: str | None,
    output: Path,
    flags: Mapping[str, Any],
    cut_settings: CutSettings | None,
    sheet: Path | None,
    as_json: bool,
) -> Catalog:
    """Cut the foregrounds of images out, mix them with backgrounds, or both, and print what there is."""
    from shotproof.masks.mix import mix as mix_items
    from shotproof.sounds.recipes import select_mapped

    pairs = None if mapping is None else _read_pairs(mapping)
    if pairs is not None:
        select_mapped(items, pairs)  # before images are cut for minutes
    result = items
    if cut_settings is not None:
        folder = output if pairs is None else output / CUT_FOLDER
        labels = None if pairs is None else pairs.foregrounds
        result = _cut(items, folder, cut_settings, labels, sheet, quiet=as_json)
    if pairs is not None:
        result = mix_items(result, pairs, output, _image_settings(flags))
    if as_json:
        print_json(_images_to_json(result))
    elif pairs is not None:
        _print_counts(result)
        _print_left_out(result)
    return result


def _require_consistent(
    file: Path,
    items: Catalog,
    mapping: str | None,
    cutter: str | None,
    masks: Path | None,
    sheet: Path | None,
    flags: Mapping[str, Any],
    sound_flags: Mapping[str, Any],
) -> None:
    """Raise an error if the flags do not fit together, or not the items of the catalog."""
    from shotproof.core.errors import InputError
    from shotproof.sounds.mix import MixSettings

    is_cut = cutter is not None or masks is not None
    if items.medium == "sound" and (is_cut or sheet is not None):
        flag = "--cutter" if cutter is not None else "--masks" if masks is not None else "--sheet"
        raise InputError(f"{flag} is for images, but {file} holds sounds: mix them with --mapping FILE alone")
    if cutter is not None and masks is not None:
        raise InputError("expected either --cutter or --masks, not both")
    if mapping is None and not is_cut:
        expected = {
            "image": "--cutter grabcut or --masks FOLDER to cut foregrounds out, --mapping FILE to mix, or both",
            "sound": "--mapping FILE, e.g. --mapping esc50",
        }.get(items.medium or "", "--mapping FILE to mix, or --cutter grabcut to cut the foregrounds of images out")
        raise InputError(f"nothing to do: expected {expected}")
    if sheet is not None and not is_cut:
        raise InputError("--sheet shows what is cut out: add --cutter grabcut or --masks FOLDER")
    if items.medium == "image" or is_cut:
        names = {"margin_db": "--gain", "dial": "--dial", "on_the_fly": "--on-the-fly"}
        for name, value in sound_flags.items():
            if value != getattr(MixSettings, name):
                raise InputError(
                    f"{names[name]} is for sounds, but {file} holds images: expected --seed, --per-background, --clean"
                )
    if mapping is None:
        for name, value in flags.items():
            if value not in (None, False, 0):
                raise InputError(f"--{name.replace('_', '-')} is for mixing: add --mapping FILE")


def _read_pairs(mapping: str) -> Any:
    """Read the mapping."""
    from shotproof.sounds.mapping import read_mapping

    return read_mapping(mapping)


def _cut(
    items: Catalog, folder: Path, settings: CutSettings, labels: list[str] | None, sheet: Path | None, quiet: bool
) -> Catalog:
    """Cut the foregrounds out, write the contact sheet, and print what was left out."""
    from shotproof.core.tables import check_output
    from shotproof.masks.cut_images import CATALOG, find_masks, write_masks
    from shotproof.report.pages.contact_sheet import write_contact_sheet

    for file in (folder / CATALOG, *([] if sheet is None else [sheet])):
        check_output(file)
    with printed_notes():
        results = find_masks(items, settings, labels=labels)
    if sheet is not None:  # before an error about masks of which none is good
        write_contact_sheet(sheet, items, results)
    masked = write_masks(items, results, folder, settings)
    if not quiet:
        tried = [result for result in results if result.png or result.failure]
        successful = [result for result in tried if result.failure is None]
        say(f"{len(successful):,} of {counted(len(tried), 'image')} have a good mask")
        names: dict[str, list[str]] = {}
        for item, result in zip(items.items, results, strict=True):
            if result.failure is not None:
                names.setdefault(result.reason, []).append(item)
        for reason, left_out in sorted(names.items(), key=lambda entry: (-len(entry[1]), entry[0])):
            more = f" and {len(left_out) - MAX_NAMED:,} more" if len(left_out) > MAX_NAMED else ""
            listed = ", ".join(left_out[:MAX_NAMED])
            say(f"left out  {counted(len(left_out), 'image')}: {reason}: {listed}{more}", err=True)
        if sheet is not None:
            say(f"{sheet}: contact sheet")
    return masked


def _build_cut_settings(values: dict[str, Any], cutter: str | None, masks: Path | None, is_cut: bool) -> CutSettings:
    """Build the settings of cutting from the flags and from --set."""
    from shotproof.core.errors import InputError, UnknownName
    from shotproof.masks.cut_images import CutSettings
    from shotproof.masks.mask_quality import MaskThresholds
    from shotproof.sounds.mix import MixSettings
    from shotproof.sounds.quality import Thresholds

    threshold_names = [option.name for option in MaskThresholds.options()]
    known_names = ["box_side", *threshold_names]
    sound_names = [option.name for option in (*MixSettings.options(), *Thresholds.options())]
    for name in values:
        if name in sound_names:
            raise InputError(
                f"--set {name} is for sounds, but the catalog holds images: known: {', '.join(known_names)}"
            )
        if name not in known_names:
            raise UnknownName("setting", name, known_names)
        if not is_cut:
            raise InputError(f"--set {name} is for cutting: add --cutter grabcut or --masks FOLDER")
    _check_settings(values, CutSettings, MaskThresholds)
    thresholds = MaskThresholds(**{name: values[name] for name in threshold_names if name in values})
    options = {"cutter": cutter} if cutter is not None else {}
    return CutSettings(**options, masks=masks, box_side=values.get("box_side"), thresholds=thresholds)


def _image_settings(flags: Mapping[str, Any]) -> ImageMixSettings:
    """Build the settings of mixing images from the flags."""
    from shotproof.masks.mix_images import ImageMixSettings

    return ImageMixSettings(**flags)


def _build_settings(values: dict[str, Any], flags: Mapping[str, Any]) -> MixSettings:
    """Build the settings from the flags and from --set."""
    from shotproof.core.errors import InputError, UnknownName
    from shotproof.masks.mask_quality import MaskThresholds
    from shotproof.sounds.mix import MixSettings
    from shotproof.sounds.quality import Thresholds

    threshold_names = [option.name for option in Thresholds.options()]
    known_names = [*(option.name for option in MixSettings.options() if option.name != "thresholds"), *threshold_names]
    for name in values:
        if name in ("box_side", *(option.name for option in MaskThresholds.options())):
            raise InputError(f"--set {name} is for images that are cut out (--cutter), but the catalog holds sounds")
        if name not in known_names:
            raise UnknownName("setting", name, known_names)
    if values.get("embedding") == NO_EMBEDDING:
        values["embedding"] = None
    _check_settings(values, MixSettings, Thresholds)
    thresholds = Thresholds(**{name: values.pop(name) for name in threshold_names if name in values})
    return MixSettings(**{**values, **flags}, thresholds=thresholds)


def _check_settings(values: Mapping[str, Any], *settings: type[Checked]) -> None:
    """Check the values of --set, so that an error names the flag and not a class."""
    from shotproof.core.errors import error_prefix

    with error_prefix("--set "):
        for option in (option for checked in settings for option in checked.options()):
            if option.name in values:
                option.check(values[option.name])


def _images_to_json(result: Catalog) -> dict[str, Any]:
    """Return the size of a catalog of images, what was left out, and the number of images per class and context."""
    counts = _count(result)
    return {
        "items": len(result),
        "digest": result.digest,
        "skipped": list(result.record.skipped),
        "dropped": result.record.dropped,
        "foregrounds": [{"label": label, "images": count} for label, count in counts["label"].items()],
        "backgrounds": [{"context": context, "images": count} for context, count in counts.get("context", {}).items()],
    }


def _print_counts(mixed: Catalog) -> None:
    """Print the number of images by foreground and by background."""
    counts = _count(mixed)
    for title, column in (("foreground", "label"), ("background", "context")):
        print_table(f"by {title}", [title, "images"], [[name, f"{count:,}"] for name, count in counts[column].items()])
        say("")


def _count(result: Catalog) -> dict[str, dict[str, int]]:
    """Count the images by class and, if there are any, by context."""
    columns = [name for name in ("label", "context") if name in result.table.column_names]
    counters = {name: Counter(map(str, result.table.column(name).drop_null().to_pylist())) for name in columns}
    return {name: dict(sorted(counter.items())) for name, counter in counters.items()}


def _to_json(mixed: Catalog) -> dict[str, Any]:
    """Return the size of the mixture catalog, what was left out, and the quality per class and context."""
    from shotproof.sounds.quality import quality_by

    return {
        "items": len(mixed),
        "digest": mixed.digest,
        "skipped": list(mixed.record.skipped),
        "dropped": mixed.record.dropped,
        "foregrounds": quality_by(mixed, "label"),
        "backgrounds": quality_by(mixed, "context"),
    }


def _print_quality(mixed: Catalog) -> None:
    """Print the quality of the mixtures by foreground and by background."""
    from shotproof.sounds.quality import quality_by

    for title, column in (("foreground", "label"), ("background", "context")):
        records = quality_by(mixed, column)
        rows = [[_cell(value) for value in record.values()] for record in records]
        print_table(f"by {title}", [title, *(name.replace("_", " ") for name in list(records[0])[1:])], rows)
        say("")


def _cell(value: Any) -> str:
    """Format a cell; missing values as a dash."""
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _print_left_out(mixed: Catalog) -> None:
    """Print which recordings and how many mixtures were left out, and why."""
    skipped = mixed.record.skipped
    for record in skipped[:MAX_SHOWN]:
        say(f"skipped  {record['item']} ({record['label']}): {record['reason']}", err=True)
    if len(skipped) > MAX_SHOWN:
        say(f"skipped  ... and {len(skipped) - MAX_SHOWN:,} more (--json)", err=True)
    for reason, count in mixed.record.dropped.items():
        say(f"dropped  {counted(count, 'mixture')}: {reason}", err=True)
