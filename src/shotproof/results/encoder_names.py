"""What people read in place of an encoder's spelling: of one that is a file or a folder, the file's name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from shotproof.core.errors import InputError
from shotproof.core.records import TRANSFORMED
from shotproof.core.spelling import parse_spelling, write_call
from shotproof.features.encoder import encoders

_HUB_NAME = re.compile(r"\w[\w.\-]*(/\w[\w.\-]*)?")  # of a model; anything else is a folder


def short_encoder_names(spellings: Iterable[str]) -> dict[str, str]:
    """A short name for each encoder, no two alike: options and transforms stay, of a path as much as tells them apart.

    Encoders that are no files, and models on a hub, keep their spelling. A file that is called like an encoder is told
    with its suffix.

    Args:
        spellings: of encoders, with the transforms that followed, e.g. `model:nets/a.model > l2`

    Returns:
        The name of each, by its spelling, in the order given.

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
        times = Counter(names.values())
        alike = [
            one for one, name in names.items() if times[name] > 1 and lengths[one] < len(candidates[one]) - 1
        ]  # whole spellings differ
        if not alike:
            return names
        for one in alike:
            lengths[one] += 1


def _candidates(spelling: str) -> list[str]:
    """The names that it may have, the shortest first, the whole spelling last."""
    encoder, *steps = spelling.split(TRANSFORMED)
    try:
        name, argument, options = parse_spelling(encoder)
    except InputError:  # a name that somebody gave to features of their own
        return [spelling]
    if argument is None or name not in encoders:
        return [spelling]
    is_file = any(each.argument and each.path for each in encoders.get(name).options())
    if not is_file and _HUB_NAME.fullmatch(argument):
        return [spelling]
    parts = [part for part in re.split(r"[/\\]+", argument) if part]
    paths = ["/".join(parts[-length:]) for length in range(1, len(parts) + 1)]
    tried = [one for path in paths for one in ((_without_suffix(path), path) if is_file else (path,))]
    after = write_call("", options)
    short = [TRANSFORMED.join([f"{one}{after}", *steps]) for one in tried if one and one not in encoders]
    return list(dict.fromkeys([*short, spelling]))


def _without_suffix(path: str) -> str:
    return re.sub(r"(?<=[^/])\.\w+$", "", path)
