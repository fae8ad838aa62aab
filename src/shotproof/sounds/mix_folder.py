"""Folder of mixtures: it holds those of one set of settings, so that an existing file is the right one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shotproof.core.errors import InputError
from shotproof.core.plain_values import typed
from shotproof.core.storage.files import read_json
from shotproof.core.storage.whole_files import write_text
from shotproof.core.tables import check_output

SETTINGS = "mix.json"


def claim_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings and sources of the mixtures to the folder. Other settings in the folder are an error."""
    path = folder / SETTINGS
    check_output(path)
    if path.is_file():
        try:
            earlier = typed(read_json(path, str(path)), Mapping[str, Any]) or {}
        except InputError as error:
            raise InputError(f"{path} was not written by mixing: choose another folder") from error
        for key, value in settings.items():
            if earlier.get(key) != value:
                raise InputError(
                    f"{folder} holds mixtures with other settings: {key} was {earlier.get(key)} and is now {value}: "
                    "choose another folder, or remove this one"
                )
    write_text(path, json.dumps(settings, indent=2) + "\n")
