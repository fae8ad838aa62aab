"""Kept results of our runs: small files of counts, one per task set, model and method.

python -m reproduction.kept reproduction/fewstab-cub.toml   # copies them from the run's folder

`results/TABLE/TASKS/MODEL/METHOD.parquet` is a results file without the wrong answers, which tables do not need;
`shotproof compare` reads it like any other. METHOD is `model` for the model's own head.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from shotproof.core.arrays import FloatArray
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.steps.steps import file_name
from shotproof.results.results import Results
from shotproof.stats.intervals import Estimate

HERE = Path(__file__).parent
KEPT = HERE / "results"
OWN_HEAD = "model"
WRONG = ("missed", "answered")  # columns on the queries that were answered wrongly


@dataclass(frozen=True)
class Evaluated:
    """One classifier on one task set."""

    tasks: str
    model: str
    method: str
    results: Results

    @property
    def shot(self) -> int | None:
        """Return the number of shots of the tasks."""
        return self.results.record.tasks.shot

    @cached_property
    def accuracy(self) -> FloatArray:
        """Return Acc on each task, in percent."""
        return self.results.counts(self.results.methods[0]).accuracy_by_task()

    @cached_property
    def worst(self) -> FloatArray:
        """Return wAcc on each task, in percent."""
        return self.results.counts(self.results.methods[0]).worst_by_task()

    @property
    def acc(self) -> Estimate:
        """Return Acc as a mean over tasks."""
        return Estimate.over_tasks(self.accuracy)

    @property
    def wacc(self) -> Estimate:
        """Return the accuracy on the worst class, as a mean over tasks."""
        return Estimate.over_tasks(self.worst)


@dataclass(frozen=True)
class Table:
    """Kept results of one experiment; empty if it has not been run yet."""

    evaluated: tuple[Evaluated, ...]

    def find(self, tasks: str, model: str, method: str) -> Evaluated | None:
        """Return the results of a model and a method on a task set; None if they have not been run yet."""
        key = (tasks, model, method)
        return next((result for result in self.evaluated if (result.tasks, result.model, result.method) == key), None)


@cache
def read_kept(table: str, folder: Path = KEPT) -> Table:
    """Read the kept results of an experiment by its name."""
    files = sorted((folder / table).glob("*/*/*.parquet"))
    return Table(tuple(Evaluated(file.parts[-3], file.parts[-2], file.stem, Results.read(file)) for file in files))


def keep(experiment_file: Path, folder: Path = KEPT) -> list[Path]:
    """Copy the results of an experiment from its run's folder.

    Args:
        experiment_file: the experiment file; the experiment has been run
        folder: the folder of kept results

    Returns:
        The files written.
    """
    experiment = Experiment.read(experiment_file)
    adapted = {name: Path(model).stem for model, name in zip(experiment.models, experiment.read_models(), strict=True)}
    written = []
    for file in sorted((experiment.folder / "results").glob("*/*/*.parquet")):
        results = Results.read(file)
        encoder = results.record.features.encoder
        path = encoder.options.get("path") if encoder else None
        source = results.record.sources.get("model")
        model = None if source is None else adapted[str(source.name)]
        name = model or results.record.features.name or (Path(str(path)).stem if path else str(encoder))
        method = results.methods[0]
        stage = encoder.options.get("stage") if encoder else None
        simple = name if re.fullmatch(r"[\w.+-]+", name) else file_name(name)
        place = f"{simple}{'' if stage is None else f'-stage{stage}'}"
        head = OWN_HEAD if method.startswith("model:") else file_name(method)
        target = folder / experiment_file.stem / file.parts[-3] / place / f"{head}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        without_misses(results).write(target)
        written.append(target)
    return written


def without_misses(results: Results) -> Results:
    """Return results with the counts alone, without the training classes, which each file would repeat."""
    columns = [name for name in results.table.column_names if name not in WRONG]
    features = replace(results.record.features, trained_on=())
    return Results(results.table.select(columns), replace(results.record, features=features))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        for path in keep(Path(argument)):
            print(path)
