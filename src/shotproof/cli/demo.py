"""`shotproof demo`: the whole path on data that it draws itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_EXPERIMENT = """\
# The demo's experiment. Change it and run it again: shotproof run experiment.toml
# Only what depends on the change is made anew.

[catalog]
file = "world/catalog.parquet"

[attributes]
detectors = [{ name = "table", file = "world/attributes.parquet" }]

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
methods = ["ncc", "cosine", "logistic", "ridge", "knn"]

[output]
folder = "."
title = "Shotproof demo: shapes with planted shortcuts"
"""


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path("shotproof-demo"),
) -> None:
    """Draw a world of shapes with planted shortcuts and measure how far three encoders and five methods lean on them.

    shotproof demo
    """
    from shotproof.cli.run import run
    from shotproof.tables import write_text
    from shotproof.worlds.shapes import ShapesWorld

    typer.echo(f"drawing a world of shapes into {output / 'world'}", err=True)
    world = ShapesWorld()
    world.write(output / "world").write(output / "world" / "catalog.parquet")
    world.attributes().write(output / "world" / "attributes.parquet")
    write_text(output / "experiment.toml", _EXPERIMENT)
    run(output / "experiment.toml", dry_run=False, as_json=False)
    typer.echo(f"the experiment: {output / 'experiment.toml'}, to change and run again with shotproof run")
