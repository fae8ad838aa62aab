"""Profile of a classifier: one experiment over all axes that the data allows, and a robustness card.

sp.profile("birds/", encoder="lite0", method="cosine", output="birds-profile")
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shotproof.analysis.make_card import make_card
from shotproof.comparison.card import CARD_FILE, Card, MissingAxis
from shotproof.comparison.comparison import Comparison
from shotproof.core.errors import InputError, error_prefix
from shotproof.core.records import Maker
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.whole_files import new_folder, write_text
from shotproof.core.tables import check_output
from shotproof.core.trust import trusting
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.profile.profile_plan import QUERY, WAY, ProfileOptions, plan_profile
from shotproof.pipeline.steps.owner import EXPERIMENT_FILE
from shotproof.pipeline.steps.steps import Log
from shotproof.pipeline.study import Study, run
from shotproof.report.pages.card_page import FIGURE_FILE, PAGE_FILE, write_card_page
from shotproof.results.evaluated import Classifier

MADE_BY = "shotproof profile"


@dataclass(frozen=True)
class Profile:
    """Robustness card of a profile, the folder with its page, and the comparison that it was built from."""

    card: Card
    folder: Path
    comparison: Comparison

    @property
    def page(self) -> Path:
        """Return the path of the card's page."""
        return self.folder / PAGE_FILE

    def _repr_html_(self) -> str:
        """Return the card as an image."""
        encoded_figure = base64.b64encode((self.folder / FIGURE_FILE).read_bytes()).decode()
        return f'<img alt="the card" src="data:image/svg+xml;base64,{encoded_figure}">'  # its style stays separate


def profile(
    data: str | Path,
    output: str | Path,
    *,
    encoder: str | None = None,
    method: str | None = None,
    features: str | Path | None = None,
    model: str | Path | None = None,
    layout: str | None = None,
    splits: str | Path | None = None,
    split: str | None = None,
    attributes: Sequence[str | Path] = (),
    detectors: Sequence[str] = (),
    context_column: str | None = None,
    class_distances: str | Path | None = None,
    masks: str | Path | None = None,
    way: int = WAY,
    query: int = QUERY,
    tasks: int | None = None,
    seed: int = 0,
    quick: bool = False,
    skip_bad: bool = False,
    verbose: bool = False,
    log: Log = lambda line: None,
    runtime: Runtime | None = None,
) -> Profile:
    """Measure a classifier and baselines on all axes that the data allows, and write its robustness card.

    An experiment is built from the data (experiment.toml in the output folder) and run; files that are up to date are
    not created again.

    Args:
        data: data folder, catalog, or run folder, whose catalog and attributes are used
        output: folder to write: card.json, card.html, card.svg, badge.svg, and all files of the run
        encoder: encoder of the classifier; by default lite0 for images and logmel for sounds
        method: method of the classifier; by default cosine, or a model's own head
        features: features file, to use instead of an encoder
        model: model file, to use instead of an encoder; methods such as finetune adapt it
        layout, splits: layout and splits of a data folder
        split: split to draw tasks from; by default test, if there are several
        attributes: attributes files for FewSTAB tasks; detectors: detectors to use instead. By default the attributes
            of the run, the true/false columns of the catalog, or photometric attributes
        context_column: column of the catalog with the contexts; by default the first that looks like contexts
        class_distances: hierarchy or distances of the classes, for tasks with similar classes
        masks: folder of masks of the images, named as these, for tasks with other backgrounds; by default the column
            `mask`, or GrabCut with the boxes of the catalog
        way, query: size of a task
        tasks: number of tasks per task set, by default 600
        seed: random seed of the tasks
        quick: use a tenth of the tasks, and fewer re-evaluations for intervals
        skip_bad: leave out unreadable files instead of raising an error
        verbose: report every file
        log: called with one line per step, and with the choices that were made
        runtime: runtime settings

    Returns:
        The card and its folder.

    Raises:
        InputError: the data or the classifier cannot be used, or the folder belongs to something else.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog = sp.worlds.ShapesWorld(classes=5, items=12, size=16).write(folder / "shapes")
        >>> result = sp.profile(folder / "shapes", folder / "out", encoder="pixels", query=2, tasks=20, quick=True)
        >>> [axis.name for axis in result.card.axes]
        ['random-1-shot', 'random-5-shot', 'random-10-shot', 'hardest', 'unbalanced']
        >>> [axis.name for axis in result.card.missing]
        ['contexts', 'semantic', 'changes', 'fewstab']
    """
    folder = Path(output)
    check_output(folder, folder=True)
    options = ProfileOptions(
        data=Path(data),
        encoder=encoder,
        method=method,
        features=None if features is None else Path(features),
        model=model,
        layout=layout,
        splits=None if splits is None else Path(splits),
        split=split,
        attributes=tuple(map(Path, attributes)),
        detectors=tuple(detectors),
        context_column=context_column,
        class_distances=None if class_distances is None else Path(class_distances),
        masks=None if masks is None else Path(masks),
        way=way,
        query=query,
        tasks=tasks,
        seed=seed,
        quick=quick,
        skip_bad=skip_bad,
    )
    with new_folder(folder):  # the experiment's paths go through it
        with trusting(True):  # the experiment names only what the user typed, with other paths
            plan = plan_profile(options, folder)
            with error_prefix("the experiment"):
                experiment = Experiment.described_by(plan.file, folder)
        for line in plan.notes:
            log(line)
        study = run(experiment, leave_out=True, quick=quick, made_by=MADE_BY, verbose=verbose, log=log, runtime=runtime)
    plan = plan.without(study.left_out)
    for missing in plan.missing:
        log(f"not measured {missing.name}: {missing.reason}")
    write_text(folder / EXPERIMENT_FILE, plan.to_toml())
    return write_card(experiment, study, missing=plan.missing, quick=quick)


def write_card(
    experiment: Experiment,
    study: Study,
    *,
    missing: Sequence[MissingAxis] = (),
    quick: bool = False,
) -> Profile:
    """Write the card of an experiment's first classifier, with its page, figure and badge, into the run folder.

    Args:
        experiment: experiment that was run
        study: study of the run
        missing: axes that were not measured, with the reasons
        quick: whether the number of tasks was reduced
    """
    comparison = study.compare()
    card = make_card(comparison, study.inputs, _find_profiled(experiment, comparison), missing=missing, quick=quick)
    card.write(experiment.folder / CARD_FILE)
    write_card_page(experiment.folder, card, study.catalog)
    return Profile(card, experiment.folder, comparison)


def _find_profiled(experiment: Experiment, comparison: Comparison) -> Classifier:
    """Return the profiled classifier: the experiment's first method, on the first encoder or model."""
    use = experiment.uses[0]
    spellings = {use.method.spelling, Maker.of(use.method).spelling}
    classifiers = comparison.classifiers
    profiled = next((classifier for classifier in classifiers if classifier.method in spellings), None)
    if profiled is None:
        raise InputError(f"no results of method '{use.method}': found {', '.join(map(str, classifiers))}")
    return profiled
