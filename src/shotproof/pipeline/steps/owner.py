"""What an output folder belongs to: one experiment on one data set, so that no run reports on the data of another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.core.errors import InputError
from shotproof.core.storage.places import url_of
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.experiment_text import path_from

EXPERIMENT_FILE = "experiment.toml"  # of a folder that a command has made the experiment for


@dataclass(frozen=True)
class Owner:
    """The experiment that a folder belongs to; paths start from the folder, so that both can be moved together.

    made_by: the command, or the bundle, that wrote the experiment; empty where a user wrote it
    experiment: its file; empty where it has none
    data: the data's folder, catalog or address
    """

    made_by: str
    experiment: str
    data: str

    @classmethod
    def of(cls, experiment: Experiment, made_by: str = "") -> Owner:
        """Return what the folder of an experiment will belong to.

        Args:
            experiment: what is to be run
            made_by: the command, or the bundle, that wrote it
        """
        file = experiment.folder / EXPERIMENT_FILE if made_by else experiment.file
        data = experiment.root or experiment.catalog_file
        assert data is not None  # an experiment without either cannot be read
        return cls.on(experiment.folder, data, made_by, file)

    @classmethod
    def on(cls, folder: Path, data: Path, made_by: str = "", file: Path | None = None) -> Owner:
        """Return what a folder with the results of some data will belong to."""
        named = "" if file is None else path_from(folder, file)
        return cls(made_by, named, url_of(data) or path_from(folder, data))

    def require(self, known: Owner | None, folder: Path) -> None:
        """Refuse a folder that belongs to something else.

        Args:
            known: what the folder belongs to; None: nothing yet
            folder: to be written

        Raises:
            InputError: the folder belongs to another experiment, or to other data; the message names both.
        """
        if known is None:
            return
        is_same = known.data == self.data and (not self.made_by or known.made_by == self.made_by)
        if is_same and (not known.experiment or not self.experiment or known.experiment == self.experiment):
            return
        raise InputError(
            f"{folder} belongs to {known.told(folder)}, and this is {self.told(folder)}: choose another folder, "
            "-o OTHER"
        )

    def told(self, folder: Path) -> str:
        """Say what it is, with whole paths."""
        what = self.made_by or (str((folder / self.experiment).resolve()) if self.experiment else "an experiment")
        return f"{what} on {self.data if url_of(self.data) else (folder / self.data).resolve()}"
