"""`shotproof demo`: the whole path on data that it draws itself."""

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

_DEMOS = Path(__file__).with_name("demos")
_EXPERIMENT, _SOUND_EXPERIMENT, _TRAINED_EXPERIMENT = (
    (_DEMOS / name).read_text(encoding="utf-8") for name in ("scenes.toml", "sounds.toml", "shortcuts.toml")
)
# Which share of a training animal's pictures is where it lives rather than elsewhere, and that in words.
_NETWORKS = {"everywhere": (0.0, "in every place"), "at-home": (0.86, "mostly where they live")}
_TESTED_WORLD: dict[str, Any] = {"items": 24}
_TRAINING_WORLD: dict[str, Any] = {"items": 7, "size": 48}
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
        Path | None, typer.Option("--output", "-o", help="The folder to write. Default: shotproof-demo[-sound|-train].")
    ] = None,
    sound: Annotated[bool, typer.Option("--sound", help="Sounds with backgrounds instead of pictures.")] = False,
    train: Annotated[
        bool, typer.Option("--train", help="Networks trained on classes with a shortcut, to four degrees.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Draw animals in places, train two small networks, and measure how far each leans on the background.

    With --sound, sounds are mixed with backgrounds. With --train, networks are trained on shapes whose background gives
    the class away to a set degree.

    shotproof demo
    """
    from shotproof.core.errors import InputError

    if sound and train:
        raise InputError("--sound and --train are two demos: choose one")
    if train:
        _networks(output or Path("shotproof-demo-train"), verbose)
    elif sound:
        _sounds(output or Path("shotproof-demo-sound"), verbose)
    else:
        _scenes(output or Path("shotproof-demo"), verbose)


def _sounds(output: Path, verbose: bool) -> None:
    """Synthesize recordings, mix them with backgrounds of three loudnesses, and run the same experiment on each."""
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
        run(folder / EXPERIMENT_FILE, verbose=verbose, tell=lambda line: say(line, err=True))
    page = output / "report.html"
    study = Study.of(folders)
    study.report(page, title="Shotproof demo: sounds with backgrounds")
    comparison = study.compare()
    print_comparison(
        replace(comparison, blocks=[block for block in comparison.blocks if block.design.dial == 1]), brief=True
    )
    say(f"report, with the other backgrounds: {page}")


def _networks(output: Path, verbose: bool) -> None:
    """Train the same network on shortcuts of four degrees, and measure how far each leans on the background."""
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
    study = run(output / EXPERIMENT_FILE, verbose=verbose, tell=lambda line: say(line, err=True))
    print_comparison(study.compare(), brief=True)
    say(f"report: {study.page}")


def _claim(output: Path, experiments: Mapping[Path, str]) -> None:
    """Write the experiments of a demo into their folders, before anything else.

    Raises:
        InputError: the output folder holds other things, or an experiment of this demo that was changed.
    """
    from shotproof.core.errors import InputError
    from shotproof.core.storage.whole_files import write_text
    from shotproof.core.tables import check_output
    from shotproof.pipeline.steps.owner import EXPERIMENT_FILE

    check_output(output, folder=True)
    files = {folder / EXPERIMENT_FILE: text for folder, text in experiments.items()}
    first = next(iter(files))
    if output.is_dir() and any(output.iterdir()) and not first.is_file():
        raise InputError(f"{output} holds other things: choose another folder, -o OTHER")
    for file, text in files.items():
        if file.is_file() and file.read_text(encoding="utf-8") != text:
            raise InputError(
                f"{file} is not what this demo writes: shotproof run {file} runs it, or choose another folder for the "
                "demo, -o OTHER"
            )
        write_text(file, text)


@contextlib.contextmanager
def _step(name: str, done: str) -> Iterator[None]:
    """Show a bar while a part of a demo goes on, and say in one line what it did and how long that took."""
    from shotproof.core.runtime.runtime import current_runtime
    from shotproof.pipeline.steps.steps import step_line

    start = time.monotonic()
    with current_runtime().progress_bar(name, None):
        yield
    say(step_line(name, done, time.monotonic() - start), err=True)


def _train(seen: Catalog, model: Path, settings: dict[str, Any]) -> None:
    """Train a small network by tasks of its training classes, in one thread: so all machines print the same."""
    from shotproof.core.runtime.devices import one_thread_per_operation
    from shotproof.training.train import train

    with one_thread_per_operation():
        train(
            seen,
            "protonet(temperature=16)",
            backbone="conv64f(pools=2)",
            val_split=None,
            output=model,
            augment="none",
            **settings,
        )


def _scenes(output: Path, verbose: bool) -> None:
    """Draw animals, train two small networks on some of them, and measure on the others who leans on the background."""
    from shotproof.pipeline.steps.owner import EXPERIMENT_FILE
    from shotproof.pipeline.study import run
    from shotproof.worlds.scenes import ScenesWorld

    _claim(output, {output: _EXPERIMENT})
    with _step("drawing", f"animals into {output / 'world'}"):
        tested = ScenesWorld(**_TESTED_WORLD).write(output / "world", "test")
        tested.write(output / "world" / "catalog.parquet")
    for name, (share, where) in _NETWORKS.items():
        with _step("training", f"{name}, on animals {where}"):
            seen = ScenesWorld(**_TRAINING_WORLD, at_home=share).write(output / "training" / name, "train")
            _train(seen, output / f"{name}.model", _SCENES_TRAINING)
    study = run(output / EXPERIMENT_FILE, verbose=verbose, tell=lambda line: say(line, err=True))
    _print_found(study.compare(), study.inputs)
    experiment = output / "experiment.toml"
    say(
        "",
        f"Pictures that fooled them are at the top of {study.page}.",
        "Next, on your own images, one folder per class:",
        "    pip install 'shotproof[lite]'",
        "    shotproof run FOLDER",
        f"Or change this experiment: edit {experiment}, then shotproof run {experiment}",
    )


def _print_found(comparison: Comparison, inputs: Inputs) -> None:
    """Say in words how far each network leans on the background, as far as the interval allows, with an example."""
    from shotproof.analysis.fooled import find_fooled
    from shotproof.comparison.numbers import bounds, level, percent
    from shotproof.comparison.verdicts import verdicts
    from shotproof.stats.intervals import meanings

    say(
        "Two small networks were shown 5 pictures of each of 5 animals that were new to them, each animal on a "
        "background",
        "of its own. Then they had to name more pictures of these animals.",
    )
    (block,) = comparison.blocks
    *_, found = verdicts(comparison)  # the last set is hard-ood
    right = {group.label: {row.classifier: row.means["acc"] for row in group.rows} for group in block.groups}
    lost = {row.classifier: row.intervals[found.metric][found.covers] for row in found.loss.skill.rows}
    for classifier in block.classifiers:
        name = comparison.encoder_names[classifier.encoder]
        same, swapped = (percent(right[label][classifier]) for label in (found.loss.reference, found.loss.label))
        say(
            f"- {name}, trained on other animals {_NETWORKS[name][1]}: {same}% right on the same backgrounds,",
            f"  {swapped}% right on those of the other animals.",
        )
        if classifier in found.losing:
            share = f"{percent(lost[classifier].mean)}% {bounds(lost[classifier])}"
            say(f"  It leans on the background: that costs {share} of its accuracy above chance.")
        else:
            say("  Whether it leans on the background cannot be told.")
    if fooled := find_fooled(comparison, inputs):
        query = fooled.examples[0]
        say(
            f"- E.g. {query.label} in the {query.called_cue}, called {query.called}: {query.called} was shown in the "
            f"{query.called_cue}, {query.label} in the {query.own_cue}."
        )
    covered = meanings(comparison.medium)[found.covers].removesuffix(".")
    covered = covered[0].lower() + covered[1:]
    say(f"Brackets: {level(comparison.level)} {found.covers} interval ({covered}).")
