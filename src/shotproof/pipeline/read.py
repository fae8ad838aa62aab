"""Any of our files, by what it holds; and all that lies in a run's folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.similarity import Similarity
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import Card
from shotproof.core.errors import InputError
from shotproof.core.storage.files import is_folder, names_below
from shotproof.core.storage.parts import own_name
from shotproof.core.storage.places import absolute
from shotproof.core.trust import Trust
from shotproof.features.features import Features
from shotproof.pipeline.bundle.bundle import Bundle
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.file_kinds import holds_files, kind_of, read_kind
from shotproof.pipeline.steps.steps import Steps
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model  # imported where one is read: it needs PyTorch
    from shotproof.pipeline.study import Part, Study

Readable = Union[
    Catalog, Attributes, Features, TaskSet, Results, Similarity, Experiment, "Model", Card, Bundle, "Study"
]

MODEL_SUFFIXES = (".model", ".safetensors")
_ROLES = {"results": Results, "tasks": TaskSet, "catalogs": Catalog, "features": Features, "attributes": Attributes}


def files_of(path: Path, run: Steps | None = None) -> list[Path]:
    """A file itself; of a folder, the files of its last run, or else all Parquet files below it."""
    if not holds_files(path):
        return [path]
    current = (run or Steps(path)).manifest.current
    names = current or sorted({own_name(name) for name in names_below(path) if name.endswith(".parquet")})
    files = [path / name for name in names]
    if not files:
        raise InputError(f"{path} has no run in it: expected a folder that shotproof run has written, or Parquet files")
    return files


def files_by_kind(folder: Path) -> dict[str, list[Path]]:
    """The files of a folder's last run, or else all Parquet files below it, by what they hold."""
    files: dict[str, list[Path]] = {}
    for file in files_of(folder):
        files.setdefault(kind_of(file), []).append(file)
    return files


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
        >>> sp.worlds.ShapesWorld(classes=2, items=3).catalog().write(file)
        >>> read(file)
        <Catalog: world of shapes, 6 items of 2 classes, splits all>
    """
    path = Path(path)
    if holds_files(path):
        from shotproof.pipeline.study import Study

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
    return read_table_file(path)


def read_table_file(path: Path) -> Readable:
    """Read a Parquet file of any kind."""
    made: Readable = read_kind(path, kind_of(path))
    return made


def by_role(parts: Iterable[Any]) -> dict[str, Any]:
    """Sort what was read into the lists that `Inputs` has; what has no place there is left out."""
    listed = list(parts)
    return {role: [part for part in listed if isinstance(part, kind)] for role, kind in _ROLES.items()}


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
    runs = {path: Steps(path) for path in paths if holds_files(path)}
    files = {f"{absolute(file)}": file for path in paths for file in files_of(path, runs.get(path))}
    made: list[Any] = [part for part in parts if not isinstance(part, str | Path)]
    strange = next((part for part in made if not isinstance(part, (*_ROLES.values(), Similarity))), None)
    if strange is not None:
        expected = "results, task sets, catalogs, features, attributes, files of these, or folders of runs"
        raise InputError(f"expected {expected}, found {type(strange).__name__}")
    made += map(read_table_file, files.values())
    inputs = Inputs(
        **by_role(made),
        halvings=halvings,
        trust=trust,
        folders=list(dict.fromkeys(path if is_folder(path) else path.parent for path in paths)),
        keeper=Steps(None, before=list(runs.values())),
    )
    is_quick = halvings is None and any(run.manifest.compared_by.quick for run in runs.values())
    return inputs.quickly() if is_quick else inputs
