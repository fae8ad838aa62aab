"""A whole experiment, top to bottom: catalog, attributes, features, tasks, results, report.

What a long step has done is kept when it is interrupted: features in their cache, captions in their log. Results are
one file per task set, encoder and method, so that a method that is added is the only one to be evaluated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.reevaluation.material import Material
from shotproof.attributes.attributes import Attributes
from shotproof.attributes.detector import detect
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.catalog.names import apply_names
from shotproof.catalog.splits import apply_splits
from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.core.runtime.runtime import runtime as current_with
from shotproof.evaluation.evaluate import ON_ITEMS, evaluate
from shotproof.evaluation.results import Results
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.methods.adaptation.adaptation import Adaptation
from shotproof.methods.method import Method
from shotproof.pipeline.checks import check_draws, check_models, check_surroundings, placed
from shotproof.pipeline.experiment import Draw, Experiment
from shotproof.pipeline.models import read_models
from shotproof.pipeline.steps import Steps, Tell, file_name, stamp
from shotproof.stats.comparison import Comparison
from shotproof.tasks.sampler import Sampler, sample
from shotproof.tasks.taskset import TaskSet
from shotproof.tasks.uniform.placebo import Placebo

if TYPE_CHECKING:
    from shotproof.models.model import Model


@dataclass(frozen=True)
class Run:
    """What a run gave: the comparison (None in a dry run), the page, and which files were made and which reused."""

    comparison: Comparison | None
    report: Path
    made: list[str]
    reused: list[str]


def run(
    experiment: str | Path | Experiment,
    *,
    dry_run: bool = False,
    tell: Tell = lambda line: None,
    runtime: Runtime | None = None,
) -> Run:
    """Run an experiment; whatever is up to date is not made again.

    Args:
        experiment: the file that describes it, or what was read from one
        dry_run: make and write nothing, and tell what would be made
        tell: receives one line per step
        runtime: how to compute; what the file says goes before what is current

    Returns:
        The comparison, the page, and the files.

    Raises:
        InputError: the file, the data or what it names cannot be used; the message says which.

    Example:
        >>> import tempfile, shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog = sp.ShapesWorld(classes=5, items=16, size=16).write(folder / "shapes")
        >>> file = folder / "experiment.toml"
        >>> sections = ['[catalog]', 'root = "shapes"', '[features]', 'encoders = ["pixels"]', '[tasks]']
        >>> written = file.write_text("\\n".join([*sections, 'samplers = ["random"]', 'shots = [1]']))
        >>> run(file, dry_run=True).made[:3]
        ['catalog.parquet', 'features-pixels.parquet', 'tasks-random-5way-1shot.parquet']
    """
    if not isinstance(experiment, Experiment):
        experiment = Experiment.read(experiment)
    with placed(experiment, "[runtime]"):
        runtime = runtime or current_with(**experiment.runtime)
    with runtime:
        steps = Steps(experiment.folder, dry_run, tell)
        return _Running(experiment, steps).run()


@dataclass
class _Running:
    """A run while it goes on; `files` are those that it consists of."""

    experiment: Experiment
    steps: Steps
    files: list[str] = field(default_factory=list)

    def run(self) -> Run:
        with placed(self.experiment, "[evaluate], model"):
            models = read_models(self.experiment)
        catalog = self._kept(self._checked_catalog(models))
        attributes = self._attributes(catalog)
        features = {str(encoder): self._features(catalog, encoder) for encoder in self.experiment.encoders}
        catalog = self._readable(catalog, features)
        tasks = self._tasks(catalog, attributes, features)
        results = self._results(tasks, features, catalog, models)
        page = self.experiment.folder / "report.html"
        if self.steps.dry_run:
            self.steps.tell(f"would write  {page.name}")
            return Run(None, page, self.steps.made, self.steps.reused)
        from shotproof.pipeline.report import write_report

        self.steps.finish(self.files)
        material = Material(
            results=[one for one in results if one is not None],
            tasks=[one for one in tasks.values() if one is not None],
            catalogs=[catalog],
            features=[one for one in features.values() if one is not None],
            attributes=[one for one in attributes.values() if one is not None],
        )
        given = self.experiment
        comparison = write_report(
            page,
            material,
            title=given.title,
            intervals=given.intervals,
            metric=given.metric,
            placebo=given.placebo,
            experiment=given.file.name if given.file else None,
        )
        return Run(comparison, page, self.steps.made, self.steps.reused)

    def _step(self, kind: Any, name: str, inputs: Sequence[Any], parameters: Any, make: Any) -> Any:
        self.files.append(name)
        return self.steps.step(kind, name, inputs, parameters, make)

    def _kept(self, catalog: Catalog) -> Catalog:
        """The catalog as its file has it."""
        parameters = [catalog.record.name, catalog.record.to_meta()]
        written: Catalog | None = self._step(Catalog, "catalog.parquet", [catalog], parameters, lambda: catalog)
        return catalog if written is None else written

    def _checked_catalog(self, models: dict[str, Model]) -> Catalog:
        """The data, and nothing made of it before all that is asked for was seen to be possible."""
        given = self.experiment
        check_surroundings(given, current_runtime().device)
        with placed(given, "[catalog]"):
            catalog = self._catalog()
        check_draws(given, catalog, self._attribute_files())
        check_models(given, models, catalog)
        for name, chosen in given.detectors.items():
            if not self.steps.is_current(*self._detection(catalog, name)):
                with placed(given, "[attributes], detectors"):
                    for detector in chosen:
                        detector.check(catalog)
        for encoder in given.encoders:
            if not self.steps.is_current(*self._encoding(catalog, encoder)):
                with placed(given, "[features], encoders"):
                    encoder.check(catalog)
        return catalog

    def _catalog(self) -> Catalog:
        """The data is looked at in every run: new or changed files must be seen."""
        given = self.experiment
        if given.catalog_file is not None:
            catalog = Catalog.read(given.catalog_file)
            catalog = catalog if given.splits is None else apply_splits(catalog, given.splits)
            catalog = catalog if given.names is None else apply_names(catalog, given.names)
            if not catalog.record.name or given.name:
                named = given.name or given.catalog_file.stem
                catalog = Catalog(catalog.table, catalog.root, replace(catalog.record, name=named))
        else:
            assert given.root is not None
            assert given.layout is not None
            catalog = read_layout(given.root, given.layout, splits=given.splits, names=given.names, name=given.name)
        return catalog

    def _attribute_files(self) -> dict[str, Attributes]:
        """The sets of attributes that were made before, by name."""
        found = {}
        for name, file in self.experiment.attribute_files.items():
            with placed(self.experiment, "[attributes], file" if not name else f"[attributes], files, {name}"):
                read = Attributes.read(file)
            found[name] = _named(read, name or read.record.name or file.stem)
        return found

    def _attributes(self, catalog: Catalog) -> dict[str, Attributes | None]:
        """Sets of attributes by name."""
        found: dict[str, Attributes | None] = {}
        for name, given in self._attribute_files().items():
            found[name] = self._step(
                Attributes, _attributes_file(name), [given], given.record.name, lambda given=given: given
            )
        for name, chosen in self.experiment.detectors.items():
            spelled = " + ".join(map(str, chosen))

            def make(name: str = name, chosen: Any = chosen, spelled: str = spelled) -> Attributes:
                return _named(detect(catalog, *chosen), name or spelled)

            found[name] = self._step(Attributes, *self._detection(catalog, name), make)
        return found

    def _detection(self, catalog: Catalog, name: str) -> tuple[str, list[Any], list[str]]:
        """The file of a set of attributes, what it is made from, and by what."""
        chosen = self.experiment.detectors[name]
        stamps = [_file_stamps(one) for one in chosen]
        return _attributes_file(name), [catalog, _files(catalog), stamps], [name, *map(str, chosen)]

    def _features(self, catalog: Catalog, encoder: Any) -> Features | None:
        def make() -> Features:
            return encode(catalog, encoder, on_error=self.experiment.on_error)

        encoded = self._step(Features, *self._encoding(catalog, encoder), make)
        return None if encoded is None else transform(encoded, self.experiment.transforms)

    def _encoding(self, catalog: Catalog, encoder: Any) -> tuple[str, list[Any], list[str]]:
        """The file of an encoder's features, what it is made from, and by what."""
        inputs = [catalog, _files(catalog), _file_stamps(encoder)]
        return f"features-{file_name(str(encoder))}.parquet", inputs, [str(encoder), self.experiment.on_error]

    def _readable(self, catalog: Catalog, features: dict[str, Features | None]) -> Catalog:
        """Without the items whose files some encoder could not read."""
        skipped = sorted({item for one in features.values() if one is not None for item in one.record.skipped})
        if not skipped:
            return catalog
        keep = pc.invert(pc.is_in(catalog.table.column("item"), value_set=pa.array(skipped)))
        readable = Catalog(catalog.table.filter(keep), catalog.root, catalog.record)
        self.steps.tell(f"left out     {len(skipped)} unreadable items, e.g. {skipped[0]}")
        written = self._step(Catalog, "catalog-readable.parquet", [catalog, skipped], None, lambda: readable)
        return readable if written is None else written

    def _tasks(
        self, catalog: Catalog, attributes: dict[str, Attributes | None], features: dict[str, Features | None]
    ) -> dict[str, TaskSet | None]:
        """Task sets by the name of their file: one for each sampler, set of attributes, number of shots and seed."""
        found: dict[str, TaskSet | None] = {}
        of_sampler: dict[tuple[str, int, int], TaskSet | None] = {}
        for draw in self.experiment.draws:
            for sampler in draw.sampler.sets(catalog).values():
                for words in self._attribute_names(draw, sampler, attributes):
                    for shot in draw.shots:
                        for seed in draw.seeds:
                            data = self._data(draw, sampler, words, (shot, seed), attributes, features, of_sampler)
                            name = self._task_file(draw, sampler, words, shot, seed)
                            found[name] = self._task_set(name, catalog, draw, sampler, shot, seed, data)
                            of_sampler.setdefault((str(draw.sampler), shot, seed), found[name])
                            if self.experiment.placebo and sampler.has_placebo:
                                sham = name.replace("tasks-", "tasks-placebo-of-", 1)
                                like = {"like": found[name]}
                                found[sham] = self._task_set(sham, catalog, draw, Placebo(), shot, seed, like)
        return found

    def _task_set(
        self, name: str, catalog: Catalog, draw: Draw, sampler: Sampler, shot: int, seed: int, data: dict[str, Any]
    ) -> TaskSet | None:
        shape: dict[str, Any] = {"way": draw.way, "shot": shot, "query": draw.query, "tasks": draw.tasks, "seed": seed}

        def make() -> TaskSet:
            return sample(catalog, sampler, split=draw.split, **shape, **data)

        made: TaskSet | None = self._step(
            TaskSet,
            name,
            [catalog, *data.values(), _file_stamps(sampler)],
            [str(sampler), shape, draw.split, sorted(data)],
            make,
        )
        return made

    def _attribute_names(
        self, draw: Draw, sampler: Sampler, attributes: dict[str, Attributes | None]
    ) -> list[str | None]:
        """The sets of attributes that a sampler is given, one after the other; None: none."""
        if draw.attributes is not None:
            return [draw.attributes]
        return list(attributes) if "attributes" in sampler.takes and attributes else [None]

    def _data(
        self,
        draw: Draw,
        sampler: Sampler,
        words: str | None,
        place: tuple[int, int],
        attributes: dict[str, Attributes | None],
        features: dict[str, Features | None],
        drawn: dict[tuple[str, int, int], TaskSet | None],
    ) -> dict[str, Any]:
        """What a sampler takes beside the catalog; None in a dry run where it is not there yet."""
        data: dict[str, Any] = {}
        if words is not None and "attributes" in sampler.takes:
            data["attributes"] = attributes[words]
        if "features" in sampler.takes:
            data["features"] = features[draw.encoder or next(iter(features))]
        if draw.like is not None:
            data["like"] = drawn[draw.like, *place]
        return data

    def _task_file(self, draw: Draw, sampler: Sampler, words: str | None, shot: int, seed: int) -> str:
        parts = [file_name(str(sampler)), *([file_name(words)] if words else [])]
        parts += [f"on-{file_name(draw.encoder)}"] if draw.encoder else []
        parts += [f"like-{file_name(draw.like)}"] if draw.like else []
        parts += [f"{draw.way}way-{shot}shot", *([f"seed{seed}"] if draw.seeds != (0,) else [])]
        default = self.experiment.draws[0]
        parts += [f"{draw.query}query"] if draw.query != default.query else []
        parts += [f"{draw.tasks}tasks"] if draw.tasks != default.tasks else []
        parts += [f"split-{file_name(draw.split)}"] if draw.split and draw.split != default.split else []
        return f"tasks-{'-'.join(parts)}.parquet"

    def _results(
        self,
        tasks: dict[str, TaskSet | None],
        features: dict[str, Features | None],
        catalog: Catalog,
        models: dict[str, Model],
    ) -> list[Results | None]:
        """One file per task set, encoder or model, and method; those that are missing are evaluated together."""
        on_features = [method for method in self.experiment.methods if method.needs != "items"]
        on_networks = [method for method in self.experiment.methods if isinstance(method, Adaptation)]
        on_items = [
            method for method in self.experiment.methods if method.needs == "items" and method not in on_networks
        ]
        results: list[Results | None] = []
        for task_file, task_set in tasks.items():
            for encoder, encoded in features.items():
                results += self._evaluated(task_file, task_set, encoder, encoded, on_features)
            results += self._evaluated(task_file, task_set, ON_ITEMS, catalog, on_items)
            for name, model in models.items():
                results += self._evaluated(task_file, task_set, name, catalog, on_networks, model)
        return results

    def _evaluated(
        self,
        task_file: str,
        task_set: TaskSet | None,
        encoder: str,
        on: Features | Catalog | None,
        methods: Sequence[Method],
        model: Model | None = None,
    ) -> list[Results | None]:
        """What methods count on the features of one encoder, or on the items, where they may adapt a model."""
        steps, seed = self.steps, self.experiment.seed
        inputs: list[Any] = [task_set, on, *([_files(on)] if isinstance(on, Catalog) else [])]
        inputs += [] if model is None else [model]
        stem = task_file.removeprefix("tasks-").removesuffix(".parquet")
        names = {
            method.spelling: f"results/{stem}/{file_name(encoder)}/{file_name(method.spelling)}.parquet"
            for method in methods
        }
        self.files += names.values()
        parameters = {method.spelling: _method_parameters(method, seed) for method in methods}
        missing = [
            method
            for method in methods
            if not steps.is_current(names[method.spelling], inputs, parameters[method.spelling])
        ]
        made: dict[str, Results | None] = {}
        for method in missing:
            steps.announce(names[method.spelling])
        if missing and not steps.dry_run:
            assert task_set is not None
            assert on is not None
            given: dict[str, Any] = {"catalog": on, "model": model} if isinstance(on, Catalog) else {"features": on}
            given |= {"seed": seed, "allow_seen": self.experiment.allow_seen}
            for one in evaluate(task_set, methods=missing, **given).by_method():
                (spelling,) = one.methods
                made[spelling] = steps.keep(names[spelling], one, inputs, parameters[spelling])
        for method in methods:
            if method not in missing:
                made[method.spelling] = steps.step(
                    Results, names[method.spelling], inputs, parameters[method.spelling], _never
                )
        return [made.get(method.spelling) for method in methods]


def _never() -> Any:
    raise AssertionError("the file is up to date")


def _attributes_file(name: str) -> str:
    return f"attributes-{file_name(name)}.parquet" if name else "attributes.parquet"


def _named(attributes: Attributes, name: str) -> Attributes:
    return Attributes(attributes.table, replace(attributes.record, name=name))


def _method_parameters(method: Method, seed: int) -> list[Any]:
    """What decides a method's answers; of one's own code, the digest of its file is among the parameters."""
    return [method.spelling, method.parameters(), seed]


def _file_stamps(component: Any) -> list[Any]:
    """Size and time of the files that a component's options name."""
    named = [getattr(component, option.name) for option in component.options() if option.path]
    return [stamp(Path(value)) for value in named if isinstance(value, str | Path)]


def _files(catalog: Catalog) -> str:
    """A digest of the sizes and times of a catalog's files: cheap to make, and another one when a file changes."""
    stamps = [stamp(path) for path in catalog.paths]
    return hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:32]
