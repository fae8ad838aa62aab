"""A whole experiment from one file, top to bottom: catalog, attributes, features, tasks, results, report.

Each step writes one file, and is skipped when that file was made from the same inputs by the same parameters.
What a long step has done is kept when it is interrupted: features in their cache, captions in their log.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from shotproof.attributes.attributes import Attributes
from shotproof.attributes.detector import Detector, detect, detectors
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import layouts, read_layout
from shotproof.errors import InputError, did_you_mean
from shotproof.evaluation.results import Results
from shotproof.experiment import Experiment
from shotproof.features.encoder import encode, make_encoder
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.report.comparison import Comparison
from shotproof.tables import file_name, write_text
from shotproof.tasks.sampler import sample, samplers
from shotproof.tasks.taskset import TaskSet
from shotproof.version import __version__

T = TypeVar("T", Catalog, Attributes, Features, TaskSet, Results)
Tell = Callable[[str], None]

LEDGER = ".shotproof.json"


@dataclass(frozen=True)
class Outcome:
    """What a run gave: the comparison (None in a dry run), the page, and which steps were run and which were reused."""

    comparison: Comparison | None
    report: Path
    made: list[str]
    reused: list[str]


def run(experiment: str | Path | Experiment, *, dry_run: bool = False, tell: Tell = lambda line: None) -> Outcome:
    """Run an experiment. `tell` receives a line a step; with `dry_run` nothing is written and nothing is made."""
    if not isinstance(experiment, Experiment):
        experiment = Experiment.read(experiment)
    _check_names(experiment)
    steps = _Steps(experiment.folder, dry_run, tell)
    catalog = _catalog(experiment, steps)
    attributes = _attributes(experiment, steps, catalog)
    features = {encoder: _features(experiment, steps, catalog, encoder) for encoder in experiment.encoders}
    tasks = _tasks(experiment, steps, catalog, attributes, features)
    results = _results(experiment, steps, tasks, features)
    page = experiment.folder / "report.html"
    comparison = None
    if dry_run:
        tell(f"would write  {page.name}")
    else:
        from shotproof.report.page import write_report

        known = [task_set for task_set in tasks.values() if task_set is not None]
        made = [result for result in results if result is not None]
        comparison = write_report(
            page,
            made,
            tasks=known,
            catalog=catalog,
            title=experiment.title,
            intervals=experiment.intervals,
            features=[encoded for encoded in features.values() if encoded is not None],
            attributes=attributes,
            workers=experiment.workers,
        )
    return Outcome(comparison, page, steps.made, steps.reused)


@dataclass
class _Steps:
    """The steps of a run, and the ledger of what each file in the output folder was made from."""

    folder: Path
    dry_run: bool
    tell: Tell
    made: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)

    def step(self, kind: type[T], name: str, inputs: list[Any], make: Callable[[], T], parameters: Any) -> T | None:
        """The file `name` of the output folder: read where it is up to date, else made and written.

        In a dry run a file that would be made is None, and so is whatever needs it.
        """
        path = self.folder / name
        known = not any(value is None for value in inputs)
        key = _key(name, [getattr(value, "digest", value) for value in inputs], parameters)
        if known and self._up_to_date(path, key):
            self.reused.append(name)
            self.tell(f"up to date   {name}")
            return kind.read(path)
        self.made.append(name)
        self.tell(f"{'would make' if self.dry_run else 'making':12} {name}")
        if self.dry_run:
            return None
        make().write(path)
        self._record(path, key)
        return kind.read(path)  # as a later run will see it, so that both go on alike

    def _up_to_date(self, path: Path, key: str) -> bool:
        return path.is_file() and self._ledger().get(path.name) == [key, *_stamp(path)]

    def _ledger(self) -> dict[str, Any]:
        try:
            ledger = json.loads((self.folder / LEDGER).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return ledger if isinstance(ledger, dict) else {}

    def _record(self, path: Path, key: str) -> None:
        ledger = self._ledger() | {path.name: [key, *_stamp(path)]}
        write_text(self.folder / LEDGER, json.dumps(ledger, indent=1, sort_keys=True))


def _catalog(experiment: Experiment, steps: _Steps) -> Catalog:
    """The data is looked at in every run: new or changed files must be seen."""
    given = dict(experiment.catalog)
    if "file" in given:
        return Catalog.read(given["file"])
    catalog = read_layout(given.pop("root"), given.pop("layout", "folder"), splits=given.pop("splits", None), **given)
    written = steps.step(Catalog, "catalog.parquet", [catalog], lambda: catalog, None)
    return catalog if written is None else written


def _attributes(experiment: Experiment, steps: _Steps, catalog: Catalog) -> Attributes | None:
    if experiment.attributes_file is not None:
        return Attributes.read(experiment.attributes_file)
    if not experiment.detectors:
        return None

    def make() -> Attributes:
        return detect(catalog, *(_detector(name, options, steps.folder) for name, options in experiment.detectors))

    stamps = [_stamp(Path(options["file"])) for _, options in experiment.detectors if "file" in options]
    inputs = [catalog, _files(catalog), stamps]
    return steps.step(Attributes, "attributes.parquet", inputs, make, experiment.detectors)


def _detector(name: str, options: dict[str, Any], folder: Path) -> Detector:
    """A detector that uses all cores, and keeps captions in the output folder as they come."""
    takes = detectors.inputs(name)
    given: dict[str, Any] = {"workers": os.cpu_count()} if "workers" in takes else {}
    if "resume" in takes:
        folder.mkdir(parents=True, exist_ok=True)
        given["resume"] = folder / f"captions-{name}.jsonl"
    return detectors.make(name, **{**given, **options})


def _features(experiment: Experiment, steps: _Steps, catalog: Catalog, encoder: str) -> Features | None:
    def make() -> Features:
        return encode(catalog, encoder, **experiment.encode_settings)

    inputs = [catalog, _files(catalog)]
    encoded = steps.step(Features, f"features-{file_name(encoder)}.parquet", inputs, make, encoder)
    return None if encoded is None else transform(encoded, experiment.transforms)


def _tasks(
    experiment: Experiment,
    steps: _Steps,
    catalog: Catalog,
    attributes: Attributes | None,
    features: dict[str, Features | None],
) -> dict[str, TaskSet | None]:
    """Task sets by name: one for each sampler and number of shots."""
    tasks: dict[str, TaskSet | None] = {}
    of_sampler: dict[tuple[str, int], TaskSet | None] = {}
    design = {"way": experiment.way, "query": experiment.query, "tasks": experiment.tasks, "seed": experiment.seed}
    for sampler, options in experiment.samplers:
        own = {key: value for key, value in options.items() if key not in ("encoder", "like")}
        for shot in experiment.shots:
            given = {**design, "shot": shot, "split": experiment.split, **own}
            inputs = _sampler_inputs(experiment, sampler, options, shot, attributes, features, of_sampler)

            def make(sampler: str = sampler, given: dict[str, Any] = given, inputs: Any = inputs) -> TaskSet:
                return sample(catalog, sampler, workers=experiment.workers, **given, **inputs)

            variant = "-".join(file_name(str(part)) for part in [sampler, *options.values()])
            name = f"{variant}-{experiment.way}way-{shot}shot"
            stamps = [_stamp(Path(own["class_distances"]))] if "class_distances" in own else []
            needed = [catalog, *inputs.values(), *stamps]
            made = steps.step(TaskSet, f"tasks-{name}.parquet", needed, make, [sampler, given, sorted(inputs)])
            tasks[name] = made
            of_sampler.setdefault((sampler, shot), made)
    return tasks


def _sampler_inputs(
    experiment: Experiment,
    sampler: str,
    options: dict[str, Any],
    shot: int,
    attributes: Attributes | None,
    features: dict[str, Features | None],
    drawn: dict[tuple[str, int], TaskSet | None],
) -> dict[str, Any]:
    """What a sampler takes beside the catalog: attributes, an encoder's features, tasks to be like; None in a dry run.

    The features are those of `encoder`, unless it is given of the first one; `like` names a sampler before this one.
    """
    takes = samplers.inputs(sampler)
    inputs: dict[str, Any] = {}
    if "attributes" in takes and (experiment.detectors or experiment.attributes_file):
        inputs["attributes"] = attributes
    elif getattr(samplers.factory(sampler), "needs_attributes", False):
        raise InputError(f"sampler '{sampler}' needs attributes: add a section [attributes] with detectors or file")
    if "features" in takes:
        encoder = options.get("encoder", experiment.encoders[0])
        if encoder not in features:
            raise InputError(f"sampler '{sampler}': no encoder '{encoder}'{did_you_mean(str(encoder), features)}")
        inputs["features"] = features[encoder]
    if "like" in options:
        before = [name for name, of_shot in drawn if of_shot == shot]
        if options["like"] not in before:
            told = did_you_mean(str(options["like"]), before)
            raise InputError(f"sampler '{sampler}': no sampler '{options['like']}' before it to be like{told}")
        inputs["like"] = drawn[options["like"], shot]
    return inputs


def _results(
    experiment: Experiment, steps: _Steps, tasks: dict[str, TaskSet | None], features: dict[str, Features | None]
) -> list[Results | None]:
    results = []
    for name, task_set in tasks.items():
        for encoder, encoded in features.items():

            def make(task_set: TaskSet | None = task_set, encoded: Features | None = encoded) -> Results:
                from shotproof.evaluation.evaluate import evaluate

                assert task_set is not None
                assert encoded is not None
                return evaluate(task_set, encoded, experiment.methods, device=experiment.device, seed=experiment.seed)

            inputs = [task_set, encoded]
            file = f"results-{name}-{file_name(encoder)}.parquet"
            results.append(steps.step(Results, file, inputs, make, [experiment.methods, experiment.seed]))
    return results


def _check_names(experiment: Experiment) -> None:
    """Every name in the file is looked up before anything long begins."""
    from shotproof.methods.method import make_method

    if "layout" in experiment.catalog:
        layouts.factory(experiment.catalog["layout"])
    for name, _ in experiment.detectors:
        detectors.factory(name)
    for name, _ in experiment.samplers:
        samplers.factory(name)
    for encoder in experiment.encoders:
        make_encoder(encoder)
    for method in experiment.methods:
        make_method(method)
    if len({file_name(encoder) for encoder in experiment.encoders}) < len(experiment.encoders):
        raise InputError(f"the encoders {', '.join(experiment.encoders)} would write files of the same name")


def _key(name: str, inputs: list[Any], parameters: Any) -> str:
    """What a file depends on, as one digest."""
    text = json.dumps([__version__, name, inputs, parameters], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _files(catalog: Catalog) -> str:
    """A digest of the sizes and times of a catalog's files: cheap to make, and another one when a file changes."""
    stamps = [_stamp(path) for path in catalog.paths]
    return hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:32]


def _stamp(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:
        return [-1, -1]  # whoever needs the file says that it is missing
    return [status.st_size, status.st_mtime_ns]
