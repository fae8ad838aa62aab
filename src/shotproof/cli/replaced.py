"""Flags that are gone, and how to say now what they said: a command line that has one is answered with both."""

from __future__ import annotations

from collections.abc import Sequence

_ANY_DETECTOR = '--detector "NAME(option=value)"'
_ANY_ENCODER = '--encoder "NAME(option=value)", e.g. "pixels(size=4)"'
_ANY_LAYOUT = '--layout "NAME(option=value)", e.g. "folder(split_folders=False)"'


def _sampler(spelling: str) -> str:
    return f'--sampler "{spelling}"'


# What to type now, by command and old flag.
REPLACED: dict[str, dict[str, str]] = {
    "catalog": {"--option": _ANY_LAYOUT, "-O": _ANY_LAYOUT},
    "detect": {
        "--from": "--detector \"captions(file='FILE')\" or \"table(file='FILE')\"",
        "--model": "--detector vlm:MODEL or \"endpoint(model='MODEL')\"",
        "--url": "--detector \"endpoint(model='MODEL', url='ADDRESS')\"",
        "--hub": '--detector "vlm:MODEL(hub=True)"',
        "--tagger": "--detector \"captions(file='FILE', tagger='spacy')\"",
        "--option": _ANY_DETECTOR,
        "-O": _ANY_DETECTOR,
    },
    "encode": {
        "--hub": '--encoder "hf:MODEL(hub=True)"',
        "--maps": '--encoder "lite0(maps=True)"',
        "--option": _ANY_ENCODER,
        "-O": _ANY_ENCODER,
    },
    "compare": {"--splits": "--halvings"},
    "geometry": {"--centre": "--center"},
    "sample": {
        "--support": _sampler("fewstab(support='attribute')"),
        "--query-selection": _sampler("fewstab(query_selection='inter')"),
        "--max-tries": _sampler("fewstab(max_tries=1000)"),
        "--context-column": _sampler("context(context_column='context')"),
        "--clean-value": _sampler("context(clean_value='none')"),
        "--no-hard-ood": _sampler("context(hard_ood=False)"),
        "--query-dirichlet": _sampler("random(query_dirichlet=2)"),
        "--class-distances": _sampler("semantic(class_distances='FILE')"),
        "--temperature": _sampler("semantic(temperature=0.25)"),
        "--support-where": _sampler("shift(support_where='...', query_where='...')"),
        "--query-where": _sampler("shift(support_where='...', query_where='...')"),
        "--no-shift": _sampler("shift(support_where='...', query_where='...', shifted=False)"),
        "--candidates": _sampler("filter(candidates=100)"),
        "--mode": _sampler("hardest(mode='easy')"),
        "--alpha": _sampler("fastdiffsel(alpha=200)"),
        "--steps": _sampler("fastdiffsel(steps=3)"),
        "--scale": _sampler("greedy(scale=1)"),
        "--rounds": _sampler("greedy(rounds=3)"),
        "--normalise": _sampler("hardest(normalize=True)"),
        "--skip-small-classes": _sampler("random(skip_small_classes=True)"),
        "--option": _sampler("NAME(option=value)"),
        "-O": _sampler("NAME(option=value)"),
    },
}
# Commands that are gone.
_COMMANDS = {"methods": "shotproof list methods"}


def replacement(arguments: Sequence[str]) -> str | None:
    """What to say of a command line that could not be read because of a flag that is gone.

    Args:
        arguments: the command line, beginning with the command

    Returns:
        The message; None where no flag of it is known to be gone.

    Example:
        >>> replacement(["encode", "catalog.parquet", "--maps"])
        'encode has no --maps any more: type --encoder "lite0(maps=True)"'
    """
    command, *rest = arguments or [""]
    if command in _COMMANDS:
        return f"there is no command {command} any more: type {_COMMANDS[command]}"
    gone = REPLACED.get(command, {})
    for flag in (argument.partition("=")[0] for argument in rest):
        if flag in gone:
            return f"{command} has no {flag} any more: type {gone[flag]}"
    return None
