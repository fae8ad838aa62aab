"""What results were made from, as their metadata says: the design, the sampler, the task set, the encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from shotproof.evaluation.results import Results
from shotproof.tables import Meta

RANDOM = "random"
REFERENCES = (RANDOM, "iid")  # what the others are measured against, the first that is there
UNKNOWN = "unknown"
_NOT_OPTIONS = {"sampler", "split", "way", "shot", "query", "tasks"}


@dataclass(frozen=True)
class Design:
    """What the tasks were drawn from and their size; None where the metadata does not say, or where tasks differ."""

    catalog: str | None
    split: str | None
    way: int | None
    shot: int | None
    query: int | None
    dial: float | None = None

    @property
    def shape(self) -> str:
        """E.g. `5-way 1-shot`."""
        ways = "variable-way" if self.way is None else f"{self.way}-way"
        unknown = "variable-shot" if self.way is None else "unknown shots"
        return f"{ways} {unknown if self.shot is None else f'{self.shot}-shot'}"


@dataclass(frozen=True)
class Source:
    """What a results file says that it was made from.

    options: the sampler's, as (name, value), sorted
    inputs: what the sampler was given beside the catalog, e.g. `attributes`
    match: the same for task sets whose tasks are paired one by one; of a set that is like no other, its own digest
    """

    design: Design
    sampler: str
    options: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    tasks_digest: str | None
    match: str | None
    encoder: str

    @classmethod
    def of(cls, results: Results) -> Source:
        """From the metadata; the way and the query size are read off the counts where the metadata lacks them."""
        made_by = lookup(results.meta, "tasks", "made_by")
        options = made_by if isinstance(made_by, dict) else {}
        made_from = lookup(results.meta, "tasks", "from")
        tasks_digest = _text(lookup(results.meta, "tasks", "digest"))
        design = Design(
            catalog=_text(lookup(results.meta, "tasks", "from", "catalog")),
            split=_text(lookup(made_by, "split")),
            way=_number(options.get("way", pc.max(results.table.column("slot")).as_py() + 1)),
            shot=_number(lookup(made_by, "shot")),
            query=_number(options.get("query", pc.max(results.table.column("n_query")).as_py())),
            dial=lookup(results.meta, "tasks", "mix", "dial"),
        )
        return cls(
            design,
            sampler=_text(lookup(made_by, "sampler")) or UNKNOWN,
            options=tuple(sorted((name, str(value)) for name, value in options.items() if name not in _NOT_OPTIONS)),
            inputs=tuple(sorted(made_from.keys() - {"catalog"})) if isinstance(made_from, dict) else (),
            tasks_digest=tasks_digest,
            match=_text(lookup(results.meta, "tasks", "match")) or tasks_digest,
            encoder=_text(lookup(results.meta, "features", "encoder")) or UNKNOWN,
        )


def sources_of(results: Sequence[Results]) -> list[Source]:
    """What each results file was made from, variants of a sampler told apart by the options in which they differ.

    So `fewstab` tasks with two ways to choose the support become `fewstab (support=attribute)` and so on.
    """
    sources = [Source.of(given) for given in results]
    variants: dict[tuple[Design, str], set[tuple[tuple[str, str], ...]]] = {}
    for source in sources:
        variants.setdefault((source.design, source.sampler), set()).add(source.options)
    named = []
    for source in sources:
        options = variants[source.design, source.sampler]
        differing = [option for option in source.options if any(option not in other for other in options)]
        if source.sampler == RANDOM:  # a reference by this name alone, unless its queries are unequal
            differing = [option for option in source.options if option[0] == "query_dirichlet"]
        if differing:
            listed = ", ".join(f"{name}={value}" for name, value in differing)
            source = replace(source, sampler=f"{source.sampler} ({listed})")
        named.append(source)
    return named


def reference(sources: Sequence[Source]) -> Source | None:
    """The set that gaps are measured from: random tasks, iid tasks, or of matched sets the one that they are like."""
    for name in REFERENCES:
        for source in sources:
            if source.sampler == name:
                return source
    matches = {source.match for source in sources}
    if len(sources) < 2 or len(matches) > 1 or None in matches:
        return None
    return next((source for source in sources if source.tasks_digest in matches), sources[0])


def lookup(meta: Meta, *keys: str) -> Any:
    """A value deep in metadata, or None where somebody's own file does not have it."""
    value: Any = meta
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
