"""Whether results and cards that somebody hands in can be true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shotproof.analysis.verification.card import card_problems
from shotproof.analysis.verification.recomputation import Recomputation
from shotproof.analysis.verification.results import results_problems
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.files import is_folder, is_there
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.trust import Trust, trusting
from shotproof.evaluation.results import Results
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.methods.adaptation.adaptation import Adaptation
from shotproof.methods.method import make_method
from shotproof.pipeline.run_files import files_of, kind_of
from shotproof.stats.card.card import CARD_FILE, Card
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model

Given = str | Path | Results | Card


@dataclass(frozen=True)
class Checked:
    """What a check found.

    problems: in sentences, each with what it is of; none where everything holds
    told: what was looked at, and what was not
    """

    problems: tuple[str, ...]
    told: tuple[str, ...]


def check(
    given: Given | Sequence[Given],
    *,
    tasks: Sequence[str | Path | TaskSet] = (),
    features: str | Path | Features | None = None,
    model: str | Path | None = None,
    catalog: str | Path | Catalog | None = None,
    sample: int | None = None,
    seed: int = 0,
    trust: Trust = False,
    runtime: Runtime | None = None,
) -> Checked:
    """Whether results and cards can be true: in themselves, on their task sets and, given features, computed anew.

    Counts must be possible, the task sets be those of the files by their digests, all tasks and classes be there, and a
    card's numbers agree with each other. What is computed anew must come out the same; the first task that differs is
    named.

    Args:
        given: results, cards, folders of runs or profiles, or several of these
        tasks: the task sets; those of folders are known already
        features: the features to compute it anew on: Parquet or, with a catalog, npy or npz
        model: a model's file in place of features: its own, on the catalog's items, or what methods such as finetune
            adapt
        catalog: of the items, for a model
        sample: on how many tasks of each set it is computed anew; None: on all
        seed: which tasks these are
        trust: whether code that the files name as a method may be imported; or which, as `NotTrusted` tells it
        runtime: how to compute

    Returns:
        The problems, and what was looked at.

    Raises:
        InputError: a file cannot be read, counts cannot be (0 <= correct <= queries), or what computing anew needs is
            not there.

    Example:
        >>> import shotproof as sp
        >>> catalog, features, _ = sp.GaussianWorld().draw(classes=6, items=40)
        >>> tasks = sp.sample(catalog, "random", tasks=20)
        >>> results = sp.evaluate(tasks, features, "ncc")
        >>> sp.check(results, tasks=[tasks], features=features).problems
        ()
        >>> others = sp.sample(catalog, "random", tasks=20, seed=1)
        >>> sp.check(results, tasks=[others]).problems[0].startswith("ncc on features, ")
        True
    """
    if features is not None and model is not None:
        raise InputError("expected features or a model, not both")
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    checking = _Checking(
        [_read(one, TaskSet) for one in tasks], catalog if catalog is None else _read(catalog, Catalog)
    )
    for one in several:
        checking.add(one)
    with trusting(trust):
        return checking.checked(features, model, Recomputation(sample=sample, seed=seed, runtime=runtime))


class _Checking:
    """What is checked, by what messages call it, with the task sets that it may be on."""

    def __init__(self, tasks: list[TaskSet], catalog: Catalog | None) -> None:
        self.tasks, self.catalog = tasks, catalog
        self.results: list[tuple[str, Results]] = []
        self.cards: list[tuple[str, Card]] = []

    def add(self, given: Given) -> None:
        """Results, a card, or all that a folder has."""
        if isinstance(given, Results):
            self.results.append((given.describe(), given))
        elif isinstance(given, Card):
            self.cards.append((given.title, given))
        elif Path(given).suffix == ".json":
            self.cards.append((str(given), Card.read(given, checked=False)))
        else:
            folder = is_folder(Path(given))
            for file in files_of(Path(given)):
                kind = kind_of(file)
                if kind == "results":
                    self.results.append((str(file), Results.read(file)))
                elif kind == "tasks":
                    self.tasks.append(TaskSet.read(file))
                elif kind == "catalog" and self.catalog is None:
                    self.catalog = Catalog.read(file)
                elif not folder:
                    raise InputError(f"{file} is of kind {kind}: expected results, a card, or a run's folder")
            if folder and is_there(Path(given) / CARD_FILE):
                self.cards.append((str(Path(given) / CARD_FILE), Card.read(given, checked=False)))

    def checked(self, features: Any, model: str | Path | None, how: Recomputation) -> Checked:
        """Hold everything against its tasks, and compute it anew where there are features or a model."""
        if not self.results and not self.cards:
            raise InputError("nothing to check: expected results, a card, or a run's folder")
        problems: list[str] = []
        told: list[str] = []
        vectors = self._features(features, model, how.runtime)
        network = None if model is None else _model(model)
        of_tasks = "on their task sets" if self.tasks else "not held against task sets: none were given"
        for name, results in self.results:
            again = self._recomputation(results, vectors, network, how)
            found = list(results_problems(results, self.tasks, again)) if self.tasks else []
            problems += [f"{name}: {problem}" for problem in found]
            told.append(f"{name}: {', '.join(results.methods)}, {of_tasks}{_anew(again, how)}")
        for name, card in self.cards:
            moved = replace(card, method=f"model:{model}") if model and card.method.startswith("model:") else card
            again = None
            if vectors is not None:
                again = replace(how, features=vectors)
            elif network is not None:
                again = replace(how, model=network, catalog=self.catalog)
            problems += [f"{name}: {problem}" for problem in card_problems(moved, self.tasks, again)]
            told.append(f"{name}: {len(card.axes)} axes, {of_tasks}{_anew(again, how)}")
        return Checked(tuple(problems), tuple(told))

    def _features(self, given: Any, model: str | Path | None, runtime: Runtime | None) -> Features | None:
        """The features to compute on; of a model its own, unless all that is checked adapts it."""
        if isinstance(given, Features):
            return given
        if given is not None and Path(given).suffix == ".parquet":
            return Features.read(given)
        if given is not None:
            return encode(self._catalog(), f"file:{given}", runtime=runtime)
        methods = [one for _, results in self.results for one in results.methods]
        methods += [card.method for _, card in self.cards if not card.method.startswith("model:")]
        if model is None or (methods and all(isinstance(make_method(one), Adaptation) for one in methods)):
            return None
        return encode(self._catalog(), f"model:{model}", runtime=runtime)

    def _catalog(self) -> Catalog:
        if self.catalog is None:
            raise InputError("expected a catalog, whose items are to be encoded (--catalog)")
        return self.catalog

    def _recomputation(
        self, results: Results, vectors: Features | None, network: Model | None, how: Recomputation
    ) -> Recomputation | None:
        """How results are computed anew; None where they are on other features than those given."""
        record = results.record
        if network is not None and "model" in record.sources:
            return replace(how, model=network, catalog=self._catalog())
        if vectors is None or "model" in record.sources:
            return None
        made_by = record.features.fingerprint  # by the same weights, digests may differ in the last bit
        same = record.features_digest in (None, vectors.digest) or made_by == (vectors.record.fingerprint or "")
        return replace(how, features=vectors) if same else None


def _anew(again: Recomputation | None, how: Recomputation) -> str:
    if again is None:
        return "; not computed anew"
    return "; computed anew" if how.sample is None else f"; {how.sample:,} tasks of each set computed anew"


def _read(given: Any, kind: Any) -> Any:
    return given if isinstance(given, kind) else kind.read(given)


def _model(path: str | Path) -> Model:
    from shotproof.models.model import Model

    return Model.read(path)
