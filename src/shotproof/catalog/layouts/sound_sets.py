"""Published sets of sounds.

Their folds divide every class, and few-shot splits divide the classes: the split is `all` (`splits` assigns others).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shotproof.catalog.layouts.published import Columns, Listing, Paths, PublishedLayout
from shotproof.core.errors import InputError


class Esc50Layout(PublishedLayout):
    """`meta/esc50.csv` and the folder `audio`; `source` is the recording that a clip was cut from."""

    dataset = "ESC-50"
    about = "meta/esc50.csv beside an audio folder"
    license = "CC BY-NC 3.0; the clips' own licenses and authors are listed in its LICENSE file"
    citation = "Piczak, ESC: Dataset for Environmental Sound Classification, ACM Multimedia 2015"
    items = Listing("meta/esc50.csv", "audio/{filename}", {"label": "category", "source": "src_file", "fold": "fold"})


class Fsd50kLayout(PublishedLayout):
    """`FSD50K.ground_truth/dev.csv` and `eval.csv` beside `FSD50K.dev_audio/` and `FSD50K.eval_audio/`.

    Published labels are those of a clip and all that stand above them (`Electric_guitar,Guitar,Music`): the label is
    the most specific one. A label stands above another if every clip that has the other has it too. Clips with several
    labels that are most specific are left out and counted. `subset` is dev or eval.
    """

    dataset = "FSD50K"
    about = "FSD50K.ground_truth/ beside FSD50K.dev_audio and FSD50K.eval_audio; clips of one most specific label"
    license = "CC BY 4.0; clips under CC0, CC BY, CC BY-NC and CC Sampling+, listed in its metadata"
    citation = "Fonseca et al., FSD50K: An Open Dataset of Human-Labeled Sound Events, IEEE/ACM TASLP 2022"
    items = Listing(
        "FSD50K.ground_truth/{subset}.csv",
        "FSD50K.{subset}_audio/{fname}.wav",
        {"label": "labels"},
        each=("subset", ("dev", "eval")),
    )

    def columns(self, root: Path) -> tuple[Columns, dict[str, Any]]:
        """Read the clips of one most specific label."""
        columns, _ = super().columns(root)
        columns["label"] = most_specific([labels.split(",") for labels in columns["label"]])
        kept = [row for row, labels in enumerate(columns["label"]) if len(labels) == 1]
        if not kept:
            raise InputError(f"{root}: no clip has a single label that is most specific")
        left_out = len(columns["item"]) - len(kept)
        columns = {name: [values[row] for row in kept] for name, values in columns.items()}
        columns["label"] = [label for (label,) in columns["label"]]
        return columns, {"clips_of_several_labels": left_out}


def most_specific(labels_of: Sequence[Sequence[str]]) -> list[list[str]]:
    """Of each clip's labels, those above none of its others; labels that always go together stand beside each other.

    Example:
        >>> most_specific([["guitar", "music"], ["drum", "music"], ["guitar", "drum", "music"], ["music"]])
        [['guitar'], ['drum'], ['guitar', 'drum'], ['music']]
    """
    clips: dict[str, set[int]] = defaultdict(set)
    for row, labels in enumerate(labels_of):
        for label in labels:
            clips[label].add(row)
    return [
        [label for label in labels if not any(clips[label] < clips[label] for label in labels)] for labels in labels_of
    ]


class UrbanSound8KLayout(PublishedLayout):
    """`metadata/UrbanSound8K.csv` and the folders `audio/fold1` to `audio/fold10`.

    `source` is the recording (fsID) that a slice was cut from; `salience` is 1 for foreground, 2 for background.
    """

    dataset = "UrbanSound8K"
    about = "metadata/UrbanSound8K.csv beside audio/fold1 to audio/fold10"
    license = "CC BY-NC 3.0"
    citation = "Salamon, Jacoby and Bello, A Dataset and Taxonomy for Urban Sound Research, ACM Multimedia 2014"
    items = Listing(
        "metadata/UrbanSound8K.csv",
        "audio/fold{fold}/{slice_file_name}",
        {"label": "class", "source": "fsID", "fold": "fold", "salience": "salience"},
    )


class VocalSoundLayout(PublishedLayout):
    """Files named SPEAKER_NUMBER_CLASS, such as `f0003_0_cough.wav`, in `audio_16k`, `data_44k` or the root itself.

    `source` is the speaker.
    """

    dataset = "VocalSound"
    about = "files named SPEAKER_NUMBER_CLASS in audio_16k or data_44k"
    license = "CC BY-SA 4.0"
    citation = "Gong, Yu and Glass, VocalSound: A Dataset for Improving Human Vocal Sounds Recognition, ICASSP 2022"
    items = Paths(
        r"(?P<source>[fm]\d+)_\d+_(?P<label>[a-z]+)\.\w+",
        "a name such as f0003_0_cough.wav (speaker, number, class)",
        ("audio_16k", "data_44k", ""),
    )
