"""The `shotproof` command: its verbs, and how errors end it."""

from __future__ import annotations

import sys

import typer

from shotproof.cli.catalog import catalog
from shotproof.cli.check import check
from shotproof.cli.compare import compare
from shotproof.cli.demo import demo
from shotproof.cli.detect import detect
from shotproof.cli.encode import encode
from shotproof.cli.evaluate import evaluate
from shotproof.cli.explain import explain
from shotproof.cli.geometry import geometry
from shotproof.cli.methods import methods
from shotproof.cli.mix import mix
from shotproof.cli.plan import plan
from shotproof.cli.report import report
from shotproof.cli.run import run
from shotproof.cli.sample import sample
from shotproof.cli.similarity import similarity
from shotproof.cli.transfer import transfer
from shotproof.errors import ShotproofError
from shotproof.version import __version__

app = typer.Typer(
    name="shotproof",
    help="Stress-tests few-shot classifiers: builds tasks that expose what an average accuracy hides.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    demo,
    catalog,
    mix,
    detect,
    encode,
    sample,
    check,
    methods,
    evaluate,
    compare,
    explain,
    transfer,
    plan,
    geometry,
    similarity,
    report,
    run,
):
    app.command()(verb)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shotproof {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Stress-tests few-shot classifiers: builds tasks that expose what an average accuracy hides."""


def main() -> None:
    """Run the command; bad input is one line on standard error and exit status 2."""
    try:
        status = app(args=sys.argv[1:] or ["--help"], standalone_mode=False)
    except ShotproofError as error:
        _stop(str(error), 2)
    except typer.TyperException as error:
        _stop(getattr(error, "format_message", error.__str__)(), 2)
    except (KeyboardInterrupt, typer.Abort):
        _stop("interrupted; finished parts are kept, the same command continues", 130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away; nothing is left to say
        sys.exit(141)
    sys.exit(status if isinstance(status, int) else 0)


def _stop(message: str, status: int) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(status)
