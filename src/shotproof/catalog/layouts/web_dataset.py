"""Layout of WebDataset shards: tar files, read in place, in which members with the same stem are one sample."""

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
    """A shard, or a folder of shards; the split is part of a shard's name, or `all`.

    The members of a sample have the same name up to the first dot. A sample has one image or sound. Its class is the
    content of its member `cls` or `txt`, or a field of its `json`.
    """

    about = "tar shards of WebDataset, read in place"
    example = "webdataset(label='json', field='species')"

    label: str = option("cls", "extension of the member with the class")
    field: str = option("label", "field with the class, if the member is json")

    def read(self, root: Path) -> Catalog:
        """Read the samples of all shards."""
        columns: dict[str, list[str]] = {"item": [], "label": [], "split": []}
        is_shard = root.name.endswith(".tar!")
        shards = [""] if is_shard else sorted(name for name in names_below(root) if name.endswith(".tar"))
        if not shards:
            raise InputError(f"{root} has no shard: expected files that end with .tar")
        for shard in shards:
            folder = root if is_shard else root / f"{shard}!"
            try:
                members = sorted(names_below(folder))
            except OSError as error:
                raise InputError(f"{folder} cannot be read: {error.strerror or error}") from error
            split = split_in_name(shard or root.name) or "all"
            for sample, extensions in _group_members(members).items():
                items = [extension for extension in extensions if extension.rpartition(".")[2] in EXTENSIONS]
                if not items:
                    continue
                if len(items) > 1:
                    raise InputError(f"{folder}, sample '{sample}' has {len(items)} images or sounds, expected one")
                columns["item"].append(f"{shard}!/{sample}.{items[0]}" if shard else f"{sample}.{items[0]}")
                columns["label"].append(self._read_label(folder, sample, extensions))
                columns["split"].append(split)
        if not columns["item"]:
            raise InputError(f"{root}: no shard has a member that ends with {', '.join(EXTENSIONS)}")
        return sorted_catalog(columns, root)

    def _read_label(self, folder: Path, sample: str, extensions: list[str]) -> str:
        if self.label not in extensions:
            raise InputError(
                f"{folder}, sample '{sample}' has no member '{self.label}': it has {', '.join(extensions)}"
            )
        path = folder / f"{sample}.{self.label}"
        if self.label.rpartition(".")[2] != "json":
            return read_text(path, str(path)).strip()
        content = read_json(path, str(path))
        if not isinstance(content, dict) or not isinstance(content.get(self.field), str | int):
            raise InputError(f"{path}: expected a text or number in the field '{self.field}'")
        return str(content[self.field])


def _group_members(members: list[str]) -> dict[str, list[str]]:
    """Return the extensions of the members of each sample, by the sample's name."""
    samples: dict[str, list[str]] = {}
    for member in members:
        folder, _, name = member.rpartition("/")
        stem, _, extension = name.partition(".")
        if stem and extension:
            samples.setdefault(f"{folder}/{stem}" if folder else stem, []).append(extension)
    return samples
