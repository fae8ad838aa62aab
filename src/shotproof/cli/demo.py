"""`shotproof demo`: the whole path on data that it draws itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from shotproof.cli.runtime import Cache, Device, EngineName, Progress, Workers, make_runtime

_EXPERIMENT = """\
# The demo's experiment. Change it and run it again: shotproof run experiment.toml
# Only what depends on the change is made anew.

[catalog]
file = "world/catalog.parquet"

[attributes]
detectors = ["table(file='world/attributes.parquet')"]

[features]
# Three synthetic encoders that see the shape (the class) and its surroundings in different proportions.
encoders = ["dial(share=0.1)", "dial(share=0.4)", "dial(share=0.7)"]

[tasks]
way = 5
shots = [1, 5]
query = 15
tasks = 600
seed = 0
samplers = ["random", "fewstab"]

[evaluate]
methods = ["ncc", "cosine", "ridge", "knn"]

[output]
folder = "."
title = "Shotproof demo: shapes with planted shortcuts"
"""


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
    sound: Annotated[bool, typer.Option("--sound", help="Sounds with backgrounds instead of shapes.")] = False,
    train: Annotated[
        bool, typer.Option("--train", help="Networks trained on classes with a shortcut, to four degrees.")
    ] = False,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Make a world with planted shortcuts and measure how far classifiers lean on them: shapes, or with --sound sounds.

    With --train networks are trained first, on shapes whose background gives the class away to a set degree.

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
            _shapes(output or Path("shotproof-demo"))


def _sounds(output: Path) -> None:
    """Synthesize recordings, mix them with backgrounds of three loudnesses, and run the same experiment on each."""
    from shotproof.cli.results.report import print_comparison
    from shotproof.core.whole_files import write_text
    from shotproof.pipeline.material import read_material
    from shotproof.pipeline.report import write_report
    from shotproof.pipeline.run import run
    from shotproof.sounds.mix import MixSettings, mix
    from shotproof.worlds.sounds import SoundsWorld

    typer.echo(f"synthesizing sounds into {output / 'world'}", err=True)
    world = SoundsWorld()
    recordings = world.write(output / "world")
    recordings.write(output / "world" / "catalog.parquet")
    folders = [output / f"background-{dial:g}" for dial in _DIALS]
    for dial, folder in zip(_DIALS, folders, strict=True):
        typer.echo(f"mixing with backgrounds at a = {dial:g} into {folder}", err=True)
        mix(recordings, world.mapping(), folder, MixSettings(dial=dial, clean=True))
        write_text(folder / "experiment.toml", _SOUND_EXPERIMENT.replace("DIAL", f"{dial:g}"))
        run(folder / "experiment.toml", tell=lambda line: typer.echo(line, err=True))
    page = output / "report.html"
    comparison = write_report(page, read_material(folders), title="Shotproof demo: sounds with backgrounds")
    print_comparison(replace(comparison, blocks=[one for one in comparison.blocks if one.design.dial == 1]))
    typer.echo(f"report, with the other backgrounds: {page}")


def _networks(output: Path) -> None:
    """Train the same network on shortcuts of four degrees, and measure how far each leans on the background."""
    from shotproof.attributes.attributes import Attributes
    from shotproof.cli.results.report import print_comparison
    from shotproof.core.whole_files import write_text
    from shotproof.pipeline.run import run
    from shotproof.training.train import train
    from shotproof.worlds.shapes import ShapesWorld

    world = ShapesWorld(**_TRAINED_WORLD)
    typer.echo(f"drawing a world of shapes into {output / 'world'}", err=True)
    tested = world.write(output / "world", "test")
    tested.write(output / "world" / "catalog.parquet")
    backgrounds = zip(tested.items, tested.table.column("background").to_pylist(), strict=True)
    words = {item: [f"{background} background"] for item, background in backgrounds}
    Attributes.from_words(words).write(output / "world" / "attributes.parquet")
    names = [f"shortcut-{100 * degree:.0f}.model" for degree in _DEGREES]
    for degree, name in zip(_DEGREES, names, strict=True):
        folder = output / "training" / name.removesuffix(".model")
        count = round(degree * world.train_classes)
        typer.echo(f"training {output / name}: {count} of {world.train_classes} classes have a shortcut", err=True)
        tied = replace(world, items=40, shortcut_classes=count)
        train(
            tied.write(folder, "train"),
            "protonet(temperature=16)",
            backbone="conv64f(pools=2)",
            val_split=None,
            output=output / name,
            augment="none",
            **_TRAINING,
        )
    models = ", ".join(f'"model:{name}"' for name in names)
    write_text(output / "experiment.toml", _TRAINED_EXPERIMENT.replace("MODELS", models))
    outcome = run(output / "experiment.toml", tell=lambda line: typer.echo(line, err=True))
    assert outcome.comparison is not None  # it is no dry run
    print_comparison(outcome.comparison)
    typer.echo(f"report: {outcome.report}")


def _shapes(output: Path) -> None:
    """Draw shapes, and measure three encoders and five methods on them."""
    from shotproof.cli.results.report import print_comparison
    from shotproof.core.whole_files import write_text
    from shotproof.pipeline.run import run
    from shotproof.worlds.shapes import ShapesWorld

    typer.echo(f"drawing a world of shapes into {output / 'world'}", err=True)
    world = ShapesWorld()
    world.write(output / "world").write(output / "world" / "catalog.parquet")
    world.attributes().write(output / "world" / "attributes.parquet")
    write_text(output / "experiment.toml", _EXPERIMENT)
    outcome = run(output / "experiment.toml", tell=lambda line: typer.echo(line, err=True))
    assert outcome.comparison is not None  # it is no dry run
    print_comparison(outcome.comparison)
    typer.echo(f"report: {outcome.report}")
    typer.echo(f"the experiment: {output / 'experiment.toml'}, to change and run again with shotproof run")
