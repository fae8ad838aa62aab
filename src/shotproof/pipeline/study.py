"""A study: data, classifiers, task sets and results, and all that is derived from them, each made once.

study = sp.Study("birds/", encoder="lite0")
study.evaluate(["ncc", "ridge"], on=["random", "fewstab"])
study.verdict()
study.report("report.html")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from shotproof.analysis.compare import compare as compare_inputs
from shotproof.analysis.explanation.explain import Explanation, check_mismatch, explain_hardest
from shotproof.analysis.explanation.mismatch import Pooling
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.make_card import make_card
from shotproof.analysis.projection import check_projection
from shotproof.analysis.similarity import Similarity
from shotproof.attributes.attributes import Attributes
from shotproof.attributes.detector import detectors
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.class_files import apply_splits
from shotproof.catalog.layout import layouts, read_layout
from shotproof.comparison.card import Card
from shotproof.comparison.comparison import Comparison
from shotproof.core.errors import InputError
from shotproof.core.limits import SEED
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.runtime.runtime import runtime as current_with
from shotproof.core.storage.files import is_folder
from shotproof.core.storage.store import OnError
from shotproof.core.trust import Trust, asking_for_packages, trusting, typed_by_user
from shotproof.features.encoder import Encoder, encoders
from shotproof.features.features import Features
from shotproof.learners.method import DEFAULT_METHODS, AnyMethod, make_method
from shotproof.pipeline.checks import placed
from shotproof.pipeline.draw_entries import Draw
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.method_uses import MethodUse
from shotproof.pipeline.read import read_inputs
from shotproof.pipeline.report import check_page_name, write_compared
from shotproof.pipeline.steps.experiment_steps import ExperimentSteps
from shotproof.pipeline.steps.owner import Owner
from shotproof.pipeline.steps.steps import ComparedBy, Steps, Tell
from shotproof.results.evaluated import Classifier
from shotproof.results.results import Results
from shotproof.tasks.sampler import Sampler, samplers
from shotproof.tasks.taskset import TaskSet

REPORT_FILE = "report.html"
USUAL_ENCODERS = {"image": "lite0", "sound": "logmel"}
USUAL_SAMPLERS: dict[str, tuple[Any, ...]] = {
    "image": ("random", "fewstab"),
    "sound": ("random", {"name": "hardest", "like": "random"}),  # sounds have no attributes yet
}


Part = str | Path | Results | TaskSet | Catalog | Features | Attributes


class Study:
    """Data, classifiers, task sets and results, and all that is derived from them.

    It makes what is missing when it is asked for, and makes nothing twice: in memory, or in a folder, where another
    study, or `shotproof run`, finds it again. Results find what they were made from, so that every statement is by the
    interval over images and beyond a placebo.

    Args:
        data: a folder of class folders, a catalog's file, or a catalog
        encoder: the spelling of an encoder, an encoder, features of your own, or several; by default `lite0` for images
            and `logmel` for sounds
        attributes: attributes of your own, or the spellings of detectors; by default `photometric` for images
        layout: how a data folder is read
        splits: a CSV with the columns label and split
        split: the one that tasks are drawn from; by default `test` if there are several
        folder: where files are kept; by default nothing is written
        seed: of methods that draw
        on_error: what to do about files that cannot be read: `raise` or `skip`
        tell: receives one line per step
        runtime: how to compute

    Raises:
        InputError: the data cannot be used, or the folder belongs to something else.

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=8, items=40)
        >>> features = sp.encode(world.catalog(), "dial(share=0.5)")
        >>> study = sp.Study(world.catalog(), encoder=features, attributes=world.attributes())
        >>> study.evaluate(["ncc", "ridge"], on=["random", "fewstab"], shots=[5], query=5, tasks=40)
        <Study of world of shapes: 2 methods on 3 task sets>
        >>> study.compare().covers
        ('images', 'sampler')
        >>> study.compare().to_pandas()["quantity"].unique().tolist()[:3]
        ['accuracy', 'gap', 'placebo']
    """

    @typed_by_user
    def __init__(
        self,
        data: str | Path | Catalog,
        *,
        encoder: str | Encoder | Features | Sequence[str | Encoder | Features] | None = None,
        attributes: Attributes | str | Sequence[str] | None = None,
        layout: str = "folder",
        splits: str | Path | None = None,
        split: str | None = None,
        folder: str | Path | None = None,
        seed: int = 0,
        on_error: OnError = "raise",
        tell: Tell = lambda line: None,
        runtime: Runtime | None = None,
    ) -> None:
        catalog = _read(data, layout, splits)
        if split is None and len(catalog.splits) > 1:
            if "test" not in catalog.splits:
                raise InputError(
                    f"the data has the splits {', '.join(catalog.splits)} and none called test: choose one"
                )
            split = "test"
        self._split = split
        chosen: list[Any] = [encoder] if isinstance(encoder, str | Encoder | Features) else list(encoder or ())
        if not chosen:
            if catalog.medium is None:
                raise InputError("the data is neither images nor sounds by its file names: name the encoder")
            chosen = [USUAL_ENCODERS[catalog.medium]]
        words = attributes
        if words is None and catalog.medium == "image":
            words = "photometric"
        at_hand = Inputs(
            catalogs=[catalog],
            features=[own for own in chosen if isinstance(own, Features)],
            attributes=[words] if isinstance(words, Attributes) else [],
        )
        named = [words] if isinstance(words, str) else [] if words is None or isinstance(words, Attributes) else words
        place = None if folder is None else Path(folder)
        experiment = Experiment(
            folder=place or Path(),
            root=Path(data) if isinstance(data, str | Path) else None,
            layout=layouts.make(layout),
            detectors={"": tuple(detectors.make(name) for name in named)} if named else {},
            encoders=tuple(encoders.make(own) for own in chosen if not isinstance(own, Features)),
            on_error=on_error,
            seed=SEED.check("seed", seed),
            at_hand=at_hand,
        )
        owner = None
        if place is not None:
            owner = Owner.of(experiment) if experiment.root else Owner("", "", f"catalog {catalog.digest}")
        self._begin(experiment, Steps(place, tell=tell, owner=owner), runtime)

    def _begin(
        self,
        experiment: Experiment | None,
        steps: Steps,
        runtime: Runtime | None = None,
        inputs: Inputs | None = None,
    ) -> None:
        self.experiment, self.steps, self._runtime = experiment, steps, runtime
        self._inputs = inputs
        self._trust: Trust = False
        self._compared: dict[Any, Comparison] = {}
        self.left_out: dict[str, str] = {}

    @classmethod
    def of(
        cls,
        parts: Part | Iterable[Part],
        *,
        methods: Sequence[AnyMethod] = (),
        halvings: int | None = None,
        trust: Trust = False,
        runtime: Runtime | None = None,
    ) -> Self:
        """Put together a study of what was made before: results find what they were made from by its digest.

        Args:
            parts: results, task sets, catalogs, features, attributes, files of these, and folders of runs; of a folder,
                what its last run consists of
            methods: those of the results that cannot be made anew from their spelling, such as an estimator with its
                settings, or code of your own
            halvings: how often the data is halved at random, for intervals that re-evaluate
            trust: whether code that the files name may be imported, and files elsewhere be read
            runtime: how to compute

        Raises:
            InputError: a file is not there, or not of a kind that is of use here.
        """
        study = cls.__new__(cls)
        inputs = read_inputs(_listed(parts), halvings=halvings, trust=trust)
        assert isinstance(inputs.keeper, Steps)
        study._begin(None, inputs.keeper, runtime=runtime, inputs=replace(inputs, methods=list(methods)))
        study._trust = trust
        return study

    def __repr__(self) -> str:
        if self._inputs is None:
            return f"<Study of {self.catalog.record.name}: nothing evaluated>"
        methods = dict.fromkeys(method for results in self.results for method in results.methods)
        names = dict.fromkeys(catalog.record.name for catalog in self._inputs.catalogs)
        sets = dict.fromkeys(results.record.tasks_digest for results in self.results)
        of = f" of {', '.join(filter(None, names))}" if any(names) else ""
        return f"<Study{of}: {len(methods)} methods on {len(sets)} task sets>"

    @property
    def inputs(self) -> Inputs:
        """All that was evaluated, and what it was made from.

        Raises:
            InputError: nothing was evaluated.
        """
        if self._inputs is None:
            raise InputError("nothing was evaluated yet: study.evaluate([...], on=[...])")
        return self._inputs

    @property
    def results(self) -> list[Results]:
        """The results of all evaluations."""
        return list(self.inputs.results)

    @property
    def tasks(self) -> list[TaskSet]:
        """The task sets of all evaluations."""
        return list(self.inputs.tasks)

    @property
    def catalog(self) -> Catalog:
        """The data."""
        if self._inputs is None:
            assert self.experiment is not None  # a study of files has results
            return self.experiment.at_hand.catalogs[0]
        return self._inputs.catalogs[0]

    @property
    def features(self) -> dict[str, Features]:
        """The features, by the name of their encoder."""
        return {features.name: features for features in self.inputs.features}

    @property
    def made(self) -> list[str]:
        """The files that were made, in the order of the steps."""
        return self.steps.made

    @property
    def reused(self) -> list[str]:
        """The files that were up to date, in the order of the steps."""
        return self.steps.reused

    @property
    def page(self) -> Path:
        """The report of the study's folder."""
        return (self.steps.folder or Path()) / REPORT_FILE

    @typed_by_user
    def evaluate(
        self,
        methods: AnyMethod | Sequence[AnyMethod] = DEFAULT_METHODS,
        on: str | Sampler | Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        way: int = 5,
        shots: Sequence[int] = (1, 5),
        query: int = 15,
        tasks: int | None = 600,
        seeds: Sequence[int] = (0,),
        placebo: bool = True,
    ) -> Self:
        """Evaluate methods on task sets: each draws its tasks, and the placebos of these, once.

        What was evaluated before stays in the study.

        Args:
            methods: spellings, methods, or objects with scikit-learn's `fit` and `predict`
            on: samplers: spellings, samplers, or tables of a name, its options and `like`, `encoder`, `split`; by
                default `random` and `fewstab`, for sounds `random` and `hardest`
            way, shots, query, tasks, seeds: of the task sets
            placebo: evaluate the placebos of task sets that attributes or contexts decide

        Returns:
            The study.

        Raises:
            InputError: a method, a sampler or a number cannot be, or the data cannot give the tasks.
        """
        if self.experiment is None:
            raise InputError("this study was read from files: to evaluate more, make one of the data, Study(DATA)")
        listed = [methods] if isinstance(methods, str | Mapping) or not isinstance(methods, Sequence) else methods
        chosen = on if on is not None else USUAL_SAMPLERS.get(self.catalog.medium or "", ("random",))
        entries = [chosen] if isinstance(chosen, str | Sampler | Mapping) else list(chosen)
        shape: dict[str, Any] = {
            "way": way,
            "shots": tuple(shots),
            "query": query,
            "tasks": tasks,
            "seeds": tuple(seeds),
        }
        draws = [_draw(entry, {"split": self._split, **shape}) for entry in entries]
        uses = [MethodUse(make_method(method)) for method in listed]
        known = {use.method.spelling for use in self.experiment.uses}
        experiment = replace(
            self.experiment,
            draws=tuple(dict.fromkeys([*self.experiment.draws, *draws])),
            uses=(*self.experiment.uses, *(use for use in uses if use.method.spelling not in known)),
            placebo=placebo,
        )
        self._make(experiment)
        self.experiment = experiment
        return self

    def compare(
        self,
        *,
        intervals: str | Sequence[str] | None = None,
        level: float = 0.95,
        metric: str | None = None,
        correct: bool = True,
        placebo: bool | None = None,
    ) -> Comparison:
        """Compare the classifiers: intervals that name what they cover, ranks, pairs, and what is lost.

        Args:
            intervals: what they cover: `sampler`, `depletion`, `images`, `classes`; by default `images` if the data
                allows, and `sampler`. Statements and tables are by the first that can be given
            level: of the intervals
            metric: what ranks and statements are by, `acc` or `wacc`
            correct: by Holm for the number of pairs
            placebo: draw and evaluate placebos that the results lack

        Returns:
            The comparison; of the same arguments the same one.
        """
        usual = self._compared_by
        intervals = usual.intervals if intervals is None else intervals
        intervals = (intervals,) if isinstance(intervals, str) else intervals and tuple(intervals)
        metric = metric or usual.metric
        placebo = usual.placebo if placebo is None else placebo
        key = (intervals, level, metric, correct, placebo, tuple(results.digest for results in self.results))
        if key not in self._compared:
            with resolve(self._runtime), trusting(self._trust):
                self._compared[key] = compare_inputs(
                    self.inputs, intervals=intervals, level=level, metric=metric, correct=correct, placebo=placebo
                )
        return self._compared[key]

    @property
    def _compared_by(self) -> ComparedBy:
        """Return how results are compared by default: as the experiment, or the only run that was read, has it."""
        runs = self.steps.before
        return runs[0].manifest.compared_by if len(runs) == 1 else self.steps.compared_by

    def verdict(self) -> list[str]:
        """Say what was measured and what came out: nothing that an interval does not support."""
        return self.compare().verdict()

    def summary(self) -> list[str]:
        """Say what the classifiers lean on most, whom it hurts and which to take, in plain words."""
        return self.compare().summary()

    def card(self, method: str | None = None, encoder: str | None = None) -> Card:
        """Return the robustness card of one classifier, by default the first; the others are what it is ranked among.

        Args:
            method: its spelling
            encoder: the name of its features
        """
        comparison = self.compare()
        fits = (
            classifier
            for classifier in comparison.classifiers
            if method in (None, classifier.method) and encoder in (None, classifier.encoder)
        )
        classifier = next(fits, Classifier(encoder or "", method or ""))
        return make_card(comparison, self.inputs, classifier)

    def explain(self, *, mismatch: Pooling = "class", level: float = 0.95) -> list[Explanation]:
        """Say why tasks are hard: what their supports have and their queries lack, against the reference and chance.

        Args:
            mismatch: between support and query: `class` by class, or `pooled` over the classes of a task
            level: of the intervals

        Returns:
            An explanation of each group of matched task sets that is not random alone, the hardest set first.

        Raises:
            InputError: there is no such kind of mismatch.
        """
        check_mismatch(mismatch)
        with resolve(self._runtime), trusting(self._trust):
            return [explanation for explanation, _ in explain_hardest(self.inputs, mismatch=mismatch, level=level)]

    def report(
        self,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        comparison: Comparison | None = None,
        figures: str | Path | None = None,
        mismatch: Pooling | None = None,
        projection: str | None = None,
        similarity: Similarity | None = None,
    ) -> Path:
        """Write the comparison as a page that opens offline, with all that the study can show.

        Args:
            path: the page, `.html`; by default `report.html` in the study's folder
            title: the page's
            comparison: what is shown; by default what `compare()` gives
            figures: a folder for the figures of the comparison, as SVG, PDF and PNG
            mismatch: between support and query, of why tasks are hard: `class`, the default, or `pooled`
            projection: how an iid task and its ood one are laid out on a plane: `pca`, the default, `tsne` or `none`
            similarity: adds how near the images are to their concepts and contexts

        Returns:
            The page. If it is in the study's folder and up to date, it is not written again.

        Raises:
            InputError: the page's name ends in something else, or there is no such kind of mismatch.
            UnknownName: there is no such projection.
        """
        page, asked = self.page if path is None else Path(path), self.experiment
        check_page_name(page, "figures=FOLDER")
        mismatch = mismatch or (asked.mismatch if asked else "class")
        projection = projection or (asked.projection if asked else "pca")
        check_mismatch(mismatch)
        check_projection(projection)
        title = title or (asked.title if asked else None)
        experiment = asked.file.name if asked and asked.file else None
        comparison = comparison or self.compare()

        def write(to: Path) -> None:
            shown: dict[str, Any] = {"mismatch": mismatch, "projection": projection, "similarity": similarity}
            with resolve(self._runtime), trusting(self._trust):
                write_compared(
                    to, comparison, self.inputs, title=title, figures=figures, experiment=experiment, **shown
                )

        if self.steps.folder is None or page != self.page or figures is not None or similarity is not None:
            write(page)
        else:
            inputs = self.inputs
            how = [comparison.covers, comparison.level, comparison.metric, comparison.corrected, inputs.halvings]
            made = (*inputs.results, *inputs.tasks, *inputs.catalogs, *inputs.features, *inputs.attributes)
            # It has pictures of the items, and names of the classes.
            told = [[catalog.stamp, catalog.record.to_meta()] for catalog in inputs.catalogs]
            self.steps.write_file(REPORT_FILE, [*made, told], [how, title, mismatch, projection, experiment], write)
        return page

    def _make(self, experiment: Experiment, leave_out: bool = False) -> None:
        how = ComparedBy(experiment.intervals, experiment.metric, experiment.placebo, self.steps.compared_by.quick)
        self.steps.compared_by = how
        making = ExperimentSteps(experiment, self.steps, leave_out)
        with resolve(self._runtime), trusting(self._trust), self.steps:
            inputs = making.make()
        self.left_out = making.left_out
        if inputs is not None:
            self._inputs = inputs.quickly() if self.steps.compared_by.quick else inputs


def run(
    experiment: str | Path | Experiment,
    *,
    dry_run: bool = False,
    trust: Trust = False,
    leave_out: bool = False,
    quick: bool = False,
    made_by: str = "",
    verbose: bool = False,
    tell: Tell = lambda line: None,
    runtime: Runtime | None = None,
) -> Study:
    """Run an experiment; whatever is up to date is not made again.

    The output folder belongs to the experiment and its data from the first file on.

    Args:
        experiment: the file that describes it, or what was read from one
        dry_run: make and write nothing, and tell what would be made
        trust: whether code that the file names (`heads.py:Head`, `python:`, what other packages have registered) may be
            imported, and servers that it names be asked; or which, as `NotTrusted` tells it
        leave_out: leave out samplers, other than the first, whose tasks the data cannot give; these are an error
            otherwise
        quick: re-evaluate less for the intervals that need it, which makes them wider
        made_by: the command, or the bundle, that made the experiment for its output folder
        verbose: tell every file, too
        tell: receives one line per step
        runtime: how to compute; what the file says goes before what is current

    Returns:
        The study, with its comparison and its report made, unless it is a dry run.

    Raises:
        NotTrusted: the file, or a model that it names, names code or a server that is not trusted; nothing was
            imported or made.
        InputError: the file, the data or what it names cannot be used, or the output folder belongs to another
            experiment or to other data; the message says which.

    Example:
        >>> import tempfile, shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog = sp.worlds.ShapesWorld(classes=5, items=16, size=16).write(folder / "shapes")
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
    study = Study.__new__(Study)
    owner = Owner.of(experiment, made_by)
    steps = Steps(experiment.folder, dry_run, tell, owner, verbose, ComparedBy(quick=quick))
    study._begin(experiment, steps, runtime=runtime)
    with runtime, trusting(trust), trusting(named), asking_for_packages(experiment.file is not None):
        study._make(experiment, leave_out)
        if dry_run:
            tell(f"would write  {REPORT_FILE}")
            return study
        with steps:
            with steps.stage("intervals") as stage:
                comparison = study.compare()
                stage.done = ", ".join(name for name in comparison.covers if name not in comparison.refused)
            with steps.stage("report") as stage:
                study.report()
                stage.done = REPORT_FILE
        if not study.made:
            tell(f"nothing to compute: all {len(study.reused):,} files are up to date")
    return study


def compare(
    parts: Study | Part | Iterable[Part],
    *,
    intervals: str | Sequence[str] | None = None,
    level: float = 0.95,
    metric: str | None = None,
    correct: bool = True,
    placebo: bool | None = None,
    methods: Sequence[AnyMethod] = (),
    halvings: int | None = None,
    trust: Trust = False,
    runtime: Runtime | None = None,
) -> Comparison:
    """Compare classifiers that were evaluated, of any number of data sets, designs and samplers.

    Args:
        parts: a study, or what `Study.of` takes: results and, for placebos and all intervals but `sampler`, what they
            were made from, or the folders of runs
        intervals, level, metric, correct, placebo: as `Study.compare` takes them
        methods, halvings, trust, runtime: as `Study.of` takes them

    Returns:
        The comparison; `.to_pandas()`, `.to_latex()`, `.to_html()`, `.to_json()` and `.plot()` export it.

    Raises:
        Mismatch: results that claim the same tasks are not on the same tasks.
        InputError: an interval or metric is unknown, or what an interval needs is not there.

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=12, items=40)
        >>> features = sp.encode(world.catalog(), "dial(share=0.5)")
        >>> tasks = sp.sample(world.catalog(), "random", tasks=20, query=5)
        >>> results = sp.evaluate(tasks, features, ["ncc", "knn"])
        >>> compare(results).covers
        ('sampler',)
        >>> compare([results, tasks, world.catalog(), features], halvings=4).covers
        ('images', 'sampler')
    """
    study = parts
    if not isinstance(study, Study):
        study = Study.of(study, methods=methods, halvings=halvings, trust=trust, runtime=runtime)
    return study.compare(intervals=intervals, level=level, metric=metric, correct=correct, placebo=placebo)


def _listed(parts: Part | Iterable[Part]) -> list[Part]:
    return [parts] if isinstance(parts, Part) else list(parts)


def _read(data: str | Path | Catalog, layout: str, splits: str | Path | None) -> Catalog:
    """Read the data, with its splits."""
    if not isinstance(data, Catalog):
        if is_folder(Path(data)) or layout != "folder":
            return read_layout(data, layout, splits=splits)
        data = Catalog.read(data)
    return data if splits is None else apply_splits(data, Path(splits))


def _draw(entry: str | Sampler | Mapping[str, Any], shape: Mapping[str, Any]) -> Draw:
    """Read one entry of the samplers: a spelling, a sampler, or a table of a name, its options and what it is given."""
    table: dict[str, Any] = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
    beside = {each.name: table.pop(each.name) for each in Draw.beside() if each.name in table}
    is_made = isinstance(table.get("name"), Sampler)
    sampler = table["name"] if is_made else samplers.make(entry if isinstance(entry, str) else table)
    return Draw(sampler=sampler, **{**shape, **beside})
