"""Owner of an output folder: one experiment on one data set, so that no run reports on the data of another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.core.errors import InputError
from shotproof.core.storage.places import url_of
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.experiment_text import path_from

EXPERIMENT_FILE = "experiment.toml"  # in folders whose experiment was written by a command


@dataclass(frozen=True)
class Owner:
    """Experiment and data that a folder belongs to; paths are relative to the folder, so that all can move together.

    made_by: command or bundle that wrote the experiment; empty if a user wrote it
    experiment: experiment file; empty if there is none
    data: folder, catalog or address of the data
    """

    made_by: str
    experiment: str
    data: str

    @classmethod
    def of(cls, experiment: Experiment, made_by: str = "") -> Owner:
        """Return the owner of an experiment's folder.

        Args:
            experiment: experiment to run
            made_by: command or bundle that wrote it
        """
        file = experiment.folder / EXPERIMENT_FILE if made_by else experiment.file
        data = experiment.root or experiment.catalog_file
        assert data is not None  # experiments without either are rejected when they are read
        return cls.on(experiment.folder, data, made_by, file)

    @classmethod
    def on(cls, folder: Path, data: Path, made_by: str = "", file: Path | None = None) -> Owner:
        """Return the owner of a folder with results on some data."""
        experiment = "" if file is None else path_from(folder, file)
        return cls(made_by, experiment, url_of(data) or path_from(folder, data))

    def require(self, existing: Owner | None, folder: Path) -> None:
        """Reject a folder that belongs to something else.

        Args:
            existing: owner of the folder; None if it has none yet
            folder: folder to write

        Raises:
            InputError: the folder belongs to another experiment or to other data; the message names both.
        """
        if existing is None:
            return
        is_same = existing.data == self.data and (not self.made_by or existing.made_by == self.made_by)
        if is_same and (not existing.experiment or not self.experiment or existing.experiment == self.experiment):
            return
        raise InputError(
            f"{folder} belongs to {existing.describe(folder)}, but this is {self.describe(folder)}: choose another "
            "folder with --output"
        )

    def describe(self, folder: Path) -> str:
        """Describe the owner, with absolute paths."""
        experiment = self.made_by or (str((folder / self.experiment).resolve()) if self.experiment else "an experiment")
        return f"{experiment} on {self.data if url_of(self.data) else (folder / self.data).resolve()}"
