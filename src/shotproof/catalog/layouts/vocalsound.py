"""VocalSound: human sounds that are not speech, in its published layout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.core.errors import InputError
from shotproof.media.clip import SOUND_EXTENSIONS

FOLDERS = ("audio_16k", "data_44k", ".")
NAME = re.compile(r"(?P<speaker>[fm]\d+)_\d+_(?P<label>[a-z]+)")


@dataclass(frozen=True)
class VocalSoundLayout(Layout):
    """Files named SPEAKER_NUMBER_CLASS, such as `f0003_0_cough.wav`, in `audio_16k`, `data_44k` or the root itself.

    `source` is the speaker. The published splits divide the speakers, and few-shot splits divide the classes: the split
    is `all` (`splits` assigns others).
    """

    dataset = "VocalSound"
    about = "files named SPEAKER_NUMBER_CLASS in audio_16k or data_44k"
    license = "CC BY-SA 4.0"
    citation = "Gong, Yu and Glass, VocalSound: A Dataset for Improving Human Vocal Sounds Recognition, ICASSP 2022"

    def read(self, root: Path) -> Catalog:
        """The sounds of the first folder that holds any."""
        for folder in FOLDERS:
            files = _sounds_in(root / folder)
            if files:
                return sorted_catalog(_columns(files, root), root)
        raise InputError(f"{root} holds no sound, nor do {' and '.join(FOLDERS[:2])} in it")


def _sounds_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    suffixes = {f".{extension}" for extension in SOUND_EXTENSIONS}
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in suffixes and path.name[0] != ".")


def _columns(files: list[Path], root: Path) -> dict[str, list[str]]:
    parts = [NAME.fullmatch(path.stem) for path in files]
    for path, part in zip(files, parts, strict=True):
        if part is None:
            raise InputError(f"{path}: expected a name such as f0003_0_cough (speaker, number, class)")
    return {
        "item": [path.relative_to(root).as_posix() for path in files],
        "label": [part["label"] for part in parts if part],
        "source": [part["speaker"] for part in parts if part],
    }
