"""FSD50K: sound events, each clip with one label or several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.layout import Layout, read_listing, require_files, sorted_catalog
from shotproof.core.errors import InputError

TRUTH = "FSD50K.ground_truth"


@dataclass(frozen=True)
class Fsd50kLayout(Layout):
    """`FSD50K.ground_truth/dev.csv` and `eval.csv` beside `FSD50K.dev_audio/` and `FSD50K.eval_audio/`.

    Published labels are those of a clip and all that stand above them (`Electric_guitar,Guitar,Music`): the label is
    the most specific one. A label stands above another if every clip that has the other has it too. Clips with several
    labels that are most specific are left out and counted. `subset` is dev or eval; few-shot splits divide the classes:
    the split is `all` (`splits` assigns others).
    """

    dataset = "FSD50K"
    about = "FSD50K.ground_truth/ beside FSD50K.dev_audio and FSD50K.eval_audio; clips of one most specific label"
    license = "CC BY 4.0; clips under CC0, CC BY, CC BY-NC and CC Sampling+, listed in its metadata"
    citation = "Fonseca et al., FSD50K: An Open Dataset of Human-Labeled Sound Events, IEEE/ACM TASLP 2022"

    def read(self, root: Path) -> Catalog:
        """The clips of one most specific label."""
        items: list[str] = []
        given: list[list[str]] = []
        subsets: list[str] = []
        for subset in ("dev", "eval"):
            listing = root / TRUTH / f"{subset}.csv"
            table = read_listing(listing, {"fname": "file", "labels": "labels"})
            named = [f"FSD50K.{subset}_audio/{name}.wav" for name in table.column("file").to_pylist()]
            require_files(root, named, listing, first_line=2)
            items += named
            given += [labels.split(",") for labels in table.column("labels").to_pylist()]
            subsets += [subset] * len(named)
        chosen = most_specific(given)
        kept = [row for row, labels in enumerate(chosen) if len(labels) == 1]
        if not kept:
            raise InputError(f"{root}: no clip has a single label that is most specific")
        columns = {
            "item": [items[row] for row in kept],
            "label": [chosen[row][0] for row in kept],
            "subset": [subsets[row] for row in kept],
        }
        return sorted_catalog(columns, root, clips_of_several_labels=len(items) - len(kept))


def most_specific(given: Sequence[Sequence[str]]) -> list[list[str]]:
    """Of each clip's labels, those above none of its others; labels that always go together stand beside each other.

    Example:
        >>> most_specific([["guitar", "music"], ["drum", "music"], ["guitar", "drum", "music"], ["music"]])
        [['guitar'], ['drum'], ['guitar', 'drum'], ['music']]
    """
    clips: dict[str, set[int]] = defaultdict(set)
    for row, labels in enumerate(given):
        for label in labels:
            clips[label].add(row)
    return [[one for one in labels if not any(clips[other] < clips[one] for other in labels)] for labels in given]
