"""Published sets of sounds.

Their folds divide the clips of each class, but few-shot splits divide the classes: the split is `all`, unless `splits`
assigns others.
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

    The published labels of a clip include all labels above them (`Electric_guitar,Guitar,Music`): the label is the most
    specific one. A label is above another if every clip with the other label has it too. Clips with several most
    specific labels are left out and counted. `subset` is dev or eval.
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
        """Read the clips with one most specific label."""
        columns, _ = super().columns(root)
        columns["label"] = most_specific([labels.split(",") for labels in columns["label"]])
        rows = [row for row, labels in enumerate(columns["label"]) if len(labels) == 1]
        if not rows:
            raise InputError(f"{root}: no clip has a single most specific label")
        left_out = len(columns["item"]) - len(rows)
        columns = {name: [values[row] for row in rows] for name, values in columns.items()}
        columns["label"] = [label for (label,) in columns["label"]]
        return columns, {"clips_of_several_labels": left_out}


def most_specific(clip_labels: Sequence[Sequence[str]]) -> list[list[str]]:
    """Keep those labels of each clip that are not above any other of its labels, and labels that always go together.

    Example:
        >>> most_specific([["guitar", "music"], ["drum", "music"], ["guitar", "drum", "music"], ["music"]])
        [['guitar'], ['drum'], ['guitar', 'drum'], ['music']]
    """
    clips: dict[str, set[int]] = defaultdict(set)
    for row, labels in enumerate(clip_labels):
        for label in labels:
            clips[label].add(row)
    return [
        [label for label in labels if not any(clips[other] < clips[label] for other in labels)]
        for labels in clip_labels
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
