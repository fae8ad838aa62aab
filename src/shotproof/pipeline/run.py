"""A whole experiment, top to bottom: catalog, mixtures, attributes, features, tasks, results, report.

What a long step has done is kept when it is interrupted: features in their cache, captions in their log. Results are
one file per task set, encoder and method, so that a method that is added is the only one to be evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from shotproof.core.errors import InsufficientData, Mismatch
from shotproof.core.files import is_there
from shotproof.core.runtime.runtime import Runtime, current_runtime
from shotproof.core.runtime.runtime import runtime as current_with
from shotproof.core.trust import Trust, asking_for_packages, trusting
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.features.transforms import transform
from shotproof.pipeline.checks import check_draws, check_models, check_surroundings, check_tuning, placed, with_stages
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.models import read_models
from shotproof.pipeline.steps.drawn_sets import DrawnSet, DrawnSets
from shotproof.pipeline.steps.evaluated_files import EvaluatedFiles
from shotproof.pipeline.steps.stamps import catalog_stamp, file_stamps
from shotproof.pipeline.steps.steps import Steps, Tell, file_name
from shotproof.sounds.mix import expected_mixtures, mix
from shotproof.stats.comparison import Comparison
from shotproof.tasks.sampler import samplers
from shotproof.tasks.shape import TaskShape
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model


SIZES = ("way", "shot", "query")


@dataclass(frozen=True)
class Run:
    """What a run gave: the comparison (None in a dry run), the page, and which files were made and which reused.

    material: all that was compared; None in a dry run
    left_out: why the data could not give the tasks of a sampler, by its spelling, where that was no error
    """

    comparison: Comparison | None
    report: Path
    made: list[str]
    reused: list[str]
    material: Material | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)


def run(
    experiment: str | Path | Experiment,
    *,
    dry_run: bool = False,
    trust: Trust = False,
    leave_out: bool = False,
    halvings: int | None = None,
    tell: Tell = lambda line: None,
    runtime: Runtime | None = None,
) -> Run:
    """Run an experiment; whatever is up to date is not made again.

    Args:
        experiment: the file that describes it, or what was read from one
        dry_run: make and write nothing, and tell what would be made
        trust: whether code that the file names (`heads.py:Head`, `python:`, what other packages have registered) may be
            imported, and servers that it names be asked; or which, as `NotTrusted` tells it
        leave_out: leave out samplers, other than the first, whose tasks the data cannot give; these are an error
            otherwise
        halvings: how often the data is halved at random, for intervals that re-evaluate
        tell: receives one line per step
        runtime: how to compute; what the file says goes before what is current

    Returns:
        The comparison, the page, and the files.

    Raises:
        NotTrusted: the file, or a model that it names, names code or a server that is not trusted; nothing was
            imported or made.
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
        experiment = Experiment.read(experiment, trust)
    with placed(experiment, "[runtime]"):
        runtime = runtime or current_with(**experiment.runtime)
    # Intervals draw its tasks anew, from their records: files that the experiment itself names may be read.
    named = [reach.what for draw in experiment.draws for reach in draw.sampler.reaches()]
    asking = asking_for_packages(experiment.file is not None)
    with runtime, trusting(trust), trusting(named), asking, Steps(experiment.folder, dry_run, tell) as steps:
        return _Running(experiment, steps, leave_out, halvings).run()


def read_catalog(experiment: Experiment) -> Catalog:
    """The data of an experiment, before anything is mixed: looked at anew, so that changed files are seen."""
    given = experiment
    if given.catalog_file is not None:
        catalog = Catalog.read(given.catalog_file)
        catalog = catalog if given.root is None else Catalog(catalog.table, given.root, catalog.record)
        catalog = catalog if given.splits is None else apply_splits(catalog, given.splits)
        catalog = catalog if given.names is None or given.mix else apply_names(catalog, given.names)
        if not catalog.record.name or given.name:
            named = given.name or given.catalog_file.stem
            catalog = Catalog(catalog.table, catalog.root, replace(catalog.record, name=named))
    else:
        assert given.root is not None
        assert given.layout is not None
        names = None if given.mix else given.names  # of mixtures, they are given to these
        catalog = read_layout(given.root, given.layout, splits=given.splits, names=names, name=given.name)
    return catalog if given.only_split is None or given.mix else catalog.in_split(given.only_split)


@dataclass
class _Running:
    """A run while it goes on."""

    experiment: Experiment
    steps: Steps
    leave_out: bool = False
    halvings: int | None = None
    left_out: dict[str, str] = field(default_factory=dict)

    def run(self) -> Run:
        with placed(self.experiment, "[evaluate], model"):
            models = read_models(self.experiment)
        catalog = self._kept(self._checked_catalog(models))
        attributes = self._attributes(catalog)
        features = {str(encoder): self._features(catalog, encoder) for encoder in self.experiment.encoders}
        catalog = self._readable(catalog, features)
        tasks = self._drawn(DrawnSets(self.experiment, self.steps, catalog, attributes, features))
        results = EvaluatedFiles(self.experiment, self.steps, catalog, features, models).on(tasks)
        page = self.experiment.folder / "report.html"
        if self.steps.dry_run:
            self.steps.tell(f"would write  {page.name}")
            return Run(None, page, self.steps.made, self.steps.reused, left_out=self.left_out)
        from shotproof.pipeline.report import write_report

        self.steps.finish()
        material = Material(
            results=[one for one in results if one is not None],
            tasks=[one.tasks for one in tasks.values() if one.tasks is not None],
            catalogs=[catalog],
            features=[one for one in features.values() if one is not None],
            attributes=[one for one in attributes.values() if one is not None],
            methods=self.experiment.methods,
            halvings=self.halvings,
            folders=[self.experiment.folder, *(file.parent for file in self.experiment.task_files)],
        )
        given = self.experiment
        comparison = write_report(
            page,
            material,
            title=given.title,
            intervals=given.intervals,
            metric=given.metric,
            placebo=given.placebo,
            projection=given.projection,
            mismatch=given.mismatch,
            experiment=given.file.name if given.file else None,
        )
        return Run(comparison, page, self.steps.made, self.steps.reused, material, self.left_out)

    def _drawn(self, sets: DrawnSets) -> dict[str, DrawnSet]:
        """Task sets drawn before, and those of every draw; without those that the data cannot give, where left out."""
        found = {}
        for name, given in self._task_files(sets.catalog).items():
            kept = self.steps.step(TaskSet, name, [given], None, lambda given=given: given)  # type: ignore[misc]
            shape = TaskShape(**{key: size for key, size in zip(SIZES, given.common_sizes(), strict=True) if size})
            found[name] = DrawnSet(kept, shape)
        for number, draw in enumerate(self.experiment.draws):
            files = list(self.steps.files)
            try:
                found |= sets.of_draw(draw)
            except InsufficientData as error:
                if not self.leave_out or number == 0:
                    raise
                self.steps.files[:] = files
                self.left_out[str(draw.sampler)] = str(error)
        return found

    def _task_files(self, catalog: Catalog) -> dict[str, TaskSet]:
        """The task sets that were drawn before, by the names of their files in the run's folder."""
        found = {}
        for file in self.experiment.task_files:
            with placed(self.experiment, "[tasks], files"):
                tasks = _with_files_beside(TaskSet.read(file), file.parent)
                drawn_from = tasks.record.source("catalog")
                if drawn_from not in (None, catalog.digest):
                    raise Mismatch(
                        f"the tasks of {file} were drawn from catalog {drawn_from}, not from {catalog.digest}"
                    )
                for side in ("support", "query"):
                    catalog.rows_of(pc.list_flatten(tasks.table.column(side)), f"the tasks of {file}")
            found[file.name if file.name.startswith("tasks-") else f"tasks-{file.name}"] = tasks
        return found

    def _check_draws(self, catalog: Catalog) -> None:
        """Refuse, or leave out, what the data cannot give."""
        self._task_files(catalog)
        attributes = self._attribute_files()
        kept = []
        for number, draw in enumerate(self.experiment.draws):
            try:
                check_draws(replace(self.experiment, draws=(draw,)), catalog, attributes)
            except InsufficientData as error:
                if not self.leave_out or number == 0:
                    raise
                self.left_out[str(draw.sampler)] = str(error.__cause__ or error)  # without its place in the file
            else:
                kept.append(draw)
        self.experiment = replace(self.experiment, draws=tuple(kept))

    def _kept(self, catalog: Catalog) -> Catalog:
        """The catalog as its file has it."""
        parameters = [catalog.record.name, catalog.record.to_meta()]
        written: Catalog | None = self.steps.step(Catalog, "catalog.parquet", [catalog], parameters, lambda: catalog)
        return catalog if written is None else written

    def _checked_catalog(self, models: dict[str, Model]) -> Catalog:
        """The data, and nothing made of it before all that is asked for was seen to be possible."""
        given = self.experiment
        runtime = current_runtime()
        check_surroundings(given, None if runtime.remote else runtime.device)  # other machines have other devices
        with placed(given, "[catalog]"):
            recordings = catalog = read_catalog(given)
        if given.mix is not None:
            with placed(given, "[mix]"):
                catalog = self._mixtures(recordings, make=False)
        self._check_draws(catalog)
        given = self.experiment
        check_models(given, models, catalog)
        check_tuning(given, models, catalog)
        given = self.experiment = with_stages(given, catalog)
        for name, chosen in given.detectors.items():
            if not self.steps.is_current(*self._detection(catalog, name)):
                with placed(given, "[attributes], detectors"):
                    for detector in chosen:
                        detector.check(catalog)
        for encoder in given.encoders:
            if not self.steps.is_current(*self._encoding(catalog, encoder)):
                with placed(given, "[features], encoders"):
                    encoder.check(catalog)
        if given.mix is not None:
            with placed(given, "[mix]"):
                mixed = self._mixtures(recordings, make=True)
            if mixed.digest != catalog.digest:  # some were left out, for silence or by a threshold
                self._check_draws(mixed)
            return mixed
        return catalog

    def _mixtures(self, recordings: Catalog, make: bool) -> Catalog:
        """The mixtures of the recordings: as they are, or made where they are not; else as they are expected to be."""
        given = self.experiment
        assert given.mix is not None
        mapping, settings = given.mix.mapping, given.mix.settings
        folder = given.mix.folder(recordings.digest)
        step = f"{folder}/catalog.parquet", [recordings, catalog_stamp(recordings)], given.mix.parameters
        mixed: Catalog | None = None
        if make:
            mixed = self.steps.step(Catalog, *step, lambda: mix(recordings, mapping, given.folder / folder, settings))
        elif self.steps.is_current(*step):
            mixed = Catalog.read(given.folder / step[0])
        if mixed is None:
            mixed = expected_mixtures(recordings, mapping, given.folder / folder, settings)
        mixed = mixed if given.names is None else apply_names(mixed, given.names)
        return mixed if given.only_split is None else mixed.in_split(given.only_split)

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

            def there(given: Attributes = given) -> Attributes:
                return given

            found[name] = self.steps.step(Attributes, _attributes_file(name), [given], given.record.name, there)
        for name, chosen in self.experiment.detectors.items():
            spelled = " + ".join(map(str, chosen))

            def make(name: str = name, chosen: Any = chosen, spelled: str = spelled) -> Attributes:
                return _named(detect(catalog, *chosen), name or spelled)

            found[name] = self.steps.step(Attributes, *self._detection(catalog, name), make)
        return found

    def _detection(self, catalog: Catalog, name: str) -> tuple[str, list[Any], list[str]]:
        """The file of a set of attributes, what it is made from, and by what."""
        chosen = self.experiment.detectors[name]
        stamps = [file_stamps(one) for one in chosen]
        return _attributes_file(name), [catalog, catalog_stamp(catalog), stamps], [name, *map(str, chosen)]

    def _features(self, catalog: Catalog, encoder: Any) -> Features | None:
        def make() -> Features:
            return encode(catalog, encoder, on_error=self.experiment.on_error)

        encoded = self.steps.step(Features, *self._encoding(catalog, encoder), make)
        return None if encoded is None else transform(encoded, self.experiment.transforms)

    def _encoding(self, catalog: Catalog, encoder: Any) -> tuple[str, list[Any], list[str]]:
        """The file of an encoder's features, what it is made from, and by what."""
        inputs = [catalog, catalog_stamp(catalog), file_stamps(encoder)]
        return f"features-{file_name(str(encoder))}.parquet", inputs, [str(encoder), self.experiment.on_error]

    def _readable(self, catalog: Catalog, features: dict[str, Features | None]) -> Catalog:
        """Without the items whose files some encoder could not read."""
        skipped = sorted({item for one in features.values() if one is not None for item in one.record.skipped})
        if not skipped:
            return catalog
        keep = pc.invert(pc.is_in(catalog.table.column("item"), value_set=pa.array(skipped)))
        readable = Catalog(catalog.table.filter(keep), catalog.root, catalog.record)
        self.steps.tell(f"left out     {len(skipped)} unreadable items, e.g. {skipped[0]}")
        written = self.steps.step(Catalog, "catalog-readable.parquet", [catalog, skipped], None, lambda: readable)
        return readable if written is None else written


def _attributes_file(name: str) -> str:
    return f"attributes-{file_name(name)}.parquet" if name else "attributes.parquet"


def _named(attributes: Attributes, name: str) -> Attributes:
    return Attributes(attributes.table, replace(attributes.record, name=name))


def _with_files_beside(tasks: TaskSet, folder: Path) -> TaskSet:
    """The task set, with files that its sampler's options name and that lie beside it: intervals draw it anew."""
    made = tasks.record.sampler
    if made is None or made.name not in samplers:
        return tasks
    named = {each.name: made.options.get(each.name) for each in samplers.get(made.name).options() if each.path}
    beside = {
        key: str(folder / name) for key, name in named.items() if isinstance(name, str) and is_there(folder / name)
    }
    record = replace(tasks.record, sampler=replace(made, options={**made.options, **beside}))
    return TaskSet(tasks.table, record) if beside else tasks
