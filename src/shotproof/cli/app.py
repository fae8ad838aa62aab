"""The `shotproof` command: its verbs, and how errors end it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import typer
import typer.main

from shotproof.cli.bundle import bundle
from shotproof.cli.console import say, tell_all_warnings
from shotproof.cli.data.catalog import catalog
from shotproof.cli.data.detect import detect
from shotproof.cli.data.encode import encode
from shotproof.cli.data.mix import mix
from shotproof.cli.data.train import train
from shotproof.cli.demo import demo
from shotproof.cli.doctor import doctor
from shotproof.cli.gate import gate
from shotproof.cli.list import list_components
from shotproof.cli.profile import profile
from shotproof.cli.replaced import replacement
from shotproof.cli.results.compare import compare
from shotproof.cli.results.explain import explain
from shotproof.cli.results.geometry import geometry
from shotproof.cli.results.leaderboard import leaderboard
from shotproof.cli.results.plan import plan
from shotproof.cli.results.report import report
from shotproof.cli.results.similarity import similarity
from shotproof.cli.results.transfer import transfer
from shotproof.cli.results.view import view
from shotproof.cli.run import run
from shotproof.cli.show import show
from shotproof.cli.tasks.check import check
from shotproof.cli.tasks.evaluate import evaluate
from shotproof.cli.tasks.sample import sample
from shotproof.core.errors import InputError, Interrupted, ShotproofError, is_want_of_memory, refused_by_system
from shotproof.core.trust import typed_by_user
from shotproof.version import __version__

app = typer.Typer(
    name="shotproof",
    help="Stress-tests few-shot classifiers: builds tasks that expose what an average accuracy hides.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PANELS = {
    "Start here": (demo, run, profile, doctor),
    "Data": (catalog, mix, detect, train, encode),
    "Tasks": (sample, check, evaluate),
    "Results": (compare, report, leaderboard, view, gate, bundle, explain, transfer, plan, geometry, similarity),
    "What there is": (list_components, show),
}
CONTINUES = "finished parts are kept, the same command continues"
CACHED = "what the cache has is kept, the same command continues from there"
BEGINS_ANEW = "the same command begins anew"
AFTER_CTRL_C: dict[Callable[..., Any], str] = dict.fromkeys((demo, run, profile, mix, train), CONTINUES)
AFTER_CTRL_C |= dict.fromkeys((encode, detect, evaluate), CACHED)
INTERRUPTED = 130  # the status of a command that Ctrl-C ended, which Typer gives back too


class Stopped(Exception):
    """Ctrl-C ended a command; the message says what is kept."""


def _stoppable(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The same command, which says what is kept before Typer, which would not, makes a status of Ctrl-C."""

    @functools.wraps(verb)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return verb(*arguments, **options)
        except Interrupted as interrupt:
            raise Stopped(str(interrupt)) from None
        except KeyboardInterrupt:
            raise Stopped(f"interrupted; {AFTER_CTRL_C.get(inspect.unwrap(verb), BEGINS_ANEW)}") from None

    return call


for panel, verbs in PANELS.items():
    for verb in verbs:
        app.command(verb.__name__.partition("_")[0], rich_help_panel=panel)(_stoppable(typed_by_user(verb)))


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"shotproof {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Stress-tests few-shot classifiers: builds tasks that expose what an average accuracy hides."""


# Typer builds the command anew whenever it is called, which takes longer than a small command.
command = functools.cache(lambda: typer.main.get_command(app))


def main() -> None:
    """Run the command; bad input is one line on standard error and exit status 2."""
    arguments = sys.argv[1:] or ["--help"]
    tell_all_warnings()
    try:
        _refuse_empty(arguments)
        status = command()(args=arguments, standalone_mode=False)
    except ShotproofError as error:
        (_leave if is_want_of_memory(error) else _stop)(str(error), 2)
    except typer.TyperException as error:
        _stop(replacement(arguments) or getattr(error, "format_message", error.__str__)(), 2)
    except Stopped as stopped:
        _leave(str(stopped), INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away; nothing is left to say
        sys.exit(141)
    except (MemoryError, RuntimeError, OSError, ImportError) as error:
        if refusal := refused_by_system(error):
            _stop(refusal, 2)
        if not is_want_of_memory(error):
            raise
        _leave("memory ran out; finished parts are kept: try fewer workers, or a smaller batch or way", 2)
    if status == INTERRUPTED:
        _leave("interrupted", INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse an empty argument, most likely a shell variable without a value: a path would be the working folder."""
    for before, argument in zip(["shotproof", *arguments], arguments, strict=False):
        if argument == "":
            raise InputError(f"the argument after '{before}' is empty: expected a value")
        if argument.startswith("--") and argument.endswith("="):
            raise InputError(f"{argument.removesuffix('=')}: expected a value, found nothing after the '='")


def _stop(message: str, status: int) -> NoReturn:
    _say(message)
    sys.exit(status)


def _leave(message: str, status: int) -> NoReturn:
    """End at once, with one line: an ordinary exit would wait for threads, and tell of each thing without memory."""
    _say(message)
    sys.stderr.flush()
    with contextlib.suppress(Exception):
        if "loky" in sys.modules:
            from shotproof.core.runtime.worker_pool import abandon_workers

            abandon_workers()
    os._exit(status)


def _say(message: str) -> None:
    say(f"error: {' '.join(message.split())}", err=True)
