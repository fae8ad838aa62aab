"""`shotproof similarity`: how near images are to the names of their concepts and of their contexts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.runtime_options import BatchSize, Cache, Device, EngineName, Progress, Workers, make_runtime
from shotproof.core.errors import InputError

if TYPE_CHECKING:
    from shotproof.analysis.similarity import Similarity


def similarity(
    catalog: Annotated[Path, typer.Argument(help="catalog.parquet")],
    model: Annotated[
        str | None, typer.Option(help="A two-tower model of transformers, like CLIP or SigLIP: a folder or a name.")
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Allow to download the model from the Hugging Face hub.")] = False,
    template: Annotated[
        str | None, typer.Option(help="Text to put names into, e.g. 'a photo of a {}'; without it, the name alone.")
    ] = None,
    features: Annotated[Path | None, typer.Option(help="Instead of a model: the items' embeddings.")] = None,
    texts: Annotated[
        Path | None, typer.Option(help="With --features: embeddings of the words, whose items are the words.")
    ] = None,
    context_column: Annotated[
        str | None, typer.Option(help="The column with the contexts (context); without one, concepts alone.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only the items of one split; otherwise all.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A page to write, with the scatter.")] = None,
    items: Annotated[
        Path | None, typer.Option(help="similarity.parquet to write, one row per item; shotproof report takes it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the means as JSON.")] = False,
    batch_size: BatchSize = None,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Measure M_ce and M_te (MetaCoCo, Eq. 1): mean cosine of images with their concepts' and their contexts' names.

    Example: shotproof similarity catalog.parquet --model clip-vit-base-patch32/ -o similarity.html
    """
    from shotproof.analysis.similarity import measure_similarity, words_of
    from shotproof.catalog.catalog import Catalog
    from shotproof.cli.console import print_json
    from shotproof.features.encoder import encode
    from shotproof.features.features import Features
    from shotproof.report.figures.similarity_figure import write_similarity

    if (model is None) == (features is None) or (features is None) != (texts is None):
        raise InputError("give either --model, or both --features and --texts")
    if model is None and (template is not None or hub):
        raise InputError("--template and --hub go with --model: embeddings that exist stay as they are")
    given = Catalog.read(catalog)
    given = given if split is None else given.in_split(split)
    column = context_column or ("context" if "context" in given.table.column_names else None)
    if model is not None:
        from shotproof.features.encoders.two_tower import NAME, TwoTower

        runtime = make_runtime(workers, device, cache, progress, engine, batch_size=batch_size)
        towers = TwoTower(model, hub=hub)
        words = towers.encode_words(words_of(given, column), template or NAME)
        images = encode(given, towers, runtime=runtime)
    elif features is not None and texts is not None:
        images, words = Features.read(features), Features.read(texts)
    found = measure_similarity(given, images, words, column)
    if items is not None:
        found.write(items)
    if output is not None:
        write_similarity(output, found)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)


def _print(found: Similarity) -> None:
    from shotproof.cli.console import print_table

    rows = [
        [row["concept"], f"{row['items']:,}", *(_cosine(row[name]) for name in ("m_ce", "m_te"))]
        for row in [*found.concepts.to_pylist(), {"concept": "all", **found.overall}]
    ]
    print_table("Mean cosine with names", ["concept", "items", "M_ce (concept)", "M_te (context)"], rows)


def _cosine(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
