"""Study: data, classifiers, task sets and results, and everything derived from them, each computed once.

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
from shotproof.changes.change import Change
from shotproof.comparison.card import Card
from shotproof.comparison.comparison import Comparison
from shotproof.core.errors import InputError
from shotproof.core.limits import SEED
from shotproof.core.nouns import counted
from shotproof.core.plain_values import plain
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.core.runtime.runtime import runtime as make_runtime
from shotproof.core.storage.files import is_folder, path_exists
from shotproof.core.storage.store import OnError
from shotproof.core.trust import Trust, asking_for_packages, trusting, typed_by_user
from shotproof.cures.cure import CURE_FILE, Cure
from shotproof.cures.remedy import Remedy
from shotproof.cures.search import TASKS_TO_CHOOSE
from shotproof.features.encoder import Encoder, encoders
from shotproof.features.features import Features
from shotproof.learners.method import DEFAULT_METHODS, AnyMethod, make_method
from shotproof.pipeline.checks import error_location
from shotproof.pipeline.cure import CURE_FOLDER, cure_inputs, experiment_of, read_cure, write_cure
from shotproof.pipeline.cure_section import CureSection
from shotproof.pipeline.draw_entries import Draw, changed_draws, with_reference
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.method_uses import MethodUse
from shotproof.pipeline.read import read_inputs
from shotproof.pipeline.report import check_page_name, write_compared
from shotproof.pipeline.steps.experiment_steps import ExperimentSteps
from shotproof.pipeline.steps.owner import Owner
from shotproof.pipeline.steps.steps import ComparedBy, Log, Steps
from shotproof.report.pages.cure_page import CURE_PAGE, write_cure_page
from shotproof.results.evaluated import Classifier
from shotproof.results.results import Results
from shotproof.tasks.changed import Side
from shotproof.tasks.sampler import Sampler, samplers
from shotproof.tasks.taskset import TaskSet

REPORT_FILE = "report.html"
_READ_FROM_FILES = "this study was read from files"
DEFAULT_ENCODERS = {"image": "lite0", "sound": "logmel"}
DEFAULT_SAMPLERS: dict[str, tuple[Any, ...]] = {
    "image": ("random", "fewstab"),
    "sound": ("random", {"name": "hardest", "like": "random"}),  # sounds have no attributes yet
}


Part = str | Path | Results | TaskSet | Catalog | Features | Attributes


class Study:
    """Data, classifiers, task sets and results, and everything derived from them.

    Whatever is missing is computed on request, and nothing is computed twice: it is kept in memory, or in a folder,
    where another study or `shotproof run` can reuse it. Results are linked to the data they were computed from, so that
    statements can use the interval over images and be compared with a placebo.

    Args:
        data: folder of class folders, catalog file, or catalog
        encoder: spelling of an encoder, encoder, features, or several of them; by default `lite0` for images and
            `logmel` for sounds
        attributes: attributes, or the spellings of detectors; by default `photometric` for images
        layout: layout of the data folder
        splits: CSV with the columns label and split
        split: split that tasks are drawn from; by default `test` if there are several
        folder: folder for files; by default nothing is written
        seed: random seed of the methods
        on_error: what to do with unreadable files: `raise` or `skip`
        log: called with one line per step
        runtime: runtime settings

    Raises:
        InputError: the data cannot be used, or the folder belongs to something else.

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=8, items=40)
        >>> features = sp.encode(world.catalog(), "dial(share=0.5)")
        >>> study = sp.Study(world.catalog(), encoder=features, attributes=world.attributes())
        >>> study.evaluate(["ncc", "ridge"], on=["random", "fewstab"], shots=[5], query=5, tasks=40)
        <Study of world of shapes: 2 methods on 3 task sets>
        >>> study.compare().interval_names
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
        log: Log = lambda line: None,
        runtime: Runtime | None = None,
    ) -> None:
        catalog = _read_data(data, layout, splits)
        if split is None and len(catalog.splits) > 1:
            if "test" not in catalog.splits:
                raise InputError(f"the data has the splits {', '.join(catalog.splits)} but none named test: choose one")
            split = "test"
        self._split = split
        encoder_inputs: list[Any] = [encoder] if isinstance(encoder, str | Encoder | Features) else list(encoder or ())
        if not encoder_inputs:
            if catalog.medium is None:
                raise InputError("the file names do not show whether the data is images or sounds: name the encoder")
            encoder_inputs = [DEFAULT_ENCODERS[catalog.medium]]
        attribute_input = attributes
        if attribute_input is None and catalog.medium == "image":
            attribute_input = "photometric"
        inputs = Inputs(
            catalogs=[catalog],
            features=[encoder_input for encoder_input in encoder_inputs if isinstance(encoder_input, Features)],
            attributes=[attribute_input] if isinstance(attribute_input, Attributes) else [],
        )
        detector_names = (
            [attribute_input]
            if isinstance(attribute_input, str)
            else []
            if attribute_input is None or isinstance(attribute_input, Attributes)
            else attribute_input
        )
        output_folder = None if folder is None else Path(folder)
        experiment = Experiment(
            folder=output_folder or Path(),
            root=Path(data) if isinstance(data, str | Path) else None,
            layout=layouts.make(layout),
            detectors={"": tuple(detectors.make(name) for name in detector_names)} if detector_names else {},
            encoders=tuple(
                encoders.make(encoder_input)
                for encoder_input in encoder_inputs
                if not isinstance(encoder_input, Features)
            ),
            on_error=on_error,
            seed=SEED.check("seed", seed),
            at_hand=inputs,
        )
        owner = None
        if output_folder is not None:
            owner = Owner.of(experiment) if experiment.root else Owner("", "", f"catalog {catalog.digest}")
        self._initialize(experiment, Steps(output_folder, log=log, owner=owner), runtime)

    def _initialize(
        self,
        experiment: Experiment | None,
        steps: Steps,
        runtime: Runtime | None = None,
        inputs: Inputs | None = None,
    ) -> None:
        """Set the initial state, which all constructors share."""
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
        """Build a study from existing files or objects; results are linked to their inputs by digest.

        Args:
            parts: results, task sets, catalogs, features, attributes, files of these, and run folders (the files of the
                last run)
            methods: methods of the results that cannot be rebuilt from their spelling, such as a configured estimator
                or custom code
            halvings: number of random halvings of the data, for intervals that re-evaluate
            trust: whether code named in the files may be imported and files elsewhere may be read
            runtime: runtime settings

        Raises:
            InputError: a file does not exist, or is of a kind that cannot be used here.
        """
        study = cls.__new__(cls)
        inputs = read_inputs(_as_list(parts), halvings=halvings, trust=trust)
        assert isinstance(inputs.keeper, Steps)
        study._initialize(None, inputs.keeper, runtime=runtime, inputs=replace(inputs, methods=list(methods)))
        study._trust = trust
        return study

    def __repr__(self) -> str:
        if self._inputs is None:
            return f"<Study of {self.catalog.record.name}: nothing evaluated>"
        methods = dict.fromkeys(method for results in self.results for method in results.methods)
        names = dict.fromkeys(catalog.record.name for catalog in self._inputs.catalogs)
        sets = dict.fromkeys(results.record.tasks_digest for results in self.results)
        suffix = f" of {', '.join(filter(None, names))}" if any(names) else ""
        return f"<Study{suffix}: {counted(len(methods), 'method')} on {counted(len(sets), 'task set')}>"

    @property
    def inputs(self) -> Inputs:
        """Return everything that was evaluated, and what it was computed from.

        Raises:
            InputError: nothing was evaluated.
        """
        if self._inputs is None:
            raise InputError("nothing was evaluated yet: call study.evaluate([...], on=[...]) first")
        return self._inputs

    @property
    def results(self) -> list[Results]:
        """Return the results of all evaluations."""
        return list(self.inputs.results)

    @property
    def tasks(self) -> list[TaskSet]:
        """Return the task sets of all evaluations."""
        return list(self.inputs.tasks)

    @property
    def catalog(self) -> Catalog:
        """Return the data."""
        if self._inputs is None:
            assert self.experiment is not None  # a study of files has results
            return self.experiment.at_hand.catalogs[0]
        return self._inputs.catalogs[0]

    @property
    def features(self) -> dict[str, Features]:
        """Return the features, by the name of their encoder."""
        return {features.name: features for features in self.inputs.features}

    @property
    def made(self) -> list[str]:
        """Return the files that were created, in the order of the steps."""
        return self.steps.made

    @property
    def reused(self) -> list[str]:
        """Return the files that were up to date, in the order of the steps."""
        return self.steps.reused

    @property
    def page(self) -> Path:
        """Return the path of the report in the study's folder."""
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
        """Evaluate methods on task sets; task sets and their placebos are drawn once.

        Earlier evaluations remain in the study.

        Args:
            methods: spellings, methods, or objects with scikit-learn's `fit` and `predict`
            on: samplers: spellings, samplers, or tables with a name, its options and `like`, `encoder`, `split`; by
                default `random` and `fewstab`, for sounds `random` and `hardest`. `changed` is by default `like` the
                first that changes nothing; see also `change`
            way, shots, query, tasks, seeds: design of the task sets
            placebo: evaluate placebos of task sets that are based on attributes or contexts

        Returns:
            The study.

        Raises:
            InputError: a method, sampler or number is invalid, or the data is not sufficient for the tasks.
        """
        if self.experiment is None:
            raise InputError(f"{_READ_FROM_FILES}: to evaluate more, create a study of the data, Study(DATA)")
        method_list = [methods] if isinstance(methods, str | Mapping) or not isinstance(methods, Sequence) else methods
        sampler_input = on if on is not None else DEFAULT_SAMPLERS.get(self.catalog.medium or "", ("random",))
        entries = [sampler_input] if isinstance(sampler_input, str | Sampler | Mapping) else list(sampler_input)
        shape: dict[str, Any] = {
            "way": way,
            "shots": tuple(shots),
            "query": query,
            "tasks": tasks,
            "seeds": tuple(seeds),
        }
        draws: list[Draw] = []
        for entry in entries:
            draw = _build_draw(entry, {"split": self._split, **shape})
            draws.append(with_reference(draw, [*self.experiment.draws, *draws]))
        uses = [MethodUse(make_method(method)) for method in method_list]
        evaluated_spellings = {use.method.spelling for use in self.experiment.uses}
        experiment = replace(
            self.experiment,
            draws=tuple(dict.fromkeys([*self.experiment.draws, *draws])),
            uses=(*self.experiment.uses, *(use for use in uses if use.method.spelling not in evaluated_spellings)),
            placebo=placebo,
        )
        self._execute(experiment)
        self.experiment = experiment
        return self

    @typed_by_user
    def change(
        self,
        change: str | Change | Sequence[str | Change],
        *,
        side: Side = "query",
        of: str | None = None,
    ) -> Self:
        """Change one thing in the items of a task set, and evaluate the same classifiers on them.

        The tasks and their items stay the same, so whatever accuracy is lost is lost because of the change. Changed
        items are encoded as needed. `mixed-random` and `mixed-rival` are compared with `mixed-same`, which is evaluated
        first if it is missing: all three are cut and pasted alike.

        Args:
            change: spelling of a change such as `blur(severity=5)`, or a change, or several
            side: which items are changed: `query`, `support`, or `both`
            of: sampler of the tasks that are changed, as it was evaluated; by default the first that changes nothing

        Returns:
            The study.

        Raises:
            UnknownName: a change is unknown.
            InputError: nothing was evaluated, there are no tasks of this sampler, or the items cannot be changed so.

        Example:
            >>> import tempfile
            >>> import shotproof as sp
            >>> catalog = sp.worlds.ShapesWorld(classes=6, items=20, size=16).write(tempfile.mkdtemp())
            >>> study = sp.Study(catalog, encoder="pixels(size=4)")
            >>> study.evaluate("ncc", on="random", shots=[1], query=5, tasks=20)
            <Study of world of shapes: 1 method on 1 task set>
            >>> study.change(["noise", "blur(severity=5)"])
            <Study of world of shapes: 1 method on 3 task sets>
        """
        if self.experiment is None:
            raise InputError(f"{_READ_FROM_FILES}: to change tasks, create a study of the data, Study(DATA)")
        spellings = list(change) if isinstance(change, Sequence) and not isinstance(change, str) else [change]
        if not spellings:
            raise InputError("change: expected at least one change, e.g. 'blur', found an empty list")
        draws = changed_draws(spellings, side, of, self.experiment.draws)
        experiment = replace(self.experiment, draws=tuple(dict.fromkeys([*self.experiment.draws, *draws])))
        self._execute(experiment)
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
        """Compare the classifiers: intervals labeled by what they cover, ranks, pairwise differences, and losses.

        Args:
            intervals: what they cover: `sampler`, `depletion`, `images`, `classes`; by default `images` if the data
                allows, and `sampler`. Statements and tables use the first that can be computed
            level: confidence level of the intervals
            metric: metric of ranks and statements, `acc` or `wacc`
            correct: apply Holm's correction for the number of pairs
            placebo: draw and evaluate placebos that the results lack

        Returns:
            The comparison; calls with the same arguments return the same object.
        """
        defaults = self._compared_by
        intervals = defaults.intervals if intervals is None else intervals
        intervals = (intervals,) if isinstance(intervals, str) else intervals and tuple(intervals)
        metric = metric or defaults.metric
        placebo = defaults.placebo if placebo is None else placebo
        key = (intervals, level, metric, correct, placebo, tuple(results.digest for results in self.results))
        if key not in self._compared:
            with resolve(self._runtime), trusting(self._trust):
                self._compared[key] = compare_inputs(
                    self.inputs, intervals=intervals, level=level, metric=metric, correct=correct, placebo=placebo
                )
        return self._compared[key]

    @property
    def _compared_by(self) -> ComparedBy:
        """Return the default settings of comparisons: those of the experiment, or of the only run that was read."""
        runs = self.steps.before
        return runs[0].manifest.compared_by if len(runs) == 1 else self.steps.compared_by

    def verdict(self) -> list[str]:
        """State what was measured and the results, limited to what an interval supports."""
        return self.compare().verdict()

    def summary(self) -> list[str]:
        """Summarize what the classifiers rely on most, which ones it harms, and which to choose."""
        return self.compare().summary()

    def card(self, method: str | None = None, encoder: str | None = None) -> Card:
        """Return the robustness card of one classifier, by default the first, ranked among the others.

        Args:
            method: spelling of its method
            encoder: name of its features
        """
        comparison = self.compare()
        matches = (
            classifier
            for classifier in comparison.classifiers
            if method in (None, classifier.method) and encoder in (None, classifier.encoder)
        )
        classifier = next(matches, Classifier(encoder or "", method or ""))
        return make_card(comparison, self.inputs, classifier)

    def explain(self, *, mismatch: Pooling = "class", level: float = 0.95) -> list[Explanation]:
        """Explain why tasks are hard: what supports have and queries lack, compared with the reference and with chance.

        Args:
            mismatch: between support and query: per `class`, or `pooled` over the classes of a task
            level: confidence level of the intervals

        Returns:
            One explanation for each group of matched task sets except random alone, the hardest set first.

        Raises:
            InputError: the kind of mismatch is unknown.
        """
        check_mismatch(mismatch)
        with resolve(self._runtime), trusting(self._trust):
            return [explanation for explanation, _ in explain_hardest(self.inputs, mismatch=mismatch, level=level)]

    @typed_by_user
    def cure(
        self,
        *,
        method: str | None = None,
        encoder: str | None = None,
        shot: int | None = None,
        remedies: Sequence[str | Remedy] = (),
        tasks: int = TASKS_TO_CHOOSE,
        budget: str | None = None,
        level: float = 0.95,
        seed: int = 0,
        log: Log = lambda line: None,
    ) -> Cure:
        """Try remedies on a classifier: which ones conclusively lower a loss, at what cost, and how to apply them.

        Remedies are fitted on some classes, chosen on others and confirmed on the classes of the tasks; if the data has
        no other classes, on a part of them.

        Args:
            method, encoder: classifier to treat; by default the first
            shot: shots of the tasks; by default the most
            remedies: spellings or remedies, or families of them (`features`, `supports`, ...); by default all
            tasks: number of tasks of each set that remedies are chosen on
            budget: time after which no further remedy is tried, e.g. `5m`; by default all are
            level: confidence level of the intervals
            seed: seed of the division of classes
            log: called with one line per remedy

        Returns:
            The remedies with their effects; `sentences()` says what to do. A study with a folder has them in
            `cure.json` and in the folder `cure`.

        Raises:
            InputError: nothing was evaluated that measures reliance, or the classifier is not one on features.
            InsufficientData: there are fewer classes than a fair confirmation needs.

        Example:
            >>> import shotproof as sp
            >>> world = sp.worlds.ShapesWorld(classes=24, items=20)
            >>> features = sp.encode(world.catalog(), "dial(share=0.5)")
            >>> study = sp.Study(world.catalog(), encoder=features, attributes=world.attributes())
            >>> evaluated = study.evaluate("ncc", on=["random", "fewstab"], shots=[1], query=5, tasks=40)
            >>> cure = study.cure(remedies=["preprocess"], tasks=20)
            >>> [(row.remedy, row.settings) for row in cure.tried]
            [('preprocess', 4)]
        """
        spellings = tuple(str(remedy) for remedy in remedies)
        return self._cure(CureSection(method, encoder, shot, spellings, tasks, budget, level, seed), log)

    def _cure(self, section: CureSection, log: Log = lambda line: None) -> Cure:
        """Try remedies, and write what helps into the study's folder, unless it is up to date."""
        folder = self.steps.folder or next((run.folder for run in self.steps.before if run.folder), None)
        cures: list[Cure] = []

        def search() -> Cure:
            with resolve(self._runtime) as runtime, trusting(self._trust):
                experiment = self.experiment or experiment_of(self.steps.before, self._trust)
                return cure_inputs(self.inputs, experiment, section, log, runtime)

        def write(target: Path) -> None:
            cures.append(write_cure(search(), target.parent))
            write_cure_page(target.with_name(CURE_PAGE), cures[0])

        if folder is None:
            return search()
        if self.steps.folder is None:
            write(folder / CURE_FILE)
        else:
            if not (path_exists(folder / CURE_PAGE) and path_exists(folder / CURE_FOLDER)):
                (folder / CURE_FILE).unlink(missing_ok=True)  # what it names is gone, so it is not up to date
            inputs = self.inputs
            objects = (*inputs.results, *inputs.tasks, *inputs.catalogs, *inputs.features, *inputs.attributes)
            self.steps.write_file(CURE_FILE, objects, plain(section, complete=True), write)
        return cures[0] if cures else Cure.read(folder / CURE_FILE)

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
        """Write the comparison as a page that opens offline, with everything the study can show.

        Args:
            path: page to write, `.html`; by default `report.html` in the study's folder
            title: title of the page
            comparison: comparison to show; by default that of `compare()`
            figures: folder for the figures of the comparison, as SVG, PDF and PNG
            mismatch: between support and query, in the explanation of hard tasks: `class`, the default, or `pooled`
            projection: projection that shows an iid task and its ood counterpart in two dimensions: `pca`, the default,
                `tsne` or `none`
            similarity: adds how similar the images are to their concepts and contexts

        Returns:
            The path of the page. A page in the study's folder that is up to date is not written again.

        Raises:
            InputError: the name of the page does not end in .html, or the kind of mismatch is unknown.
            UnknownName: the projection is unknown.
        """
        page, own_experiment = self.page if path is None else Path(path), self.experiment
        check_page_name(page, "figures=FOLDER")
        mismatch = mismatch or (own_experiment.mismatch if own_experiment else "class")
        projection = projection or (own_experiment.projection if own_experiment else "pca")
        check_mismatch(mismatch)
        check_projection(projection)
        title = title or (own_experiment.title if own_experiment else None)
        experiment = own_experiment.file.name if own_experiment and own_experiment.file else None
        comparison = comparison or self.compare()
        cure = read_cure(self.steps.folder)

        def write(target: Path) -> None:
            page_options: dict[str, Any] = {
                "mismatch": mismatch,
                "projection": projection,
                "similarity": similarity,
                "cure": cure,
            }
            with resolve(self._runtime), trusting(self._trust):
                write_compared(
                    target, comparison, self.inputs, title=title, figures=figures, experiment=experiment, **page_options
                )

        if self.steps.folder is None or page != self.page or figures is not None or similarity is not None:
            write(page)
        else:
            inputs = self.inputs
            comparison_settings = [
                comparison.interval_names,
                comparison.level,
                comparison.metric,
                comparison.corrected,
                inputs.halvings,
            ]
            objects = (*inputs.results, *inputs.tasks, *inputs.catalogs, *inputs.features, *inputs.attributes)
            # The page shows pictures of the items and names of the classes.
            catalog_metadata = [[catalog.stamp, catalog.record.to_meta()] for catalog in inputs.catalogs]
            self.steps.write_file(
                REPORT_FILE,
                [*objects, catalog_metadata],
                [comparison_settings, title, mismatch, projection, experiment, cure and cure.to_json()],
                write,
            )
        return page

    def _execute(self, experiment: Experiment, leave_out: bool = False) -> None:
        """Run the steps of an experiment, and keep their results."""
        compared_by = ComparedBy(
            experiment.intervals, experiment.metric, experiment.placebo, self.steps.compared_by.quick
        )
        self.steps.compared_by = compared_by
        experiment_steps = ExperimentSteps(experiment, self.steps, leave_out)
        with resolve(self._runtime), trusting(self._trust), self.steps:
            inputs = experiment_steps.make()
        self.left_out = experiment_steps.left_out
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
    log: Log = lambda line: None,
    runtime: Runtime | None = None,
) -> Study:
    """Run an experiment; files that are up to date are not created again.

    The output folder belongs to the experiment and its data from the first file on.

    Args:
        experiment: experiment file, or an experiment
        dry_run: create and write nothing, and report what would be created
        trust: whether code named in the file (`heads.py:Head`, `python:`, components of other packages) may be imported
            and servers contacted, or which ones, as listed by `NotTrusted`
        leave_out: leave out samplers, other than the first, for which the data is not sufficient, instead of raising an
            error
        quick: use fewer re-evaluations for intervals, which makes them wider
        made_by: command or bundle that generated the experiment for its output folder
        verbose: report every file
        log: called with one line per step
        runtime: runtime settings; by default those of the file, then the current ones

    Returns:
        The study, with its comparison and report, unless it is a dry run.

    Raises:
        NotTrusted: the file, or a model that it names, names code or a server that is not trusted; nothing was
            imported or created.
        InputError: the file, the data or a component that it names cannot be used, or the output folder belongs to
            another experiment or other data; the message says which.

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
    with error_location(experiment, "[runtime]"):
        runtime = runtime or make_runtime(**experiment.runtime)
    # Intervals draw the tasks again from their records: files named by the experiment may be read.
    sampler_files = [reach.description for draw in experiment.draws for reach in draw.sampler.reaches()]
    study = Study.__new__(Study)
    owner = Owner.of(experiment, made_by)
    steps = Steps(experiment.folder, dry_run, log, owner, verbose, ComparedBy(quick=quick))
    study._initialize(experiment, steps, runtime=runtime)
    with runtime, trusting(trust), trusting(sampler_files), asking_for_packages(experiment.file is not None):
        study._execute(experiment, leave_out)
        if dry_run:
            log(f"would write  {REPORT_FILE}")
            return study
        with steps:
            with steps.stage("intervals") as stage:
                comparison = study.compare()
                stage.summary = ", ".join(name for name in comparison.interval_names if name not in comparison.refused)
            if experiment.cure is not None:
                with steps.stage("cure") as stage:
                    recommended = study._cure(experiment.cure).recommended
                    stage.summary = f"take {recommended}" if recommended else "no remedy is recommended"
            with steps.stage("report") as stage:
                study.report()
                stage.summary = REPORT_FILE
        if not study.made:
            log(f"nothing to compute: all {len(study.reused):,} files are up to date")
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
    """Compare classifiers that were evaluated on any number of data sets, designs and samplers.

    Args:
        parts: study, or what `Study.of` takes: results and, for placebos and all intervals except `sampler`, what they
            were computed from, or run folders
        intervals, level, metric, correct, placebo: as in `Study.compare`
        methods, halvings, trust, runtime: as in `Study.of`

    Returns:
        The comparison; `.to_pandas()`, `.to_latex()`, `.to_html()`, `.to_json()` and `.plot()` export it.

    Raises:
        Mismatch: results that claim the same tasks are on different tasks.
        InputError: an interval or metric is unknown, or the inputs of an interval are missing.

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=12, items=40)
        >>> features = sp.encode(world.catalog(), "dial(share=0.5)")
        >>> tasks = sp.sample(world.catalog(), "random", tasks=20, query=5)
        >>> results = sp.evaluate(tasks, features, ["ncc", "knn"])
        >>> compare(results).interval_names
        ('sampler',)
        >>> compare([results, tasks, world.catalog(), features], halvings=4).interval_names
        ('images', 'sampler')
    """
    study = parts
    if not isinstance(study, Study):
        study = Study.of(study, methods=methods, halvings=halvings, trust=trust, runtime=runtime)
    return study.compare(intervals=intervals, level=level, metric=metric, correct=correct, placebo=placebo)


def cure(
    parts: Study | Part | Iterable[Part],
    *,
    method: str | None = None,
    encoder: str | None = None,
    shot: int | None = None,
    remedies: Sequence[str | Remedy] = (),
    tasks: int = TASKS_TO_CHOOSE,
    budget: str | None = None,
    level: float = 0.95,
    seed: int = 0,
    methods: Sequence[AnyMethod] = (),
    trust: Trust = False,
    log: Log = lambda line: None,
    runtime: Runtime | None = None,
) -> Cure:
    """Try remedies on a classifier of a finished run or profile, and write what helps into its folder.

    Args:
        parts: study, or what `Study.of` takes: a run folder, or results with what they were computed from
        method, encoder, shot, remedies, tasks, budget, level, seed, log: as in `Study.cure`
        methods, trust, runtime: as in `Study.of`

    Returns:
        The remedies with their effects.

    Raises:
        InputError: nothing was evaluated that measures reliance, or the classifier is not one on features.
        InsufficientData: there are fewer classes than a fair confirmation needs.

    Example:
        >>> import shotproof as sp
        >>> world = sp.worlds.ShapesWorld(classes=24, items=20)
        >>> features = sp.encode(world.catalog(), "dial(share=0.5)")
        >>> tasks = sp.sample(world.catalog(), "fewstab", attributes=world.attributes(), shot=1, query=5, tasks=20)
        >>> random = sp.sample(world.catalog(), "random", shot=1, query=5, tasks=20)
        >>> results = [sp.evaluate(task_set, features, "ncc") for task_set in (random, tasks)]
        >>> parts = [*results, random, tasks, world.catalog(), features, world.attributes()]
        >>> sp.cure(parts, remedies=["head"], tasks=20).tried[0].family
        'heads'
    """
    study = parts
    if not isinstance(study, Study):
        study = Study.of(study, methods=methods, trust=trust, runtime=runtime)
    return study.cure(
        method=method,
        encoder=encoder,
        shot=shot,
        remedies=remedies,
        tasks=tasks,
        budget=budget,
        level=level,
        seed=seed,
        log=log,
    )


def _as_list(parts: Part | Iterable[Part]) -> list[Part]:
    """Return a list of parts, also for a single part."""
    return [parts] if isinstance(parts, Part) else list(parts)


def _read_data(data: str | Path | Catalog, layout: str, splits: str | Path | None) -> Catalog:
    """Read the data and apply its splits."""
    if not isinstance(data, Catalog):
        if is_folder(Path(data)) or layout != "folder":
            return read_layout(data, layout, splits=splits)
        data = Catalog.read(data)
    return data if splits is None else apply_splits(data, Path(splits))


def _build_draw(entry: str | Sampler | Mapping[str, Any], shape: Mapping[str, Any]) -> Draw:
    """Build an entry of the samplers from a spelling, a sampler, or a table with a name, options and entry keys."""
    table: dict[str, Any] = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
    entry_values = {option.name: table.pop(option.name) for option in Draw.entry_options() if option.name in table}
    is_sampler = isinstance(table.get("name"), Sampler)
    sampler = table["name"] if is_sampler else samplers.make(entry if isinstance(entry, str) else table)
    return Draw(sampler=sampler, **{**shape, **entry_values})
