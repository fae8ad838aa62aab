"""Whether results, cards and bundles that somebody hands in are true."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.verification.card_check import card_problems
from shotproof.analysis.verification.checked import Checked, Findings
from shotproof.analysis.verification.remade_card import card_differences, remake_card
from shotproof.analysis.verification.results_check import Recomputation, results_problems
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import CARD_FILE, Card
from shotproof.core.errors import InputError
from shotproof.core.nouns import counted
from shotproof.core.records import FeaturesRecord
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.storage.files import is_there
from shotproof.core.trust import NotTrusted, Trust, trusting
from shotproof.features.encoder import Encoder, encode
from shotproof.features.encoders.file import FeatureFile
from shotproof.features.features import Features
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method
from shotproof.learners.model_head import ModelHead
from shotproof.models.model_encoder import ModelEncoder
from shotproof.pipeline.bundle.bundle import Bundle
from shotproof.pipeline.file_kinds import holds_files
from shotproof.pipeline.read import MODEL_SUFFIXES, by_role, files_of, read_table_file
from shotproof.pipeline.steps.steps import MANIFEST
from shotproof.results.results import Results
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model

Part = str | Path | Results | Card | TaskSet | Features | Catalog | Attributes

CHECKABLE = "expected task sets, results, a card (.json), a bundle (.zip), or the folder of a run"
NO_TASKS = "no task sets are there to hold it against: give them beside it"
OWN_CODE = "runs code of your own; give --trust (in Python, trust=True)"
ARRAYS = (".npy", ".npz")
_SHOWN = 20  # digests of features in a reason


def verify(
    parts: Part | Sequence[Part],
    *,
    sample: int | None = None,
    seed: int = 0,
    trust: Trust = False,
    runtime: Runtime | None = None,
) -> Checked:
    """Check whether results, cards and bundles are true: in themselves, on their task sets, and computed again.

    Counts must be possible, the task sets be those of the files by their digests, all tasks and classes be there, and a
    card's numbers agree with each other. Task sets must keep the definition of their sampler. Counts are computed again
    on the features that the results name by their digest, and the card of a folder is made again from its results,
    with its intervals. The first task that differs is named.

    Args:
        parts: results, cards, bundles, task sets, folders of runs or profiles; and what they are held against and
            computed again from, found by digest, beside what the folders have: task sets, features (Parquet or, with a
            catalog, npy or npz), catalogs, attributes, and a model's file, in place of features on the catalog's items
            or for methods such as finetune, which adapt it
        sample: on how many tasks of each set counts are computed again, without intervals; None: on all
        seed: which tasks these are
        trust: whether code that the files name as a method may be imported; or which, as `NotTrusted` tells it
        runtime: how to compute

    Returns:
        What was verified, what is wrong, and what was not checked, and why.

    Raises:
        InputError: a file cannot be read, or counts cannot be (0 <= correct <= queries).

    Example:
        >>> import shotproof as sp
        >>> catalog, features, _ = sp.worlds.GaussianWorld().draw(classes=6, items=40)
        >>> tasks = sp.sample(catalog, "random", tasks=20)
        >>> results = sp.evaluate(tasks, features, "ncc")
        >>> sp.verify([results, tasks, features]).conclusion
        'verified'
        >>> sp.verify([results, tasks]).conclusion
        'not verified'
        >>> others = sp.sample(catalog, "random", tasks=20, seed=1)
        >>> sp.verify([results, others]).problems[0].startswith("ncc on features, ")
        True
    """
    listed = parts if isinstance(parts, Sequence) and not isinstance(parts, str) else [parts]
    checking = _Checking(Recomputation(sample=sample, seed=seed, runtime=runtime))
    with trusting(trust):
        for part in listed:
            checking.add(part)
        if not (checking.results or checking.cards or checking.task_files):
            held = "features, catalogs, attributes and models are only what these are held against"
            raise InputError(f"nothing to check: {CHECKABLE}; {held}")
        checking.encode_features()
        return checking.checked()


@dataclass(frozen=True)
class _GivenCard:
    """A card under its name; the inputs of the folder that it lies in, if any; main: it is what is checked."""

    name: str
    card: Card
    folder: Inputs | None = None
    main: bool = True


@dataclass
class _Checking:
    """All that was handed in, under names that tell it apart, and what was seen to hold of it."""

    how: Recomputation
    tasks: list[TaskSet] = field(default_factory=list)
    catalogs: list[Catalog] = field(default_factory=list)
    attributes: list[Attributes] = field(default_factory=list)
    features: list[Features] = field(default_factory=list)
    arrays: list[Path] = field(default_factory=list)
    model: Path | None = None
    task_files: list[tuple[str, TaskSet]] = field(default_factory=list)
    results: list[tuple[str, Results]] = field(default_factory=list)
    cards: list[_GivenCard] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    network: Model | None = None  # what is read from the model's file

    def add(self, part: Part) -> None:
        """Add what was handed in, or what a file, a bundle or a folder holds."""
        if not isinstance(part, str | Path):
            self._hold(part.title if isinstance(part, Card) else part.describe(), part)
        elif holds_files(path := Path(part)):
            held = [self._read(file, str(file)) for file in files_of(path)]
            self.folders.append(path)
            if is_there(path / CARD_FILE):
                inputs = Inputs(**by_role(held), folders=[path])
                self.cards.append(_GivenCard(str(path / CARD_FILE), Card.read(path, checked=False), inputs))
        elif path.name == MANIFEST:
            raise InputError(f"{path} is the record of a run: give the folder that it is in")
        elif path.suffix == ".json":
            self._hold(str(path), Card.read(path, checked=False))
        elif path.suffix == ".zip":
            self._add_bundle(path)
        elif path.suffix in MODEL_SUFFIXES:
            self.model = path
        elif path.suffix in ARRAYS:
            self.arrays.append(path)
        elif path.suffix not in ("", ".parquet", ".parts") and is_there(path):
            raise InputError(f"{path} holds nothing that can be checked: {CHECKABLE}")
        else:
            self.folders.append(path.parent)
            self._read(path, str(path))

    def _read(self, file: Path, name: str) -> Any:
        """Read a file; what it says of its own content must be so."""
        part: Any = read_table_file(file)
        stated = part.record.stated_digest
        # The check of task sets looks at the digest itself.
        if stated not in (None, part.digest) and not isinstance(part, TaskSet):
            told = f"its content has digest {part.digest}, its metadata say {stated}: it was changed"
            self.findings.refuse(name, [told])
        self._hold(name, part)
        return part

    def _hold(self, name: str, part: Any) -> None:
        if isinstance(part, Card):
            self.cards.append(_GivenCard(name, part))
        elif isinstance(part, Results):
            self.results.append((name, part))
        else:
            for role, held in by_role([part]).items():
                getattr(self, role).extend(held)
        if isinstance(part, TaskSet):
            self.task_files.append((name, part))

    def _add_bundle(self, path: Path) -> None:
        """Verify a bundle; its card cannot be made again, for results are in none."""
        with Bundle.unpacked(path) as (bundle, unpacked):
            self.findings.hold(str(path), "all files are there and as the manifest says, by SHA-256 and digest")
            for kind in ("catalog", "attributes", "tasks"):
                for name in bundle.names(kind):
                    self._read(unpacked / name, f"{path}, {name}")
            for name in bundle.names("card"):
                card = Card.read(unpacked / name, checked=False)
                self.cards.append(_GivenCard(f"{path}, {name}", card, main=False))

    def encode_features(self) -> None:
        """Encode the catalog's items by arrays or a model that were handed in, if anything needs it."""
        encoders: list[Encoder] = [FeatureFile(path) for path in self.arrays]
        if self.model is not None and self._needs_features_of_model():
            encoders.append(ModelEncoder(self.model))
        self.features += [encode(self._catalog(), encoder, runtime=self.how.runtime) for encoder in encoders]

    def checked(self) -> Checked:
        """Check everything, and conclude."""
        self.network = None if self.model is None else _model(self.model)
        for name, tasks in self.task_files:
            self._check_tasks(name, tasks)
        for name, results in self.results:
            self._check_results(name, results)
        for given in self.cards:
            self._check_card(given)
        return self.findings.checked()

    def _check_tasks(self, name: str, tasks: TaskSet) -> None:
        """Hold the task set of a folder against its sampler's definition."""
        catalog = _by_digest(self.catalogs, tasks.record.source("catalog"))
        attributes = _by_digest(self.attributes, tasks.record.source("attributes"))
        if catalog is None:
            self.findings.leave(name, "the sampler's definition: the catalog of the tasks is not there")
            return
        try:
            violations = check_tasks(tasks, catalog, attributes)
        except InputError as error:
            self.findings.leave(name, f"the sampler's definition: {error}")
            return
        if not self.findings.refuse(name, list(map(str, violations))):
            self.findings.hold(name, "every task keeps the definition of its sampler")

    def _check_results(self, name: str, results: Results) -> None:
        if not self.tasks:
            self.findings.leave(name, NO_TASKS, main=True)
            return
        if self.findings.refuse(name, list(results_problems(results, self.tasks))):
            return
        self.findings.hold(name, "every task and class of its task set is there")
        sound = True
        for part in results.by_method():
            reason = self._recomputed(name, part)
            if reason:
                self.findings.leave(name, reason, main=True)
            sound = sound and not reason
        if sound and not any(problem.startswith(f"{name}: ") for problem in self.findings.problems):
            self.findings.hold(name, f"the counts come out again{self._extent()}")

    def _recomputed(self, name: str, results: Results) -> str | None:
        """Compute the counts of one method again; return why that cannot be done, if so."""
        spelled = results.methods[0]
        method = self._method(spelled)
        if isinstance(method, str):
            return method
        again = self._recomputation(results.record.features, results.record.features_digest, method)
        if isinstance(again, str):
            return again
        adapted = results.record.source("model")
        if again.model is not None and adapted not in (None, again.model.digest):
            return f"the model with digest {adapted} is not there: give it beside (given: {again.model.digest})"
        try:
            self.findings.refuse(name, list(results_problems(results, self.tasks, again, {spelled: method})))
        except InputError as error:
            return f"method '{spelled}' cannot be computed again: {error}"
        return None

    def _check_card(self, given: _GivenCard) -> None:
        name, card = given.name, given.card
        if self.findings.refuse(name, list(card_problems(card, self.tasks))):
            return
        of_tasks = " and with their task sets" if self.tasks else ""
        self.findings.hold(name, f"the numbers of the card agree with each other{of_tasks}")
        reason = self._card_not_remade(given)
        if reason is None:
            return
        self.findings.leave(name, f"the card's intervals, ranks and baselines: {reason}")
        reason = self._card_not_recomputed(name, card)
        if reason:
            self.findings.leave(name, reason, main=given.main)

    def _card_not_recomputed(self, name: str, card: Card) -> str | None:
        """Compute the accuracies of a card again; return why that cannot be done, if so."""
        if not self.tasks:
            return NO_TASKS
        method, source = self._method(card.method), card.sources.get("features")
        if isinstance(method, str):
            return method
        again = self._recomputation(FeaturesRecord(name=card.encoder), source.digest if source else None, method)
        if isinstance(again, str):
            return again
        try:
            if not self.findings.refuse(name, list(card_problems(card, self.tasks, again, method))):
                self.findings.hold(name, f"the accuracies of the card come out again{self._extent()}")
        except InputError as error:
            return f"method '{card.method}' cannot be computed again: {error}"
        return None

    def _card_not_remade(self, given: _GivenCard) -> str | None:
        """Make the card of a folder again and compare; return why that cannot be done, if so."""
        name, card, folder = given.name, given.card, given.folder
        if folder is None or not folder.results:
            return "the results that it was made from are not beside it"
        if self.how.sample is not None:
            return "with --sample, no interval is computed again"
        for spelled in dict.fromkeys(method for results in folder.results for method in results.methods):
            reason = self._method(spelled)
            if isinstance(reason, str):
                return reason
        try:
            remade = remake_card(card, folder.quickly() if card.quick else folder, self.how.runtime)
        except InputError as error:
            return f"it cannot be made again: {error}"
        if not self.findings.refuse(name, list(card_differences(card, remade))):
            self.findings.hold(name, "the card comes out again from the counts, with its intervals and ranks")
            if card.version != remade.version:
                self.findings.leave(name, f"the card's sentences: they were written by version {card.version}")
        return None

    def _method(self, spelled: str) -> Method | str:
        """Make a method that a file names, or say why that is not done."""
        is_head = spelled.startswith("model:")
        if is_head and self.model is None:  # no file is read because a result names it
            return f"method '{spelled}' is a model's own head: give the model and the catalog"
        try:
            named = Inputs([results for _, results in self.results], folders=self.folders)
            method = ModelHead(self.model) if is_head and self.model is not None else named.method(spelled)
        except NotTrusted:
            return f"method '{spelled}' {OWN_CODE}"
        except InputError as error:
            return str(error)
        if method.needs == "items" and not isinstance(method, Adaptation):
            return f"method '{spelled}' asks a server, whose answers cannot be computed again"
        return method

    def _recomputation(self, record: FeaturesRecord, digest: str | None, method: Method) -> Recomputation | str:
        """Say how answers are computed again: on features of this digest, or of the same weights; else why not."""
        if isinstance(method, Adaptation):
            if self.network is None:
                return f"method '{method.spelling}' adapts a model: give the model and the catalog"
            return replace(self.how, model=self.network, catalog=self._catalog())
        if not self.features:
            return "the features are not there: give them beside it"
        if digest is None:
            return replace(self.how, features=self.features[-1])
        candidates = list(self.features)
        with contextlib.suppress(InputError):
            candidates = Inputs(features=candidates).with_transforms(record.as_source(digest))
        for features in candidates:
            if features.digest == digest:
                return replace(self.how, features=features)
        made = record.fingerprint, tuple(map(str, record.transforms))
        for features in candidates:  # by the same weights, digests may differ in the last bit
            if record.fingerprint and made == (
                features.record.fingerprint,
                tuple(map(str, features.record.transforms)),
            ):
                return replace(self.how, features=features)
        if self.model is not None and record.fingerprint is None:
            return replace(self.how, features=self.features[-1])
        known = ", ".join(dict.fromkeys(features.digest for features in self.features[:_SHOWN]))
        return f"the features with digest {digest} are not there: give them beside it (there are: {known})"

    def _needs_features_of_model(self) -> bool:
        """Return whether anything that is checked is of features, and not of methods that adapt a model."""
        spelled = [method for _, results in self.results for method in results.methods]
        spelled += [given.card.method for given in self.cards]
        return any(not isinstance(self._method(one), Adaptation | str) for one in spelled)

    def _catalog(self) -> Catalog:
        if not self.catalogs:
            raise InputError("expected a catalog, whose items are to be encoded (--catalog)")
        return self.catalogs[0]

    def _extent(self) -> str:
        return " on every task" if self.how.sample is None else f" on {counted(self.how.sample, 'task')} of each set"


def _by_digest(given: Sequence[Any], digest: str | None) -> Any:
    """Find what has this digest; of the only one there, if no digest is stated."""
    if digest is None:
        return given[0] if len(given) == 1 else None
    return next((one for one in given if one.digest == digest), None)


def _model(path: Path) -> Model:
    from shotproof.models.model import Model

    return Model.read(path)
