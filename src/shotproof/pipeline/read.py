"""Reader for any Shotproof file, and for the files in a run folder."""

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
from shotproof.core.storage.parts import table_name
from shotproof.core.storage.places import absolute
from shotproof.core.trust import Trust
from shotproof.cures.cure import CURE_FILE, Cure
from shotproof.features.features import Features
from shotproof.features.fitted_map import FittedMap
from shotproof.pipeline.bundle.bundle import Bundle
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.file_kinds import holds_files, kind_of, read_kind
from shotproof.pipeline.steps.steps import Steps
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

if TYPE_CHECKING:
    from shotproof.models.model import Model  # imported where it is needed: requires PyTorch
    from shotproof.pipeline.study import Part, Study

Readable = Union[
    Catalog,
    Attributes,
    Features,
    TaskSet,
    Results,
    Similarity,
    FittedMap,
    Experiment,
    "Model",
    Card,
    Cure,
    Bundle,
    "Study",
]

MODEL_SUFFIXES = (".model", ".safetensors")
_ROLES = {"results": Results, "tasks": TaskSet, "catalogs": Catalog, "features": Features, "attributes": Attributes}


def files_of(path: Path, run: Steps | None = None) -> list[Path]:
    """Return a file itself; for a folder, the files of its last run, or else all Parquet files below it."""
    if not holds_files(path):
        return [path]
    current = (run or Steps(path)).manifest.current
    names = current or sorted({table_name(name) for name in names_below(path) if name.endswith(".parquet")})
    files = [path / name for name in names]
    if not files:
        raise InputError(f"{path} contains no run: expected an output folder of shotproof run, or Parquet files")
    return files


def files_by_kind(folder: Path) -> dict[str, list[Path]]:
    """Group the files of a folder's last run, or else all Parquet files below it, by kind."""
    files: dict[str, list[Path]] = {}
    for file in files_of(folder):
        files.setdefault(kind_of(file), []).append(file)
    return files


def read(path: str | Path, *, trust: Trust = False) -> Readable:
    """Read a file of any kind, or a run folder.

    Args:
        path: catalog, attributes, features, tasks, results, similarity or fitted map file, experiment (.toml), model
            (.model or .safetensors), robustness card (.json), cure (cure.json), bundle (.zip), or folder
        trust: for an experiment or a folder, whether code that it names may be imported

    Returns:
        A `Catalog`, `Attributes`, `Features`, `TaskSet`, `Results`, `Similarity`, `FittedMap`, `Experiment`, `Model`,
        `Card`, `Cure` or `Bundle`; for a folder, the `Study` of its run.

    Raises:
        InputError: the file does not exist, or is of no known kind.

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
        return Cure.read(path) if path.name == CURE_FILE else Card.read(path)
    if path.suffix == ".zip":
        return Bundle.read(path)
    return read_table_file(path)


def read_table_file(path: Path) -> Readable:
    """Read a Parquet file of any kind."""
    content: Readable = read_kind(path, kind_of(path))
    return content


def by_role(parts: Iterable[Any]) -> dict[str, Any]:
    """Group objects into the lists that `Inputs` takes; objects of other types are left out."""
    all_parts = list(parts)
    return {role: [part for part in all_parts if isinstance(part, kind)] for role, kind in _ROLES.items()}


def read_inputs(parts: Sequence[Part], *, halvings: int | None = None, trust: Trust = False) -> Inputs:
    """Read everything in files and run folders.

    Args:
        parts: files of any kind, run folders (the files of the last run), and objects read from them
        halvings: number of random halvings of the data, for intervals that re-evaluate
        trust: whether code named in the files may be imported and files elsewhere may be read

    Raises:
        InputError: a file does not exist, or is of a kind that cannot be used here.
    """
    paths = [Path(part) for part in parts if isinstance(part, str | Path)]
    runs = {path: Steps(path) for path in paths if holds_files(path)}
    files = {f"{absolute(file)}": file for path in paths for file in files_of(path, runs.get(path))}
    objects: list[Any] = [part for part in parts if not isinstance(part, str | Path)]
    unsupported = next((part for part in objects if not isinstance(part, (*_ROLES.values(), Similarity))), None)
    if unsupported is not None:
        expected = "results, task sets, catalogs, features, attributes, files of these, or run folders"
        raise InputError(f"expected {expected}, found {type(unsupported).__name__}")
    objects += map(read_table_file, files.values())
    inputs = Inputs(
        **by_role(objects),
        halvings=halvings,
        trust=trust,
        folders=list(dict.fromkeys(path if is_folder(path) else path.parent for path in paths)),
        keeper=Steps(None, before=list(runs.values())),
    )
    is_quick = halvings is None and any(run.manifest.compared_by.quick for run in runs.values())
    return inputs.quickly() if is_quick else inputs
