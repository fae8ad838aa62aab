"""The experiment that anybody would begin with on a folder of images or of sounds."""

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
from shotproof.core.storage.files import is_folder, is_there, read_toml
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
Made for {root}. Change it and run it again: shotproof run experiment.toml
# Only what depends on the change is made anew. shotproof show tells what there is."""


@dataclass(frozen=True)
class StartOptions:
    """What a user asks for in place of the usual experiment.

    encoders, methods: empty: the usual ones
    tasks: per task set; None: as usual
    skip_bad: leave out files that cannot be read
    skip_small: leave out classes that are too small for the tasks
    """

    encoders: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    tasks: int | None = None
    skip_bad: bool = False
    skip_small: bool = False

    def spelled_from(self, folder: Path) -> StartOptions:
        """Return the options as an experiment of a folder spells them; a user types paths from the working folder."""
        return replace(
            self,
            encoders=tuple(spelling_from(folder, encoders.make(encoder)) for encoder in self.encoders),
            methods=tuple(method_from(folder, method) for method in self.methods),
        )

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> StartOptions:
        """Return the options that an experiment's tables would come from, if they come from any."""
        features, tasks, evaluate = (_table(content, name) for name in ("features", "tasks", "evaluate"))
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
    """Make the experiment on a folder of class folders, and write its file.

    Images get photometric attributes and FewSTAB's tasks. Sounds have no attributes yet, so their random tasks stand
    beside the hardest supports for the same queries. A file that is there stays, with what its user has changed in it,
    unless other options are asked for: then it is written anew if its user has changed nothing.

    Args:
        root: the data's folder
        folder: the output folder, which gets the experiment's file
        options: what is asked for in place of the usual
        dry_run: write nothing
        trust: as `Experiment.read` takes it

    Returns:
        The experiment, and what it needs to be trusted: what the options name is.

    Raises:
        NotTrusted: the file that is there names code, or a server, that is not trusted.
        InputError: the data has splits, and none is called test; the folder belongs to something else; or options would
            overwrite what a user has changed.
    """
    options = options or StartOptions()
    path = folder / EXPERIMENT_FILE
    owner = Owner.on(folder, root, MADE_BY, path)
    owner.require(read_manifest(folder).owner, folder)
    # Paths through a folder that is not there lead nowhere, and a dry run makes none.
    base = folder if is_folder(folder) or not dry_run else Path()
    catalog = functools.cache(lambda: read_layout(root, "folder"))
    if is_there(path):
        there = read_toml(path, f"experiment file {path}")
        owner.require(_owner_of(there, folder), folder)
        if options == StartOptions():
            return Experiment.read(path, trust), trust
        if there != _start_content(root, catalog(), base, StartOptions.of(there)):
            raise InputError(
                f"{path} was changed by hand, and these flags would write it anew: change it there and run it without "
                "flags, or choose another folder, -o OTHER"
            )
    with contextlib.nullcontext() if dry_run else new_folder(folder):
        content = _start_content(root, catalog(), base, options.spelled_from(base))
        typed = agreed_by_typing(lambda: Experiment.of(content, base))
        with trusting(trusted := trust is True or [*(trust or ()), *typed]):
            experiment = Experiment.of(content, base)
        if not dry_run:
            write_text(path, experiment_text(content, _ABOUT.format(root=toml_value(content["catalog"]["root"]))))
    return replace(
        experiment, folder=folder, file=None if dry_run else path, at_hand=Inputs(catalogs=[catalog()])
    ), trusted


def _table(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a section of a file that may hold anything; an empty one if it is no table."""
    section = content.get(name)
    return section if isinstance(section, Mapping) else {}


def _owner_of(content: Mapping[str, Any], folder: Path) -> Owner:
    """What an experiment's file in a folder is on."""
    catalog = _table(content, "catalog")
    return Owner.on(
        folder, folder / str(catalog.get("root", catalog.get("file", ""))), MADE_BY, folder / EXPERIMENT_FILE
    )


def _start_content(root: Path, catalog: Catalog, folder: Path, options: StartOptions) -> dict[str, dict[str, Any]]:
    """The tables of the experiment's file, with what users change most."""
    splits = catalog.splits
    if len(splits) > 1 and "test" not in splits:
        raise InputError(f"{root} has the splits {', '.join(splits)} and none called test: write an experiment file")
    kinds = Counter(file.suffix.lower().removeprefix(".") in SOUND_EXTENSIONS for file in catalog.paths)
    sounds = kinds[True] > kinds[False]
    skip = f"({SKIP_SMALL})" if options.skip_small else ""
    hardest = {"name": "hardest", "like": "random"}
    design = {"way": 5, "shots": [1, 5], "query": 15, "tasks": options.tasks or TASKS, "seeds": [0]}
    return {
        "catalog": {"root": path_from(folder, root), "layout": "folder"},
        **({} if sounds else {"attributes": {"detectors": ["photometric"]}}),
        "features": {
            "encoders": list(options.encoders) or ["logmel" if sounds else "lite0"],
            **({"on_error": "skip"} if options.skip_bad else {}),
        },
        "tasks": {
            **({"split": "test"} if len(splits) > 1 else {}),
            **design,
            "samplers": [f"random{skip}", hardest if sounds else f"fewstab{skip}"],
        },
        "evaluate": {"methods": list(options.methods or DEFAULT_METHODS)},
        "output": {"folder": "."},
    }
