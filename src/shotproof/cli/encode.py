"""`shotproof encode`: from a catalog to features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shotproof.features.features import Features


def encode(
    catalog: Annotated[Path, typer.Argument(help="catalog.parquet")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The features to write.")],
    encoder: Annotated[
        str,
        typer.Option(
            help="Images: lite0, hf:NAME_OR_FOLDER, onnx:FILE, pixels. Sounds: logmel, hf-audio:NAME_OR_FOLDER, "
            "birdnet. Either: file:FILE, or a registered one."
        ),
    ] = "lite0",
    split: Annotated[str | None, typer.Option(help="Only the items of one split; otherwise all.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1; a GPU is used if there is one.")] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Items that the network takes at once; 4 on a CPU, 64 on a GPU.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that decode files; one a core.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where features are kept; $SHOTPROOF_CACHE or ~/.cache/shotproof.")
    ] = None,
    hub: Annotated[
        bool, typer.Option("--hub", help="hf, hf-audio: allow to download the model from the Hugging Face hub.")
    ] = False,
    maps: Annotated[
        bool, typer.Option("--maps", help="Local maps for methods such as dn4, instead of one vector an item.")
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-O",
            help="KEY=VALUE for the encoder; may be repeated. pixels: size. hf: pooling (auto, pooler, cls, mean). "
            "onnx: size (of the model's input, else 224), scale (1/255), mean and std (ImageNet's), "
            "layout (nchw, nhwc), output. Sounds: seconds (5). hf-audio: pooling. logmel: statistics (mean, std), "
            "rate, window, hop, bands, low_hz, high_hz, scale (slaney, htk), norm (slaney, none), centre, floor, "
            "range_db.",
        ),
    ] = None,
) -> None:
    """Turn every item into a feature; what was encoded before comes from the cache.

    shotproof encode catalog.parquet --encoder lite0 -o features.parquet
    """
    import time

    from shotproof.catalog.catalog import Catalog
    from shotproof.features.encoder import Tally, make_encoder
    from shotproof.features.encoder import encode as encode_items
    from shotproof.specs import parse_options

    started = time.perf_counter()
    flags = {"hub": hub, "maps": maps}
    options: dict[str, Any] = parse_options(option or []) | {name: True for name, given in flags.items() if given}
    made = make_encoder(encoder, **options)
    items = Catalog.read(catalog)
    tally = Tally()
    features = encode_items(
        items if split is None else items.in_split(split),
        made,
        cache=cache or True,
        device=device,
        batch_size=batch_size,
        workers=workers,
        tally=tally,
    )
    features.write(output)
    made_of = f"{tally.encoded:,} encoded, {tally.reused:,} from the cache, " if tally.encoded + tally.reused else ""
    typer.echo(
        f"{output}: {len(features):,} items, {_size(features)} by {features.name}; "
        f"{made_of}{time.perf_counter() - started:.1f} s"
    )


def _size(features: Features) -> str:
    """`1,280 dimensions`, or `maps of 1,280 x 7 x 7`."""
    if features.shape:
        return f"maps of {' x '.join(f'{length:,}' for length in features.shape)}"
    return f"{features.array.shape[1]:,} dimensions"
