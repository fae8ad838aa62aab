"""WebDataset shards: tar files whose members with one name, up to the first dot, are one sample; read in place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.item_paths import EXTENSIONS, split_in_name
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.storage.files import names_below, read_json, read_text


@dataclass(frozen=True)
class WebDatasetLayout(Layout):
    """A shard, or a folder of shards; the split is the one that a shard's name has in it, or `all`.

    A sample has one image or sound. Its class is what its member `cls` or `txt` holds, or a field of its `json`.
    """

    about = "tar shards of WebDataset, read in place"
    example = "webdataset(label='json', field='species')"

    label: str = option("cls", "the member with the class, by its ending")
    field: str = option("label", "of a json member, the field with the class")

    def read(self, root: Path) -> Catalog:
        """Return the samples of all shards."""
        columns: dict[str, list[str]] = {"item": [], "label": [], "split": []}
        inside = root.name.endswith(".tar!")  # one shard was given
        shards = [""] if inside else sorted(name for name in names_below(root) if name.endswith(".tar"))
        if not shards:
            raise InputError(f"{root} holds no shard: expected files that end in .tar")
        for shard in shards:
            folder = root if inside else root / f"{shard}!"
            try:
                members = sorted(names_below(folder))
            except OSError as error:
                raise InputError(f"{folder} cannot be read: {error.strerror or error}") from error
            split = split_in_name(shard or root.name) or "all"
            for sample, ends in _samples(members).items():
                items = [end for end in ends if end.rpartition(".")[2] in EXTENSIONS]
                if not items:
                    continue
                if len(items) > 1:
                    raise InputError(f"{folder}, sample '{sample}' has {len(items)} images or sounds, expected one")
                columns["item"].append(f"{shard}!/{sample}.{items[0]}" if shard else f"{sample}.{items[0]}")
                columns["label"].append(self._label(folder, sample, ends))
                columns["split"].append(split)
        if not columns["item"]:
            raise InputError(f"{root}: no shard holds a member that ends in {', '.join(EXTENSIONS)}")
        return sorted_catalog(columns, root)

    def _label(self, folder: Path, sample: str, ends: list[str]) -> str:
        if self.label not in ends:
            raise InputError(f"{folder}, sample '{sample}' has no member '{self.label}': it has {', '.join(ends)}")
        path = folder / f"{sample}.{self.label}"
        if self.label.rpartition(".")[2] != "json":
            return read_text(path, str(path)).strip()
        found = read_json(path, str(path))
        if not isinstance(found, dict) or not isinstance(found.get(self.field), str | int):
            raise InputError(f"{path} has no text or number '{self.field}'")
        return str(found[self.field])


def _samples(members: list[str]) -> dict[str, list[str]]:
    """Return the endings of the members of each sample, by its name."""
    samples: dict[str, list[str]] = {}
    for member in members:
        folder, _, name = member.rpartition("/")
        start, _, end = name.partition(".")
        if start and end:
            samples.setdefault(f"{folder}/{start}" if folder else start, []).append(end)
    return samples
