"""`shotproof explain similarity`: similarity of images to the names of their concepts and contexts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.arguments import AsJson, BatchSize, OutputPage, Split, read_one, sort_files
from shotproof.cli.console import print_table
from shotproof.core.errors import InputError

if TYPE_CHECKING:
    from shotproof.analysis.similarity import Similarity


def similarity(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="A catalog, and without --model the embeddings of its items."),
    ],
    model: Annotated[
        str | None, typer.Option(help="Two-tower model of transformers, such as CLIP or SigLIP: a folder or a name.")
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Allow downloading the model from the Hugging Face Hub.")] = False,
    template: Annotated[
        str | None, typer.Option(help="Template for names, e.g. 'a photo of a {}'. Default: the name alone.")
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="Without --model: embeddings of the names, with the names as items.")
    ] = None,
    context_column: Annotated[
        str | None, typer.Option(help="Column with the contexts. Default: context, if there is one.")
    ] = None,
    split: Split = None,
    output: OutputPage = None,
    items: Annotated[
        Path | None,
        typer.Option(help="similarity.parquet to write, one row per item, for the page of compare."),
    ] = None,
    as_json: AsJson = False,
    batch_size: BatchSize = None,
) -> None:
    """Measure M_ce and M_te (MetaCoCo, Eq. 1): mean cosine of images with the names of their concepts and contexts.

    Example: shotproof explain similarity catalog.parquet --model clip-vit-base-patch32/ -o similarity.html
    """
    from shotproof.analysis.similarity import measure_similarity, words_of
    from shotproof.cli.console import print_json
    from shotproof.core.runtime.runtime import runtime
    from shotproof.features.encoder import encode
    from shotproof.report.figures.similarity_figure import write_similarity

    sorted_files = sort_files(files, ("catalog", "features"))
    if not sorted_files["catalog"]:
        raise InputError("no catalog given: expected the catalog.parquet of the items")
    if (model is None) != bool(sorted_files["features"]) or (model is None) == (texts is None):
        raise InputError("expected either --model, or features.parquet and --texts")
    if model is None and (template is not None or hub):
        raise InputError("--template and --hub need --model: existing embeddings are used unchanged")
    catalog = read_one(sorted_files["catalog"], "catalog")
    catalog = catalog if split is None else catalog.in_split(split)
    column = context_column or ("context" if "context" in catalog.table.column_names else None)
    if model is not None:
        from shotproof.features.encoders.two_tower import NAME, TwoTower

        towers = TwoTower(model, hub=hub)
        words = towers.encode_words(words_of(catalog, column), template or NAME)
        images = encode(catalog, towers, runtime=runtime(batch_size=batch_size))
    else:
        images, words = read_one(sorted_files["features"], "features"), read_one([texts] if texts else [], "features")
    similarities = measure_similarity(catalog, images, words, column)
    if items is not None:
        similarities.write(items)
    if output is not None:
        write_similarity(output, similarities)
    if as_json:
        print_json(similarities.to_json())
    else:
        _print_similarity(similarities)


def _print_similarity(similarities: Similarity) -> None:
    """Print the mean cosines of each concept."""
    rows = [
        [row["concept"], f"{row['items']:,}", *(_format_cosine(row[name]) for name in ("m_ce", "m_te"))]
        for row in [*similarities.concepts.to_pylist(), {"concept": "all", **similarities.overall}]
    ]
    print_table("Mean cosine with names", ["concept", "items", "M_ce (concept)", "M_te (context)"], rows)


def _format_cosine(value: float | None) -> str:
    """Format a cosine; missing ones as a dash."""
    return "-" if value is None else f"{value:.3f}"
