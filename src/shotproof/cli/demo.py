"""`shotproof demo`: the whole path on data that it draws itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.console import say
from shotproof.cli.runtime import Cache, Device, EngineName, Progress, Workers, make_runtime

if TYPE_CHECKING:
    from shotproof.analysis.reevaluation.material import Material
    from shotproof.catalog.catalog import Catalog
    from shotproof.stats.comparison import Comparison

_EXPERIMENT = """\
# The demo's experiment. Change it and run it again: shotproof run experiment.toml
# Only what depends on the change is made anew.

[catalog]
file = "world/catalog.parquet"

[features]
# The same small network, trained on twelve other animals: in one case in every place, in the other mostly where
# they live, so that the background gave them away.
encoders = ["model:everywhere.model", "model:at-home.model"]

[tasks]
way = 5
shots = [5]
query = 5
tasks = 300
seed = 0
# Matched sets: each animal is shown on one background, and asked for on the same one (iid), on others (ood), or on
# those on which the other animals were shown (hard-ood).
samplers = ["context(context_column='background')"]

[evaluate]
methods = ["ncc"]

[output]
folder = "."
title = "Shotproof demo: does it know the cow, or the meadow?"
"""
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


_SOUND_EXPERIMENT = """\
# The demo's experiment on sounds. Change it and run it again: shotproof run experiment.toml

[catalog]
file = "catalog.parquet"

[features]
encoders = ["logmel"]

[tasks]
split = "test"
way = 5
shots = [1, 5]
query = 10
tasks = 600
seed = 0
# Matched sets (iid, ood, hard-ood, clean): the same supports in each, queries with the same or another background, or
# with none.
samplers = ["context(clean_value='clean')"]

[evaluate]
methods = ["ncc", "cosine", "logistic", "ridge", "knn"]

[output]
folder = "."
title = "Shotproof demo: sounds with backgrounds at a = DIAL"
"""
_DIALS = (0.0, 1.0, 2.0)


_TRAINED_EXPERIMENT = """\
# The demo's experiment on networks that were trained on a shortcut. Change it and run it again:
# shotproof run experiment.toml

[catalog]
file = "world/catalog.parquet"

[attributes]
detectors = ["table(file='world/attributes.parquet')"]

[features]
# The same network, trained in the same way. In 0, 33, 67 or 100% of the training classes all pictures have the
# background of their class; all other pictures have any.
encoders = [MODELS]

[tasks]
way = 5
shots = [5]
query = 5
tasks = 600
seed = 0
# In the pictures of these tasks the background says nothing of the class.
samplers = ["random", "fewstab", "context(context_column='background')"]

[evaluate]
methods = ["ncc"]

[output]
folder = "."
title = "Shotproof demo: networks trained on a shortcut, to a set degree"
"""
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
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Draw animals in places, train two small networks, and measure how far each leans on the background.

    With --sound, sounds are mixed with backgrounds. With --train, networks are trained on shapes whose background gives
    the class away to a set degree.

    shotproof demo
    """
    from shotproof.core.errors import InputError

    if sound and train:
        raise InputError("--sound and --train are two demos: choose one")
    with make_runtime(workers, device, cache, progress, engine):
        if train:
            _networks(output or Path("shotproof-demo-train"))
        elif sound:
            _sounds(output or Path("shotproof-demo-sound"))
        else:
            _scenes(output or Path("shotproof-demo"))


def _sounds(output: Path) -> None:
    """Synthesize recordings, mix them with backgrounds of three loudnesses, and run the same experiment on each."""
    from shotproof.cli.results.report import print_comparison
    from shotproof.core.whole_files import write_text
    from shotproof.pipeline.material import read_material
    from shotproof.pipeline.report import write_report
    from shotproof.pipeline.run import run
    from shotproof.sounds.mix import MixSettings, mix
    from shotproof.worlds.sounds import SoundsWorld

    say(f"synthesizing sounds into {output / 'world'}", err=True)
    world = SoundsWorld()
    recordings = world.write(output / "world")
    recordings.write(output / "world" / "catalog.parquet")
    folders = [output / f"background-{dial:g}" for dial in _DIALS]
    for dial, folder in zip(_DIALS, folders, strict=True):
        say(f"mixing with backgrounds at a = {dial:g} into {folder}", err=True)
        mix(recordings, world.mapping(), folder, MixSettings(dial=dial, clean=True))
        write_text(folder / "experiment.toml", _SOUND_EXPERIMENT.replace("DIAL", f"{dial:g}"))
        run(folder / "experiment.toml", tell=lambda line: say(line, err=True))
    page = output / "report.html"
    comparison = write_report(page, read_material(folders), title="Shotproof demo: sounds with backgrounds")
    print_comparison(replace(comparison, blocks=[one for one in comparison.blocks if one.design.dial == 1]))
    say(f"report, with the other backgrounds: {page}")


def _networks(output: Path) -> None:
    """Train the same network on shortcuts of four degrees, and measure how far each leans on the background."""
    from shotproof.attributes.attributes import Attributes
    from shotproof.cli.results.report import print_comparison
    from shotproof.core.whole_files import write_text
    from shotproof.pipeline.run import run
    from shotproof.worlds.shapes import ShapesWorld

    world = ShapesWorld(**_TRAINED_WORLD)
    say(f"drawing a world of shapes into {output / 'world'}", err=True)
    tested = world.write(output / "world", "test")
    tested.write(output / "world" / "catalog.parquet")
    backgrounds = zip(tested.items, tested.table.column("background").to_pylist(), strict=True)
    words = {item: [f"{background} background"] for item, background in backgrounds}
    Attributes.from_words(words).write(output / "world" / "attributes.parquet")
    names = [f"shortcut-{100 * degree:.0f}.model" for degree in _DEGREES]
    for degree, name in zip(_DEGREES, names, strict=True):
        folder = output / "training" / name.removesuffix(".model")
        count = round(degree * world.train_classes)
        say(f"training {output / name}: {count} of {world.train_classes} classes have a shortcut", err=True)
        tied = replace(world, items=40, shortcut_classes=count)
        _train(tied.write(folder, "train"), output / name, _TRAINING)
    models = ", ".join(f'"model:{name}"' for name in names)
    write_text(output / "experiment.toml", _TRAINED_EXPERIMENT.replace("MODELS", models))
    outcome = run(output / "experiment.toml", tell=lambda line: say(line, err=True))
    assert outcome.comparison is not None  # it is no dry run
    print_comparison(outcome.comparison)
    say(f"report: {outcome.report}")


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


def _scenes(output: Path) -> None:
    """Draw animals, train two small networks on some of them, and measure on the others who leans on the background."""
    from shotproof.core.whole_files import write_text
    from shotproof.pipeline.material import read_material
    from shotproof.pipeline.run import run
    from shotproof.worlds.scenes import ScenesWorld

    say(f"drawing animals into {output / 'world'}", err=True)
    tested = ScenesWorld(**_TESTED_WORLD).write(output / "world", "test")
    tested.write(output / "world" / "catalog.parquet")
    for name, (share, where) in _NETWORKS.items():
        say(f"training {output / name}.model on twelve other animals {where}", err=True)
        seen = ScenesWorld(**_TRAINING_WORLD, at_home=share).write(output / "training" / name, "train")
        _train(seen, output / f"{name}.model", _SCENES_TRAINING)
    write_text(output / "experiment.toml", _EXPERIMENT)
    outcome = run(output / "experiment.toml", tell=lambda line: say(line, err=True))
    assert outcome.comparison is not None  # it is no dry run
    _print_found(outcome.comparison, read_material([output]))
    experiment = output / "experiment.toml"
    say(
        "",
        f"Pictures that fooled them are at the top of {outcome.report}.",
        "Next, on your own images, one folder per class:",
        "    pip install 'shotproof[lite]'",
        "    shotproof run FOLDER",
        f"Or change this experiment: edit {experiment}, then shotproof run {experiment}",
    )


def _print_found(comparison: Comparison, material: Material) -> None:
    """Say in words how far each network leans on the background, as far as the interval allows, with an example."""
    from shotproof.analysis.fooled import find_fooled
    from shotproof.stats.export.numbers import bounds, level, percent
    from shotproof.stats.intervals import meanings
    from shotproof.stats.verdicts import verdicts

    say(
        "Two small networks were shown 5 pictures of each of 5 animals that were new to them, each animal on a "
        "background",
        "of its own. Then they had to name more pictures of these animals.",
    )
    (block,) = comparison.blocks
    *_, found = verdicts(comparison.blocks, comparison.covers, comparison.metric)  # the last set is hard-ood
    right = {group.label: {row.classifier: row.means["acc"] for row in group.rows} for group in block.groups}
    lost = {row.classifier: row.intervals[found.metric][found.covers] for row in found.loss.skill.rows}
    for one in block.classifiers:
        name = comparison.encoder_names[one.encoder]
        same, swapped = (percent(right[label][one]) for label in (found.loss.reference, found.loss.label))
        say(
            f"- {name}, trained on other animals {_NETWORKS[name][1]}: {same}% right on the same backgrounds,",
            f"  {swapped}% right on those of the other animals.",
        )
        if one in found.losing:
            share = f"{percent(lost[one].mean)}% {bounds(lost[one])}"
            say(f"  It leans on the background: that costs {share} of its accuracy above chance.")
        else:
            say("  Whether it leans on the background cannot be told.")
    if fooled := find_fooled(comparison, material):
        query = fooled.examples[0]
        say(
            f"- E.g. {query.label} in the {query.called_cue}, called {query.called}: {query.called} was shown in the "
            f"{query.called_cue}, {query.label} in the {query.own_cue}."
        )
    covered = meanings(comparison.medium)[found.covers].removesuffix(".")
    covered = covered[0].lower() + covered[1:]
    say(f"Brackets: {level(comparison.level)} {found.covers} interval ({covered}).")
