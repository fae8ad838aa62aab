"""Verification of results, cards and bundles from other people."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
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
from shotproof.core.storage.files import path_exists
from shotproof.core.trust import NotTrusted, Trust, trusting
from shotproof.features.encoder import Encoder, encode
from shotproof.features.encoders.file import FeatureFile
from shotproof.features.features import Features
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method
from shotproof.learners.model_head import ModelHead
from shotproof.models.model_encoder import ModelEncoder
from shotproof.pipeline.bundle.bundle import Bundle
from shotproof.pipeline.encode_tasks import with_changed_items
from shotproof.pipeline.file_kinds import holds_files
from shotproof.pipeline.read import MODEL_SUFFIXES, by_role, files_of, read_table_file
from shotproof.pipeline.steps.steps import MANIFEST
from shotproof.results.results import Results
from shotproof.tasks.copied import without_copies
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model

Part = str | Path | Results | Card | TaskSet | Features | Catalog | Attributes

CHECKABLE = "expected task sets, results, a card (.json), a bundle (.zip), or a run folder"
NO_TASKS = "the task sets to check it against are missing: pass them as well"
CUSTOM_CODE = "runs custom code: allow it with --trust (in Python, trust=True)"
ARRAYS = (".npy", ".npz")
# What the tasks of a sampler share with those of another set; those with copies have the copies beside them.
_QUERIES = ("task", "slot", "label", "query")
_SHARED = {"changed": (*_QUERIES, "support"), "chosen": _QUERIES, "copied": (*_QUERIES, "support")}
_MAX_DIGESTS = 20  # digests of features to list in a reason


def verify(
    parts: Part | Sequence[Part],
    *,
    sample: int | None = None,
    seed: int = 0,
    trust: Trust = False,
    runtime: Runtime | None = None,
) -> Checked:
    """Check results, cards and bundles: internally, against their task sets, and by recomputing them.

    Counts must be possible, task sets must match by digest, all tasks and classes must be present, and the numbers of a
    card must be consistent. Task sets must satisfy the definition of their sampler. Counts are recomputed on the
    features that the results name by digest, and the card of a folder is recreated from its results, with its
    intervals. The first task that differs is reported.

    Args:
        parts: results, cards, bundles, task sets, run folders or profile folders to check; and what to check them
            against and recompute them from, matched by digest, in addition to the contents of the folders: task sets,
            features (Parquet or, with a catalog, npy or npz), catalogs, attributes, and a model file, which replaces
            features on the items of the catalog or is adapted by methods such as finetune
        sample: number of tasks per set to recompute counts on, without intervals; None means all
        seed: seed for choosing these tasks
        trust: whether code that the files name as a method may be imported, or which, as listed by `NotTrusted`
        runtime: runtime settings

    Returns:
        What was verified, what is wrong, and what was not checked and why.

    Raises:
        InputError: a file cannot be read, or counts are impossible (0 <= correct <= queries does not hold).

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
    all_parts = parts if isinstance(parts, Sequence) and not isinstance(parts, str) else [parts]
    verification = _Verification(Recomputation(sample=sample, seed=seed, runtime=runtime))
    with trusting(trust):
        for part in all_parts:
            verification.add(part)
        if not (verification.results or verification.cards or verification.task_files):
            note = "features, catalogs, attributes and models are only used to check these"
            raise InputError(f"nothing to check: {CHECKABLE}; {note}")
        verification.encode_features()
        return verification.check()


@dataclass(frozen=True)
class _CardEntry:
    """Card to check.

    name: name in messages
    folder_inputs: inputs in the folder of the card, if any
    main: whether the card itself is being checked
    """

    name: str
    card: Card
    folder_inputs: Inputs | None = None
    main: bool = True


@dataclass
class _Verification:
    """Everything to verify, under unique names, and the findings so far."""

    recomputation: Recomputation
    tasks: list[TaskSet] = field(default_factory=list)
    catalogs: list[Catalog] = field(default_factory=list)
    attributes: list[Attributes] = field(default_factory=list)
    features: list[Features] = field(default_factory=list)
    arrays: list[Path] = field(default_factory=list)
    model: Path | None = None
    task_files: list[tuple[str, TaskSet]] = field(default_factory=list)
    results: list[tuple[str, Results]] = field(default_factory=list)
    cards: list[_CardEntry] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    network: Model | None = None  # read from the model file

    def add(self, part: Part) -> None:
        """Add an object, or the contents of a file, bundle or folder."""
        if not isinstance(part, str | Path):
            self._store(part.title if isinstance(part, Card) else part.describe(), part)
        elif holds_files(path := Path(part)):
            objects = [self._read(file, str(file)) for file in files_of(path)]
            self.folders.append(path)
            if path_exists(path / CARD_FILE):
                inputs = Inputs(**by_role(objects), folders=[path])
                self.cards.append(_CardEntry(str(path / CARD_FILE), Card.read(path, checked=False), inputs))
        elif path.name == MANIFEST:
            raise InputError(f"{path} is the manifest of a run: pass its folder instead")
        elif path.suffix == ".json":
            self._store(str(path), Card.read(path, checked=False))
        elif path.suffix == ".zip":
            self._add_bundle(path)
        elif path.suffix in MODEL_SUFFIXES:
            self.model = path
        elif path.suffix in ARRAYS:
            self.arrays.append(path)
        elif path.suffix not in ("", ".parquet", ".parts") and path_exists(path):
            raise InputError(f"{path} contains nothing that can be checked: {CHECKABLE}")
        else:
            self.folders.append(path.parent)
            self._read(path, str(path))

    def _read(self, file: Path, name: str) -> Any:
        """Read a file, and check the digest in its metadata against its content."""
        part: Any = read_table_file(file)
        stated_digest = part.record.stated_digest
        # Task sets are checked for this later.
        if stated_digest not in (None, part.digest) and not isinstance(part, TaskSet):
            problem = (
                f"its content has digest {part.digest}, but its metadata state {stated_digest}: the file was changed"
            )
            self.findings.add_problems(name, [problem])
        self._store(name, part)
        return part

    def _store(self, name: str, part: Any) -> None:
        """Store an object by its type."""
        if isinstance(part, Card):
            self.cards.append(_CardEntry(name, part))
        elif isinstance(part, Results):
            self.results.append((name, part))
        else:
            for role, objects in by_role([part]).items():
                getattr(self, role).extend(objects)
        if isinstance(part, TaskSet):
            self.task_files.append((name, part))

    def _add_bundle(self, path: Path) -> None:
        """Verify a bundle; its card cannot be recreated, because bundles contain no results."""
        with Bundle.unpacked(path) as (bundle, unpacked):
            self.findings.add_verified(str(path), "all files are present and match the manifest, by SHA-256 and digest")
            for kind in ("catalog", "attributes", "tasks"):
                for name in bundle.names(kind):
                    self._read(unpacked / name, f"{path}, {name}")
            for name in bundle.names("card"):
                card = Card.read(unpacked / name, checked=False)
                self.cards.append(_CardEntry(f"{path}, {name}", card, main=False))

    def encode_features(self) -> None:
        """Encode the items of the catalog with the given arrays or model, if anything needs them."""
        encoders: list[Encoder] = [FeatureFile(path) for path in self.arrays]
        if self.model is not None and self._needs_features_of_model():
            encoders.append(ModelEncoder(self.model))
        for encoder in encoders:
            is_array = isinstance(encoder, FeatureFile)  # has no features of changed items
            catalog = self._require_catalog() if is_array else self._catalog_with_changes()
            self.features.append(encode(catalog, encoder, runtime=self.recomputation.runtime))

    def check(self) -> Checked:
        """Check everything, and return the conclusion."""
        self.network = None if self.model is None else _read_model(self.model)
        for name, tasks in self.task_files:
            self._check_tasks(name, tasks)
        for name, results in self.results:
            self._check_results(name, results)
        for entry in self.cards:
            self._check_card(entry)
        return self.findings.checked()

    def _check_tasks(self, name: str, tasks: TaskSet) -> None:
        """Check a task set against the definition of its sampler."""
        catalog = _find_by_digest(self.catalogs, tasks.record.source("catalog"))
        attributes = _find_by_digest(self.attributes, tasks.record.source("attributes"))
        if catalog is None:
            self.findings.add_unchecked(name, "the sampler's definition: the catalog of the tasks is missing")
            return
        try:
            violations = check_tasks(tasks, catalog, attributes)
        except InputError as error:
            self.findings.add_unchecked(name, f"the sampler's definition: {error}")
            return
        problems = [*map(str, violations), *self._unlike(tasks)]
        if not self.findings.add_problems(name, problems):
            self.findings.add_verified(name, "every task satisfies the definition of its sampler")

    def _unlike(self, tasks: TaskSet) -> Iterator[str]:
        """Yield a problem if tasks differ from those of another set that they were made from, if these are given."""
        columns = _SHARED.get(tasks.record.sampler_name, ())
        original = _find_by_digest(self.tasks, tasks.record.source("like")) if columns else None
        if original is None:
            return
        table = without_copies(tasks) if tasks.record.sampler_name == "copied" else tasks.table
        if not original.first(len(tasks)).table.select(columns).equals(table.select(columns)):
            items, verb = ("items", "change") if "support" in columns else ("queries", "take")
            yield f"its {items} are not those of the task set {original.digest}, which it states to {verb}"

    def _check_results(self, name: str, results: Results) -> None:
        """Check results against their task sets, and recompute their counts."""
        if not self.tasks:
            self.findings.add_unchecked(name, NO_TASKS, main=True)
            return
        if self.findings.add_problems(name, list(results_problems(results, self.tasks))):
            return
        self.findings.add_verified(name, "every task and class of its task set is present")
        all_recomputed = True
        for part in results.by_method():
            reason = self._recompute(name, part)
            if reason:
                self.findings.add_unchecked(name, reason, main=True)
            all_recomputed = all_recomputed and not reason
        if all_recomputed and not any(problem.startswith(f"{name}: ") for problem in self.findings.problems):
            self.findings.add_verified(name, f"the counts were reproduced{self._describe_extent()}")

    def _recompute(self, name: str, results: Results) -> str | None:
        """Recompute the counts of one method; return the reason if that is not possible."""
        spelling = results.methods[0]
        method = self._build_method(spelling)
        if isinstance(method, str):
            return method
        recomputation = self._plan_recomputation(results.record.features, results.record.features_digest, method)
        if isinstance(recomputation, str):
            return recomputation
        model_digest = results.record.source("model")
        if recomputation.model is not None and model_digest not in (None, recomputation.model.digest):
            available_digest = recomputation.model.digest
            return f"the model with digest {model_digest} is missing: pass it as well (found: {available_digest})"
        try:
            self.findings.add_problems(
                name, list(results_problems(results, self.tasks, recomputation, {spelling: method}))
            )
        except InputError as error:
            return f"the counts of method '{spelling}' cannot be recomputed: {error}"
        return None

    def _check_card(self, entry: _CardEntry) -> None:
        """Check a card for consistency, and recreate or recompute it."""
        name, card = entry.name, entry.card
        if self.findings.add_problems(name, list(card_problems(card, self.tasks))):
            return
        suffix = " and with their task sets" if self.tasks else ""
        self.findings.add_verified(name, f"the numbers of the card agree with each other{suffix}")
        reason = self._recreate_card(entry)
        if reason is None:
            return
        self.findings.add_unchecked(name, f"the card's intervals, ranks and baselines: {reason}")
        reason = self._recompute_card(name, card)
        if reason:
            self.findings.add_unchecked(name, reason, main=entry.main)

    def _recompute_card(self, name: str, card: Card) -> str | None:
        """Recompute the accuracies of a card; return the reason if that is not possible."""
        if not self.tasks:
            return NO_TASKS
        method, source = self._build_method(card.method), card.sources.get("features")
        if isinstance(method, str):
            return method
        recomputation = self._plan_recomputation(
            FeaturesRecord(name=card.encoder), source.digest if source else None, method
        )
        if isinstance(recomputation, str):
            return recomputation
        try:
            if not self.findings.add_problems(name, list(card_problems(card, self.tasks, recomputation, method))):
                self.findings.add_verified(name, f"the accuracies of the card were reproduced{self._describe_extent()}")
        except InputError as error:
            return f"the accuracies of method '{card.method}' cannot be recomputed: {error}"
        return None

    def _recreate_card(self, entry: _CardEntry) -> str | None:
        """Recreate the card of a folder and compare; return the reason if that is not possible."""
        name, card, inputs = entry.name, entry.card, entry.folder_inputs
        if inputs is None or not inputs.results:
            return "the results that it was computed from are missing"
        if self.recomputation.sample is not None:
            return "intervals are not recomputed with --sample"
        for spelling in dict.fromkeys(method for results in inputs.results for method in results.methods):
            method_or_reason = self._build_method(spelling)
            if isinstance(method_or_reason, str):
                return method_or_reason
        try:
            recreated = remake_card(card, inputs.quickly() if card.quick else inputs, self.recomputation.runtime)
        except InputError as error:
            return f"it cannot be recreated: {error}"
        if not self.findings.add_problems(name, list(card_differences(card, recreated))):
            self.findings.add_verified(name, "the card was reproduced from the counts, with its intervals and ranks")
            if card.version != recreated.version:
                self.findings.add_unchecked(name, f"the card's sentences: they were written by version {card.version}")
        return None

    def _build_method(self, spelling: str) -> Method | str:
        """Build a method that a file names, or return the reason why it is not built."""
        is_head = spelling.startswith("model:")
        if is_head and self.model is None:  # a file is not read just because results name it
            return f"method '{spelling}' is the head of a model: pass the model and the catalog"
        try:
            inputs = Inputs([results for _, results in self.results], folders=self.folders)
            method = ModelHead(self.model) if is_head and self.model is not None else inputs.method(spelling)
        except NotTrusted:
            return f"method '{spelling}' {CUSTOM_CODE}"
        except InputError as error:
            return str(error)
        if method.needs == "items" and not isinstance(method, Adaptation):
            return f"method '{spelling}' queries a server, whose answers cannot be recomputed"
        return method

    def _plan_recomputation(self, record: FeaturesRecord, digest: str | None, method: Method) -> Recomputation | str:
        """Return the settings for recomputing answers, or the reason why that is not possible.

        Features are matched by digest, or by the fingerprint of the encoder's weights and the transforms.
        """
        if isinstance(method, Adaptation):
            if self.network is None:
                return f"method '{method.spelling}' adapts a model: pass the model and the catalog"
            return replace(self.recomputation, model=self.network, catalog=self._catalog_with_changes())
        if not self.features:
            return "the features are missing: pass them as well"
        if digest is None:
            return replace(self.recomputation, features=self.features[-1])
        candidates = list(self.features)
        with contextlib.suppress(InputError):
            candidates = Inputs(features=candidates).with_transforms(record.as_source(digest))
        for features in candidates:
            if features.digest == digest:
                return replace(self.recomputation, features=features)
        origin = record.fingerprint, tuple(map(str, record.transforms))
        for features in candidates:  # with the same weights, values may differ in the last bit
            if record.fingerprint and origin == (
                features.record.fingerprint,
                tuple(map(str, features.record.transforms)),
            ):
                return replace(self.recomputation, features=features)
        if self.model is not None and record.fingerprint is None:
            return replace(self.recomputation, features=self.features[-1])
        available_digests = ", ".join(dict.fromkeys(features.digest for features in self.features[:_MAX_DIGESTS]))
        return f"the features with digest {digest} are missing: pass them as well (found: {available_digests})"

    def _needs_features_of_model(self) -> bool:
        """Return whether any results or cards to check use features, rather than methods that adapt a model."""
        spellings = [method for _, results in self.results for method in results.methods]
        spellings += [entry.card.method for entry in self.cards]
        return any(not isinstance(self._build_method(spelling), Adaptation | str) for spelling in spellings)

    def _require_catalog(self) -> Catalog:
        """Return the catalog, or raise InputError if there is none."""
        if not self.catalogs:
            raise InputError("no catalog given: pass the catalog of the items as well")
        return self.catalogs[0]

    def _catalog_with_changes(self) -> Catalog:
        """Return the catalog, with the changed items of all task sets after its own."""
        return with_changed_items(self._require_catalog(), self.tasks)

    def _describe_extent(self) -> str:
        """Describe on which tasks counts are recomputed."""
        return (
            " on every task"
            if self.recomputation.sample is None
            else f" on {counted(self.recomputation.sample, 'task')} of each set"
        )


def _find_by_digest(objects: Sequence[Any], digest: str | None) -> Any:
    """Find the object with this digest; if no digest is stated, the only object, or None."""
    if digest is None:
        return objects[0] if len(objects) == 1 else None
    return next((candidate for candidate in objects if candidate.digest == digest), None)


def _read_model(path: Path) -> Model:
    """Read a model file; PyTorch is imported only here."""
    from shotproof.models.model import Model

    return Model.read(path)
