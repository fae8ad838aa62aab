"""`shotproof demo`: the whole path on data that it draws itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

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


def demo(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder to write. Default: shotproof-demo[-sound].")
    ] = None,
    sound: Annotated[bool, typer.Option("--sound", help="Sounds with backgrounds instead of shapes.")] = False,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Make a world with planted shortcuts and measure how far classifiers lean on them: shapes, or with --sound sounds.

    shotproof demo
    """
    with make_runtime(workers, device, cache, progress, engine):
        if sound:
            _sounds(output or Path("shotproof-demo-sound"))
        else:
            _shapes(output or Path("shotproof-demo"))


def _sounds(output: Path) -> None:
    """Synthesize recordings, mix them with backgrounds of three loudnesses, and run the same experiment on each."""
    from shotproof.cli.results.report import print_comparison
    from shotproof.core.tables import write_text
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


def _shapes(output: Path) -> None:
    """Draw shapes, and measure three encoders and five methods on them."""
    from shotproof.cli.results.report import print_comparison
    from shotproof.core.tables import write_text
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
