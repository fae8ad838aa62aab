"""How robust is a classifier? All axes that the data allows in one experiment, and a card of what came out.

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
from shotproof.core.errors import InputError, placed
from shotproof.core.records import Maker
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.whole_files import new_folder, write_text
from shotproof.core.tables import check_output
from shotproof.core.trust import trusting
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.profile.profile_plan import QUERY, WAY, ProfileOptions, plan_profile
from shotproof.pipeline.steps.owner import EXPERIMENT_FILE
from shotproof.pipeline.steps.steps import Tell
from shotproof.pipeline.study import Study, run
from shotproof.report.pages.card_page import FIGURE_FILE, PAGE_FILE, write_card_page
from shotproof.results.evaluated import Classifier

MADE_BY = "shotproof profile"


@dataclass(frozen=True)
class Profile:
    """What a profile gave: the card, the folder with its page, and the comparison that it is from."""

    card: Card
    folder: Path
    comparison: Comparison

    @property
    def page(self) -> Path:
        """The card as a page."""
        return self.folder / PAGE_FILE

    def _repr_html_(self) -> str:
        drawn = base64.b64encode((self.folder / FIGURE_FILE).read_bytes()).decode()
        return f'<img alt="the card" src="data:image/svg+xml;base64,{drawn}">'  # its style stays its own


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
    way: int = WAY,
    query: int = QUERY,
    tasks: int | None = None,
    seed: int = 0,
    quick: bool = False,
    skip_bad: bool = False,
    verbose: bool = False,
    tell: Tell = lambda line: None,
    runtime: Runtime | None = None,
) -> Profile:
    """Measure a classifier on all axes that the data allows, beside baselines, and write its robustness card.

    It is an experiment that is put together from the data (experiment.toml in the output's folder) and run: what is up
    to date is not made again.

    Args:
        data: a data folder, a catalog, or a run's folder, whose catalog and attributes are taken
        output: the folder to write: card.json, card.html, card.svg, badge.svg, and all files of the run
        encoder: of the classifier; by default lite0 for images and logmel for sounds
        method: of the classifier; by default cosine, or with a model its own head
        features: a file of features, in place of an encoder
        model: a model's file, in place of an encoder; a method such as finetune adapts it
        layout, splits: how a data folder is read
        split: to draw tasks from; by default test, where there are several
        attributes: files of attributes for FewSTAB's tasks; detectors: what makes them instead. By default those of the
            run, those of the catalog's true/false columns, or photometric ones
        context_column: the catalog's column with contexts; by default the first that looks like them
        class_distances: a hierarchy or distances of the classes, for tasks of alike classes
        way, query: the size of a task
        tasks: how many per task set, by default 600
        seed: which tasks
        quick: a tenth of the tasks, of one number of shots, and fewer re-evaluations for the intervals
        skip_bad: leave out files that cannot be read, which are an error otherwise
        verbose: tell every file, too
        tell: receives one line per step, and what was chosen
        runtime: how to compute

    Returns:
        The card, and where it is.

    Raises:
        InputError: the data or the classifier cannot be used, or the folder belongs to something else.

    Example:
        >>> import tempfile
        >>> import shotproof as sp
        >>> folder = Path(tempfile.mkdtemp())
        >>> catalog = sp.worlds.ShapesWorld(classes=5, items=12, size=16).write(folder / "shapes")
        >>> found = sp.profile(folder / "shapes", folder / "out", encoder="pixels", query=2, tasks=20, quick=True)
        >>> [axis.name for axis in found.card.axes]
        ['random-1-shot', 'random-5-shot', 'random-10-shot', 'hardest', 'unbalanced']
        >>> [one.name for one in found.card.missing]
        ['contexts', 'semantic', 'fewstab']
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
        way=way,
        query=query,
        tasks=tasks,
        seed=seed,
        quick=quick,
        skip_bad=skip_bad,
    )
    with new_folder(folder):  # paths of its experiment go through it
        with trusting(True):  # it names what was typed, with other paths
            plan = plan_profile(options, folder)
            with placed("the experiment"):
                experiment = Experiment.described_by(plan.file, folder)
        for line in plan.told:
            tell(line)
        study = run(
            experiment, leave_out=True, quick=quick, made_by=MADE_BY, verbose=verbose, tell=tell, runtime=runtime
        )
    plan = plan.without(study.left_out)
    for missing in plan.missing:
        tell(f"not measured {missing.name}: {missing.reason}")
    write_text(folder / EXPERIMENT_FILE, plan.to_toml())
    return write_card(experiment, study, missing=plan.missing, quick=quick)


def write_card(
    experiment: Experiment,
    study: Study,
    *,
    missing: Sequence[MissingAxis] = (),
    quick: bool = False,
) -> Profile:
    """Write the card of an experiment's first classifier, and its page, figure and badge, into the run's folder.

    Args:
        experiment: that was run
        study: what came out
        missing: axes that were not measured, and why
        quick: whether the tasks were few
    """
    comparison = study.compare()
    card = make_card(comparison, study.inputs, _own_classifier(experiment, comparison), missing=missing, quick=quick)
    card.write(experiment.folder / CARD_FILE)
    write_card_page(experiment.folder, card, study.catalog)
    return Profile(card, experiment.folder, comparison)


def _own_classifier(experiment: Experiment, comparison: Comparison) -> Classifier:
    """The one that is profiled: the experiment's first method, on the first of what it is evaluated on."""
    use = experiment.uses[0]
    spelled = {use.method.spelling, Maker.of(use.method).spelling}
    known = comparison.classifiers
    found = next((one for one in known if one.method in spelled), None)
    if found is None:
        raise InputError(f"no results of method '{use.method}': found those of {', '.join(map(str, known))}")
    return found
