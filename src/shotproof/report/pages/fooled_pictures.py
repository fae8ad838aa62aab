"""Queries that fooled a classifier, as the page shows them: each with the supports of both of its names."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.analysis.fooled import Fooled, FooledQuery
from shotproof.comparison.comparison import Comparison
from shotproof.report.pages.album import CONTEXT, Album, Thumbnail


@dataclass(frozen=True)
class ShownFooled:
    """A query with its class's name for people, and the name of the class that it was called."""

    found: FooledQuery
    name: str
    called: str
    query: Thumbnail
    own_support: list[Thumbnail]
    called_support: list[Thumbnail]


@dataclass(frozen=True)
class FooledPart:
    """The section: what it is about, and the examples."""

    fooled: Fooled
    classifier: str
    set_name: str
    examples: list[ShownFooled]


def fooled_part(fooled: Fooled, comparison: Comparison, album: Album) -> FooledPart:
    """The examples with their items in the album."""
    column = fooled.column or CONTEXT
    names = fooled.catalog.class_names

    def shown(one: FooledQuery) -> ShownFooled:
        query, own, called = (
            album.thumbnails(items, fooled.catalog, column)
            for items in ([one.item], one.own_support, one.called_support)
        )
        return ShownFooled(one, names[one.label], names[one.called], query[0], own, called)

    return FooledPart(
        fooled,
        comparison.classifier_title(fooled.classifier),
        f"{fooled.label} tasks ({comparison.design_name(fooled.design)})",
        [shown(one) for one in fooled.examples],
    )
