"""`shotproof explain similarity`: how near images are to the names of their concepts and of their contexts."""

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
        typer.Argument(metavar="FILES", help="A catalog; and the items' embeddings, if there is no --model."),
    ],
    model: Annotated[
        str | None, typer.Option(help="A two-tower model of transformers, like CLIP or SigLIP: a folder or a name.")
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Allow to download the model from the Hugging Face hub.")] = False,
    template: Annotated[
        str | None, typer.Option(help="Text to put names into, e.g. 'a photo of a {}'; without it, the name alone.")
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="Without --model: embeddings of the words, whose items are the words.")
    ] = None,
    context_column: Annotated[
        str | None, typer.Option(help="The column with the contexts (context); without one, concepts alone.")
    ] = None,
    split: Split = None,
    output: OutputPage = None,
    items: Annotated[
        Path | None, typer.Option(help="similarity.parquet to write, one row per item, for the page of compare.")
    ] = None,
    as_json: AsJson = False,
    batch_size: BatchSize = None,
) -> None:
    """Measure M_ce and M_te (MetaCoCo, Eq. 1): mean cosine of images with their concepts' and their contexts' names.

    Example: shotproof explain similarity catalog.parquet --model clip-vit-base-patch32/ -o similarity.html
    """
    from shotproof.analysis.similarity import measure_similarity, words_of
    from shotproof.cli.console import print_json
    from shotproof.core.runtime.runtime import runtime
    from shotproof.features.encoder import encode
    from shotproof.report.figures.similarity_figure import write_similarity

    given = sort_files(files, ("catalog", "features"))
    if not given["catalog"]:
        raise InputError("expected catalog.parquet, whose items are compared with names")
    if (model is None) != bool(given["features"]) or (model is None) == (texts is None):
        raise InputError("give either --model, or features.parquet and --texts")
    if model is None and (template is not None or hub):
        raise InputError("--template and --hub go with --model: embeddings that exist stay as they are")
    catalog = read_one(given["catalog"], "catalog")
    catalog = catalog if split is None else catalog.in_split(split)
    column = context_column or ("context" if "context" in catalog.table.column_names else None)
    if model is not None:
        from shotproof.features.encoders.two_tower import NAME, TwoTower

        towers = TwoTower(model, hub=hub)
        words = towers.encode_words(words_of(catalog, column), template or NAME)
        images = encode(catalog, towers, runtime=runtime(batch_size=batch_size))
    else:
        images, words = read_one(given["features"], "features"), read_one([texts] if texts else [], "features")
    measured = measure_similarity(catalog, images, words, column)
    if items is not None:
        measured.write(items)
    if output is not None:
        write_similarity(output, measured)
    if as_json:
        print_json(measured.to_json())
    else:
        _print(measured)


def _print(measured: Similarity) -> None:
    rows = [
        [row["concept"], f"{row['items']:,}", *(_cosine(row[name]) for name in ("m_ce", "m_te"))]
        for row in [*measured.concepts.to_pylist(), {"concept": "all", **measured.overall}]
    ]
    print_table("Mean cosine with names", ["concept", "items", "M_ce (concept)", "M_te (context)"], rows)


def _cosine(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
