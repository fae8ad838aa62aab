"""`shotproof demo`: a complete experiment on generated data."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import Verbose
from shotproof.cli.console import say

if TYPE_CHECKING:
    from shotproof.analysis.inputs import Inputs
    from shotproof.catalog.catalog import Catalog
    from shotproof.comparison.comparison import Comparison
    from shotproof.cures.cure import Cure

_DEMOS = Path(__file__).with_name("demos")
_EXPERIMENT, _SOUND_EXPERIMENT, _TRAINED_EXPERIMENT = (
    (_DEMOS / name).read_text(encoding="utf-8") for name in ("scenes.toml", "sounds.toml", "shortcuts.toml")
)
# Share of pictures in which a training animal is in its home, and a description.
_NETWORKS = {"everywhere": (0.0, "in every place"), "at-home": (0.86, "mostly where they live")}
_TESTED_WORLD: dict[str, Any] = {"items": 24}
_TRAINING_WORLD: dict[str, Any] = {"items": 7, "size": 48}
_OTHER_WORLD: dict[str, Any] = {"items": 12, "size": 48}
_SCENES_TRAINING: dict[str, Any] = {
    "way": 5,
    "shot": 5,
    "query": 5,
    "size": 24,
    "epochs": 4,
    "tasks": 36,
    "tasks_per_update": 2,
}
_DIALS = (0.0, 1.0, 2.0)
_DEGREES = (0.0, 1 / 3, 2 / 3, 1.0)
_TRAINED_WORLD: dict[str, Any] = {"classes": 40, "train_classes": 27, "items": 90, "size": 32, "tied": ("background",)}
_TRAINING: dict[str, Any] = {
    "way": 5,
    "shot": 5,
    "query": 5,
    "size": 8,
    "epochs": 4,
    "tasks": 70,
    "tasks_per_update": 2,
}


def demo(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write. Default: shotproof-demo[-sound|-train].")
    ] = None,
    sound: Annotated[
        bool, typer.Option("--sound", help="Use sounds mixed with backgrounds instead of pictures.")
    ] = False,
    train: Annotated[bool, typer.Option("--train", help="Train networks on shortcuts of four strengths.")] = False,
    verbose: Verbose = False,
) -> None:
    """Draw pictures of animals, train two small networks, and measure how much each relies on the background.

    With --sound, sounds are mixed with backgrounds. With --train, networks are trained on shapes whose background
    reveals the class in some, all or none of the classes.

    shotproof demo
    """
    from shotproof.core.errors import InputError

    if sound and train:
        raise InputError("--sound and --train cannot be combined: choose one demo")
    if train:
        _run_networks(output or Path("shotproof-demo-train"), verbose)
    elif sound:
        _run_sounds(output or Path("shotproof-demo-sound"), verbose)
    else:
        _run_scenes(output or Path("shotproof-demo"), verbose)


def _run_sounds(output: Path, verbose: bool) -> None:
    """Synthesize recordings, mix them with backgrounds at three amplitudes, and run the same experiment on each."""
    from shotproof.cli.results.print_comparison import print_comparison
    from shotproof.pipeline.steps.owner import EXPERIMENT_FILE
    from shotproof.pipeline.study import Study, run
    from shotproof.sounds.mix import MixSettings, mix
    from shotproof.worlds.sounds import SoundsWorld

    folders = {output / f"background-{dial:g}": dial for dial in _DIALS}
    _claim(output, {folder: _SOUND_EXPERIMENT.replace("DIAL", f"{dial:g}") for folder, dial in folders.items()})
    world = SoundsWorld()
    with _step("drawing", f"sounds into {output / 'world'}"):
        recordings = world.write(output / "world")
        recordings.write(output / "world" / "catalog.parquet")
    for folder, dial in folders.items():
        with _step("mixing", f"backgrounds at a = {dial:g} into {folder}"):
            mix(recordings, world.mapping(), folder, MixSettings(dial=dial, clean=True))
        run(folder / EXPERIMENT_FILE, verbose=verbose, log=lambda line: say(line, err=True))
    page = output / "report.html"
    study = Study.of(folders)
    study.report(page, title="Shotproof demo: sounds with backgrounds")
    comparison = study.compare()
    print_comparison(
        replace(comparison, blocks=[block for block in comparison.blocks if block.design.dial == 1]), brief=True
    )
    say(f"report, with the other amplitudes: {page}")


def _run_networks(output: Path, verbose: bool) -> None:
    """Train the same network on shortcuts of four strengths, and measure how much each relies on the background."""
    from shotproof.attributes.attributes import Attributes
    from shotproof.cli.results.print_comparison import print_comparison
    from shotproof.pipeline.steps.owner import EXPERIMENT_FILE
    from shotproof.pipeline.study import run
    from shotproof.worlds.shapes import ShapesWorld

    world = ShapesWorld(**_TRAINED_WORLD)
    names = [f"shortcut-{100 * degree:.0f}.model" for degree in _DEGREES]
    models = ", ".join(f'"model:{name}"' for name in names)
    _claim(output, {output: _TRAINED_EXPERIMENT.replace("MODELS", models)})
    with _step("drawing", f"a world of shapes into {output / 'world'}"):
        tested = world.write(output / "world", "test")
        tested.write(output / "world" / "catalog.parquet")
    backgrounds = zip(tested.items, tested.table.column("background").to_pylist(), strict=True)
    words = {item: [f"{background} background"] for item, background in backgrounds}
    Attributes.from_words(words).write(output / "world" / "attributes.parquet")
    for degree, name in zip(_DEGREES, names, strict=True):
        folder = output / "training" / name.removesuffix(".model")
        count = round(degree * world.train_classes)
        with _step("training", f"{name}, {count} of {world.train_classes} classes with a shortcut"):
            tied = replace(world, items=40, shortcut_classes=count)
            _train(tied.write(folder, "train"), output / name, _TRAINING)
    study = run(output / EXPERIMENT_FILE, verbose=verbose, log=lambda line: say(line, err=True))
    print_comparison(study.compare(), brief=True)
    say(f"report: {study.page}")


def _claim(output: Path, experiments: Mapping[Path, str]) -> None:
    """Write the experiments of a demo into their folders, which reserves these.

    Raises:
        InputError: the output folder has other contents, or a modified experiment of this demo.
    """
    from shotproof.core.errors import InputError
    from shotproof.core.storage.whole_files import write_text
    from shotproof.core.tables import check_output
    from shotproof.pipeline.steps.owner import EXPERIMENT_FILE

    check_output(output, folder=True)
    files = {folder / EXPERIMENT_FILE: text for folder, text in experiments.items()}
    first = next(iter(files))
    if output.is_dir() and any(output.iterdir()) and not first.is_file():
        raise InputError(f"{output} has other contents: choose another folder with --output")
    for file, text in files.items():
        if file.is_file() and file.read_text(encoding="utf-8") != text:
            raise InputError(
                f"{file} differs from the demo's: run it with shotproof run {file}, or choose another folder for the "
                "demo with --output"
            )
        write_text(file, text)


@contextlib.contextmanager
def _step(name: str, result: str) -> Iterator[None]:
    """Show a progress bar during the block, then print one line with the result and the time."""
    from shotproof.core.runtime.runtime import current_runtime
    from shotproof.pipeline.steps.steps import step_line

    start = time.monotonic()
    with current_runtime().progress_bar(name, None):
        yield
    say(step_line(name, result, time.monotonic() - start), err=True)


def _train(catalog: Catalog, model: Path, settings: dict[str, Any]) -> None:
    """Train a small network on tasks, in one thread so that all machines print the same numbers."""
    from shotproof.core.runtime.devices import one_thread_per_operation
    from shotproof.training.train import train

    with one_thread_per_operation():
        train(
            catalog,
            "protonet(temperature=16)",
            backbone="conv64f(pools=2)",
            val_split=None,
            output=model,
            augment="none",
            **settings,
        )


def _run_scenes(output: Path, verbose: bool) -> None:
    """Draw animals, train two small networks on some, and measure on others how much each relies on the background."""
    import pyarrow as pa

    from shotproof.catalog.catalog import Catalog
    from shotproof.cures.cure import Cure
    from shotproof.pipeline.steps.owner import EXPERIMENT_FILE
    from shotproof.pipeline.study import run
    from shotproof.worlds.scenes import ScenesWorld

    _claim(output, {output: _EXPERIMENT})
    with _step("drawing", f"animals into {output / 'world'}"):
        tested = ScenesWorld(**_TESTED_WORLD).write(output / "world", "test")
        # Remedies are fitted and chosen on more pictures of the animals that the networks are trained on.
        others = ScenesWorld(**_OTHER_WORLD).write(output / "world", "train")
        table = pa.concat_tables([tested.table, others.table])
        Catalog(table, tested.root, tested.record).write(output / "world" / "catalog.parquet")
    for name, (share, where) in _NETWORKS.items():
        with _step("training", f"{name}, on animals {where}"):
            training_catalog = ScenesWorld(**_TRAINING_WORLD, at_home=share).write(output / "training" / name, "train")
            _train(training_catalog, output / f"{name}.model", _SCENES_TRAINING)
    study = run(output / EXPERIMENT_FILE, verbose=verbose, log=lambda line: say(line, err=True))
    _print_summary(study.compare(), study.inputs)
    _print_cure(Cure.read(output))
    experiment = output / "experiment.toml"
    say(
        "",
        f"The pictures that fooled them are at the top of {study.page}.",
        "Next, try your own images, one folder per class:",
        "    pip install 'shotproof[lite]'",
        "    shotproof run FOLDER",
        f"Or change this experiment: edit {experiment}, then shotproof run {experiment}",
    )


def _print_summary(comparison: Comparison, inputs: Inputs) -> None:
    """Print how much each network relies on the background, as far as the interval shows it, and an example."""
    from shotproof.analysis.fooled import find_fooled
    from shotproof.comparison.numbers import bounds, level, percent
    from shotproof.comparison.verdicts import verdicts
    from shotproof.stats.intervals import meanings

    say(
        "Two small networks saw 5 pictures of each of 5 new animals, every animal on a background of its own.",
        "Then they named the animals in other pictures.",
    )
    (block,) = comparison.blocks
    *_, verdict = verdicts(comparison)  # the last set is hard-ood
    right = {group.label: {row.classifier: row.means["acc"] for row in group.rows} for group in block.groups}
    lost = {row.classifier: row.intervals[verdict.metric][verdict.interval_name] for row in verdict.loss.skill.rows}
    for classifier in block.classifiers:
        name = comparison.encoder_names[classifier.encoder]
        same, swapped = (percent(right[label][classifier]) for label in (verdict.loss.reference, verdict.loss.label))
        say(
            f"- {name}, trained on other animals {_NETWORKS[name][1]}: {same}% correct on the same backgrounds,",
            f"  {swapped}% correct on the backgrounds of the other animals.",
        )
        if classifier in verdict.losing:
            share = f"{percent(lost[classifier].mean)}% {bounds(lost[classifier])}"
            say(f"  It relies on the background: that costs {share} of its accuracy above chance.")
        else:
            say("  The data does not show whether it relies on the background.")
    if fooled := find_fooled(comparison, inputs):
        query = fooled.examples[0]
        say(
            f"- Example: {query.label} in the {query.called_cue} was named {query.called}. It had seen {query.called} "
            f"in the {query.called_cue} and {query.label} in the {query.own_cue}."
        )
    meaning = meanings(comparison.medium)[verdict.interval_name].removesuffix(".")
    meaning = meaning[0].lower() + meaning[1:]
    say(f"Brackets: {level(comparison.level)} {verdict.interval_name} interval ({meaning}).")


def _print_cure(cure: Cure) -> None:
    """Print what helps the network that relies on the background, and how to apply it."""
    from shotproof.cures.cure_sentences import apply_lines

    *findings, _ = cure.sentences()  # the last one is what they are based on
    say("", "What helps?", *(f"- {sentence}" for sentence in findings))
    if best := cure.row(cure.recommended):
        say(f"  To apply {best.treatment}:", f"    {apply_lines(cure, best)[0]}")
