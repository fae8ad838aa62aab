"""Any of our files, by what it holds; and all that lies in a run's folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.kept_arrays import KeptArrays
from shotproof.analysis.similarity import Similarity
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import Card
from shotproof.core.storage.files import is_folder
from shotproof.core.storage.parts import in_parts
from shotproof.core.storage.places import absolute
from shotproof.core.trust import Trust
from shotproof.features.features import Features
from shotproof.pipeline.bundle.bundle import Bundle
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.run_files import files_of, kind_of
from shotproof.pipeline.steps.steps import Steps
from shotproof.pipeline.study import Part, Study
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model  # imported where one is read: it needs PyTorch

Readable = Union[Catalog, Attributes, Features, TaskSet, Results, Similarity, Experiment, "Model", Card, Bundle, Study]

MODEL_SUFFIXES = (".model", ".safetensors")
_KINDS: dict[str, Any] = {
    "catalog": Catalog,
    "attributes": Attributes,
    "features": Features,
    "tasks": TaskSet,
    "results": Results,
    "similarity": Similarity,
}
_ROLES: dict[str, Any] = {
    "results": Results,
    "tasks": TaskSet,
    "catalogs": Catalog,
    "features": Features,
    "attributes": Attributes,
}


def read(path: str | Path, *, trust: Trust = False) -> Readable:
    """Read a file of any kind, or a run's folder.

    Args:
        path: a catalog, attributes, features, tasks, results or similarity file, an experiment (.toml), a model
            (.model or .safetensors), a robustness card (.json), a bundle (.zip), or a folder
        trust: of an experiment or a folder, whether code that it names may be imported

    Returns:
        A `Catalog`, `Attributes`, `Features`, `TaskSet`, `Results`, `Similarity`, `Experiment`, `Model`, `Card` or
        `Bundle`; of a folder, the `Study` of its run.

    Raises:
        InputError: there is no such file, or it is none of these.

    Example:
        >>> import tempfile, shotproof as sp
        >>> file = Path(tempfile.mkdtemp()) / "catalog.parquet"
        >>> sp.ShapesWorld(classes=2, items=3).catalog().write(file)
        >>> read(file)
        <Catalog: world of shapes, 6 items of 2 classes, splits all>
    """
    path = Path(path)
    if is_folder(path) and not in_parts(path):
        return Study.of(path, trust=trust)
    if path.suffix in MODEL_SUFFIXES:
        from shotproof.models.model import Model

        return Model.read(path)
    if path.suffix == ".toml":
        return Experiment.read(path, trust)
    if path.suffix == ".json":
        return Card.read(path)
    if path.suffix == ".zip":
        return Bundle.read(path)
    found: Readable = _KINDS[kind_of(path)].read(path)
    return found


def read_inputs(parts: Sequence[Part], *, halvings: int | None = None, trust: Trust = False) -> Inputs:
    """Read all that files and folders of runs hold.

    Args:
        parts: files of any kind, folders of runs, and what was read from these; of a folder, what its last run consists
            of
        halvings: how often the data is halved at random, for intervals that re-evaluate
        trust: whether code that the files name may be imported, and files elsewhere be read

    Raises:
        InputError: a file is not there, or not of a kind that is of use here.
    """
    paths = [Path(part) for part in parts if isinstance(part, str | Path)]
    files = {f"{absolute(file)}": file for path in paths for file in files_of(path)}
    made = [part for part in parts if not isinstance(part, str | Path)]
    made += [_KINDS[kind_of(file)].read(file) for file in files.values()]
    runs = [Steps(path) for path in paths if is_folder(path) and not in_parts(path)]
    roles: dict[str, Any] = {role: [part for part in made if isinstance(part, kind)] for role, kind in _ROLES.items()}
    inputs = Inputs(
        **roles,
        halvings=halvings,
        trust=trust,
        folders=list(dict.fromkeys(path if is_folder(path) else path.parent for path in paths)),
        keeper=KeptBefore(runs),
    )
    is_quick = halvings is None and any(steps.manifest.quick for steps in runs)
    return inputs.quickly() if is_quick else inputs


@dataclass(frozen=True)
class KeptBefore:
    """Finds what runs have kept in their folders; what is made beside is kept in memory, and no folder written to."""

    runs: Sequence[Steps]
    memory: Steps = field(default_factory=lambda: Steps(None))

    def is_current(self, name: str, inputs: Sequence[Any], parameters: Any) -> bool:
        """Return whether a run, or memory, has this."""
        return any(steps.is_current(name, inputs, parameters) for steps in (*self.runs, self.memory))

    def step(
        self,
        kind: type[KeptArrays],
        name: str,
        inputs: Sequence[Any],
        parameters: Any,
        make: Callable[[], KeptArrays],
        compared: bool = True,
    ) -> KeptArrays | None:
        """Return what a run has made from the same inputs by the same parameters, or else make it."""
        for steps in self.runs:
            kept = steps.current(kind, name, inputs, parameters)
            if kept is not None:
                return kept
        return self.memory.step(kind, name, inputs, parameters, make, compared)
