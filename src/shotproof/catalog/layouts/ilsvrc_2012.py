"""ImageNet's ILSVRC-2012, as Meta-Dataset divides it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, sorted_catalog
from shotproof.catalog.layouts.class_folders import class_folders
from shotproof.catalog.layouts.published_splits import (
    NAMES,
    SPLIT_CITATION,
    SPLIT_FILE,
    checked,
    split_file,
    splits_of,
)
from shotproof.core.errors import InputError
from shotproof.core.files import field, read_json
from shotproof.core.options import option


@dataclass(frozen=True)
class IlsvrcLayout(Layout):
    """One folder per synset (`n01440764/`) of ImageNet's training images, and Meta-Dataset's specification.

    The split is in `ilsvrc_2012_dataset_spec.json`: the leaves of the graphs of its three splits. `name` is what the
    specification calls a synset. Images that other data sets share, which Meta-Dataset leaves out, are not left out.
    """

    dataset = "ILSVRC-2012"
    about = "synset folders of ImageNet's training images, and Meta-Dataset's ilsvrc_2012_dataset_spec.json"
    license = "ImageNet terms of access: non-commercial research and education"
    citation = f"Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015; {SPLIT_CITATION}"

    split_file: Path | None = option(None, SPLIT_FILE, path=True)

    def read(self, root: Path) -> Catalog:
        """The images of all synsets."""
        path = split_file(root, self.split_file, "ilsvrc_2012_dataset_spec.json")
        split_of, words = _leaves(path)
        columns, ignored = class_folders(root)
        columns["split"] = splits_of(columns["label"], split_of, path)
        columns["name"] = [words[label] for label in columns["label"]]
        return checked(sorted_catalog(columns, root, ignored_files=ignored), path, None, None)


def _leaves(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """{synset: split} and {synset: words} of the leaves of a specification's graphs."""
    content = read_json(path, str(path))
    split_of: dict[str, str] = {}
    words: dict[str, str] = {}
    try:
        for split, nodes in field(content, "split_subgraphs", dict).items():
            for node in nodes:
                if not field(node, "children_ids", list):
                    synset = field(node, "wn_id", str)
                    split_of[synset] = NAMES.get(split.lower(), split.lower())
                    words[synset] = field(node, "words", str) if "words" in node else synset
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: expected a specification with split_subgraphs") from error
    return split_of, words
