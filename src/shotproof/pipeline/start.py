"""Default experiment for a folder of images or sounds."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError
from shotproof.core.storage.files import is_folder, path_exists, read_toml
from shotproof.core.storage.whole_files import new_folder, write_text
from shotproof.core.trust import Trust, agreed_by_typing, trusting
from shotproof.features.encoder import encoders
from shotproof.learners.method import DEFAULT_METHODS
from shotproof.media.clip import SOUND_EXTENSIONS
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.experiment_text import experiment_text, method_from, path_from, spelling_from, toml_value
from shotproof.pipeline.steps.owner import EXPERIMENT_FILE, Owner
from shotproof.pipeline.steps.steps import read_manifest

MADE_BY = "shotproof run"
TASKS = 600
SKIP_SMALL = "skip_small_classes=True"
_ABOUT = """\
Made for {root}. Edit it and run it again: shotproof run experiment.toml
# Only what depends on the change is computed again. shotproof show lists all components."""


@dataclass(frozen=True)
class StartOptions:
    """Options that replace parts of the default experiment.

    encoders, methods: spellings; empty means the defaults
    tasks: number of tasks per task set; None means the default
    skip_bad: leave out files that cannot be read
    skip_small: leave out classes that are too small for the tasks
    """

    encoders: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    tasks: int | None = None
    skip_bad: bool = False
    skip_small: bool = False

    def spelled_from(self, folder: Path) -> StartOptions:
        """Return the options with paths relative to a folder; users type paths relative to the working directory."""
        return replace(
            self,
            encoders=tuple(spelling_from(folder, encoders.make(encoder)) for encoder in self.encoders),
            methods=tuple(method_from(folder, method) for method in self.methods),
        )

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> StartOptions:
        """Recover the options from the tables of an experiment that was generated from them."""
        features, tasks, evaluate = (_get_table(content, name) for name in ("features", "tasks", "evaluate"))
        encoders, methods = features.get("encoders"), evaluate.get("methods")
        return cls(
            tuple(encoders) if isinstance(encoders, list) else (),
            tuple(methods) if isinstance(methods, list) else (),
            tasks["tasks"] if isinstance(tasks.get("tasks"), int) else None,
            "on_error" in features,
            SKIP_SMALL in str(tasks.get("samplers")),
        )


def start_experiment(
    root: Path, folder: Path, options: StartOptions | None = None, *, dry_run: bool = False, trust: Trust = False
) -> tuple[Experiment, Trust]:
    """Create the default experiment on a folder of class folders, and write its file.

    Images get photometric attributes and FewSTAB tasks. Sounds have no attributes yet, so their random tasks are
    paired with the hardest supports for the same queries. An existing file is kept, with the user's edits, unless
    other options are given: then it is overwritten if the user has not edited it.

    Args:
        root: data folder
        folder: output folder, which also gets the experiment file
        options: replacements for parts of the default experiment
        dry_run: write nothing
        trust: as in `Experiment.read`

    Returns:
        The experiment, and the trust to run it with, which includes everything that the options name.

    Raises:
        NotTrusted: the existing file names code or a server that is not trusted.
        InputError: the data has splits but none named test; the folder belongs to something else; or the options
            would overwrite a file that the user has edited.
    """
    options = options or StartOptions()
    path = folder / EXPERIMENT_FILE
    owner = Owner.on(folder, root, MADE_BY, path)
    owner.require(read_manifest(folder).owner, folder)
    # Paths through a missing folder cannot be resolved, and a dry run does not create it.
    base = folder if is_folder(folder) or not dry_run else Path()
    catalog = functools.cache(lambda: read_layout(root, "folder"))
    if path_exists(path):
        existing = read_toml(path, f"experiment file {path}")
        owner.require(_owner_of(existing, folder), folder)
        if options == StartOptions():
            return Experiment.read(path, trust), trust
        if existing != _build_tables(root, catalog(), base, StartOptions.of(existing)):
            raise InputError(
                f"{path} was edited by hand, and these flags would overwrite it: edit the file and run it without "
                "flags, or choose another folder with --output"
            )
    with contextlib.nullcontext() if dry_run else new_folder(folder):
        content = _build_tables(root, catalog(), base, options.spelled_from(base))
        typed_by_user = agreed_by_typing(lambda: Experiment.of(content, base))
        with trusting(trusted := trust is True or [*(trust or ()), *typed_by_user]):
            experiment = Experiment.of(content, base)
        if not dry_run:
            write_text(path, experiment_text(content, _ABOUT.format(root=toml_value(content["catalog"]["root"]))))
    return replace(
        experiment, folder=folder, file=None if dry_run else path, at_hand=Inputs(catalogs=[catalog()])
    ), trusted


def _get_table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a section of an arbitrary file; an empty table if it is missing or not a table."""
    section = content.get(name)
    return section if isinstance(section, Mapping) else {}


def _owner_of(content: Mapping[str, Any], folder: Path) -> Owner:
    """Return the owner of a folder according to the experiment file in it."""
    catalog = _get_table(content, "catalog")
    return Owner.on(
        folder, folder / str(catalog.get("root", catalog.get("file", ""))), MADE_BY, folder / EXPERIMENT_FILE
    )


def _build_tables(root: Path, catalog: Catalog, folder: Path, options: StartOptions) -> dict[str, dict[str, Any]]:
    """Build the tables of the experiment file, including the keys that users change most often."""
    splits = catalog.splits
    if len(splits) > 1 and "test" not in splits:
        raise InputError(f"{root} has the splits {', '.join(splits)} but none named test: write an experiment file")
    counts_by_sound = Counter(file.suffix.lower().removeprefix(".") in SOUND_EXTENSIONS for file in catalog.paths)
    is_sound = counts_by_sound[True] > counts_by_sound[False]
    skip_option = f"({SKIP_SMALL})" if options.skip_small else ""
    hardest = {"name": "hardest", "like": "random"}
    design = {"way": 5, "shots": [1, 5], "query": 15, "tasks": options.tasks or TASKS, "seeds": [0]}
    return {
        "catalog": {"root": path_from(folder, root), "layout": "folder"},
        **({} if is_sound else {"attributes": {"detectors": ["photometric"]}}),
        "features": {
            "encoders": list(options.encoders) or ["logmel" if is_sound else "lite0"],
            **({"on_error": "skip"} if options.skip_bad else {}),
        },
        "tasks": {
            **({"split": "test"} if len(splits) > 1 else {}),
            **design,
            "samplers": [f"random{skip_option}", hardest if is_sound else f"fewstab{skip_option}"],
        },
        "evaluate": {"methods": list(options.methods or DEFAULT_METHODS)},
        "output": {"folder": "."},
    }
