"""The results of our runs: small files of counts, one per task set, model and method.

python -m reproduction.kept reproduction/fewstab-cub.toml   # takes them over from the run's folder

`results/TABLE/TASKS/MODEL/METHOD.parquet` is a results file without the wrong answers, which tables do not need;
`shotproof compare` reads it like any other. METHOD is `model` where it is the model's own head.
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
        """Of the tasks."""
        return self.results.record.tasks.shot

    @cached_property
    def accuracy(self) -> FloatArray:
        """Acc of each task, in percent."""
        return self.results.counts(self.results.methods[0]).accuracy_by_task()

    @cached_property
    def worst(self) -> FloatArray:
        """wAcc of each task, in percent."""
        return self.results.counts(self.results.methods[0]).worst_by_task()

    @property
    def acc(self) -> Estimate:
        """Acc."""
        return Estimate.over_tasks(self.accuracy)

    @property
    def wacc(self) -> Estimate:
        """The accuracy on the worst class."""
        return Estimate.over_tasks(self.worst)


@dataclass(frozen=True)
class Table:
    """All that was kept of one experiment; empty where it was not run yet."""

    evaluated: tuple[Evaluated, ...]

    def find(self, tasks: str, model: str, method: str) -> Evaluated | None:
        """What a model and a method gave on a task set; None where that was not run yet."""
        wanted = (tasks, model, method)
        return next((one for one in self.evaluated if (one.tasks, one.model, one.method) == wanted), None)


@cache
def read_kept(table: str, folder: Path = KEPT) -> Table:
    """The kept results of an experiment, by its name."""
    files = sorted((folder / table).glob("*/*/*.parquet"))
    return Table(tuple(Evaluated(file.parts[-3], file.parts[-2], file.stem, Results.read(file)) for file in files))


def keep(experiment_file: Path, folder: Path = KEPT) -> list[Path]:
    """Take the results of an experiment over from its run's folder.

    Args:
        experiment_file: the experiment, which was run
        folder: where results are kept

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
    """The counts alone, and not the list of training classes, which each file would repeat."""
    columns = [name for name in results.table.column_names if name not in WRONG]
    features = replace(results.record.features, trained_on=())
    return Results(results.table.select(columns), replace(results.record, features=features))


if __name__ == "__main__":
    for given in sys.argv[1:]:
        for kept in keep(Path(given)):
            print(kept)
