"""Short names of encoders for tables and figures: the file's name for an encoder that is a file or a folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from shotproof.core.errors import InputError
from shotproof.core.records import TRANSFORMED
from shotproof.core.spelling import parse_spelling, write_call
from shotproof.features.encoder import encoders

_HUB_NAME = re.compile(r"\w[\w.\-]*(/\w[\w.\-]*)?")  # name of a model on a hub; anything else is a folder


def short_encoder_names(spellings: Iterable[str]) -> dict[str, str]:
    """Build a short name for each encoder, no two of them alike.

    Options and transforms are kept, and as much of each path as is needed to tell the encoders apart. Encoders that are
    not files, and models on a hub, keep their spelling. A file that has the name of an encoder keeps its suffix.

    Args:
        spellings: spellings of encoders, with the transforms that followed, e.g. `model:nets/a.model > l2`

    Returns:
        The name of each encoder, by its spelling, in the order of `spellings`.

    Example:
        >>> short_encoder_names(["model:nets/a.model > l2", "hf:facebook/dinov2-small"])
        {'model:nets/a.model > l2': 'a > l2', 'hf:facebook/dinov2-small': 'hf:facebook/dinov2-small'}
        >>> list(short_encoder_names(["model:first/a.model", "model:second/a.model"]).values())
        ['first/a', 'second/a']
    """
    candidates = {spelling: _candidates(spelling) for spelling in spellings}
    lengths = dict.fromkeys(candidates, 0)
    while True:
        names = {spelling: candidates[spelling][length] for spelling, length in lengths.items()}
        uses = Counter(names.values())
        ambiguous = [
            spelling
            for spelling, name in names.items()
            if uses[name] > 1 and lengths[spelling] < len(candidates[spelling]) - 1  # full spellings differ
        ]
        if not ambiguous:
            return names
        for spelling in ambiguous:
            lengths[spelling] += 1


def _candidates(spelling: str) -> list[str]:
    """List the possible names of an encoder, the shortest first, its full spelling last."""
    encoder, *steps = spelling.split(TRANSFORMED)
    try:
        name, argument, options = parse_spelling(encoder)
    except InputError:  # a name that a user gave to their own features
        return [spelling]
    if argument is None or name not in encoders:
        return [spelling]
    is_file = any(option.argument and option.path for option in encoders.get(name).options())
    if not is_file and _HUB_NAME.fullmatch(argument):
        return [spelling]
    parts = [part for part in re.split(r"[/\\]+", argument) if part]
    paths = ["/".join(parts[-length:]) for length in range(1, len(parts) + 1)]
    stems = [stem for path in paths for stem in ((_without_suffix(path), path) if is_file else (path,))]
    call = write_call("", options)
    names = [TRANSFORMED.join([f"{stem}{call}", *steps]) for stem in stems if stem and stem not in encoders]
    return list(dict.fromkeys([*names, spelling]))


def _without_suffix(path: str) -> str:
    return re.sub(r"(?<=[^/])\.\w+$", "", path)
