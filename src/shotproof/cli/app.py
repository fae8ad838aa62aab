"""The `shotproof` command: its verbs, the flags of the runtime, and how errors end it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NoReturn

import typer
import typer.core
import typer.main

from shotproof.cli.console import say, tell_all_warnings
from shotproof.cli.data.catalog import catalog
from shotproof.cli.data.detect import detect
from shotproof.cli.data.encode import encode
from shotproof.cli.data.mix import mix
from shotproof.cli.data.train import train
from shotproof.cli.demo import demo
from shotproof.cli.doctor import doctor
from shotproof.cli.explain.features import features
from shotproof.cli.explain.hardness import hardness
from shotproof.cli.explain.plan import plan
from shotproof.cli.explain.similarity import similarity
from shotproof.cli.explain.transfer import transfer
from shotproof.cli.profile import profile
from shotproof.cli.results.compare import compare
from shotproof.cli.results.gate import gate
from shotproof.cli.results.view import view
from shotproof.cli.run import run
from shotproof.cli.share.bundle import bundle
from shotproof.cli.share.leaderboard import leaderboard
from shotproof.cli.share.verify import verify
from shotproof.cli.show import show
from shotproof.cli.tasks.evaluate import evaluate
from shotproof.cli.tasks.sample import sample
from shotproof.core.errors import InputError, Interrupted, ShotproofError, is_want_of_memory, refused_by_system
from shotproof.core.limits import WORKERS
from shotproof.core.trust import typed_by_user
from shotproof.version import __version__

ABOUT = "Stress-tests few-shot classifiers: builds tasks that expose what an average accuracy hides."
RUNTIME = "Runtime (changes no result; may stand anywhere)"
RUNTIME_HINT = "Runtime flags: --workers --device --cache --progress --engine; shotproof --help explains them."
NO_CACHE = "none"
PANELS: dict[str, tuple[Callable[..., Any], ...]] = {
    "Start here": (demo, run, profile, doctor),
    "Data": (catalog, mix, detect, encode, train),
    "Tasks": (sample, evaluate),
    "Results": (compare, view, gate),
    "What there is": (show,),
}
GROUPS: dict[str, tuple[str, tuple[Callable[..., Any], ...]]] = {
    "explain": (
        "Explain results, by what is asked: why tasks are hard, what changes in features, how much is needed.",
        (hardness, features, similarity, transfer, plan),
    ),
    "share": ("Pack a benchmark, verify what somebody hands in, rank many.", (bundle, verify, leaderboard)),
}
COMMANDS: dict[str, Callable[..., Any]] = {verb.__name__: verb for verbs in PANELS.values() for verb in verbs}
COMMANDS |= {f"{name} {verb.__name__}": verb for name, (_, verbs) in GROUPS.items() for verb in verbs}
COMPUTES_LITTLE = (doctor, view, gate, show, plan, bundle, leaderboard)
CONTINUES = "finished parts are kept, the same command continues"
CACHED = "what the cache has is kept, the same command continues from there"
BEGINS_ANEW = "the same command begins anew"
AFTER_CTRL_C: dict[Callable[..., Any], str] = dict.fromkeys((demo, run, profile, mix, train), CONTINUES)
AFTER_CTRL_C |= dict.fromkeys((encode, detect, evaluate), CACHED)
INTERRUPTED = 130  # the status of a command that Ctrl-C ended, which Typer gives back too


class Stopped(Exception):
    """Ctrl-C ended a command; the message says what is kept."""


class RuntimeAnywhere(typer.core.TyperGroup):
    """A command whose runtime flags may stand before or after its verbs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the runtime flags first, wherever they stand."""
        return super().parse_args(ctx, self._runtime_first(args))

    def _runtime_first(self, arguments: list[str]) -> list[str]:
        options = [param for param in self.params if getattr(param, "rich_help_panel", None) == RUNTIME]
        is_switch = {name: option.is_flag for option in options for name in (*option.opts, *option.secondary_opts)}  # type: ignore[attr-defined]
        first: list[str] = []
        others: list[str] = []
        remaining = iter(arguments)
        for argument in remaining:
            name, equals, _ = argument.partition("=")
            if argument == "--":
                others += [argument, *remaining]
            elif name not in is_switch:
                others.append(argument)
            elif is_switch[name] or equals:
                first.append(argument)
            else:
                value = next(remaining, None)
                if value is None:
                    raise InputError(f"{argument}: expected a value, found nothing after it")
                first += [argument, value]
        return first + others


app = typer.Typer(
    name="shotproof",
    help=ABOUT,
    cls=RuntimeAnywhere,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _stoppable(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command: say what is kept before Typer, which would not, makes a status of Ctrl-C."""

    @functools.wraps(verb)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return verb(*arguments, **options)
        except Interrupted as interrupt:
            raise Stopped(str(interrupt)) from None
        except KeyboardInterrupt:
            raise Stopped(f"interrupted; {AFTER_CTRL_C.get(inspect.unwrap(verb), BEGINS_ANEW)}") from None

    return call


def _add(to: typer.Typer, verb: Callable[..., Any], panel: str | None = None) -> None:
    hint = None if verb in COMPUTES_LITTLE else RUNTIME_HINT
    to.command(verb.__name__, rich_help_panel=panel, epilog=hint)(_stoppable(typed_by_user(verb)))


for panel, verbs in PANELS.items():
    for verb in verbs:
        _add(app, verb, panel)
for name, (about, verbs) in GROUPS.items():
    group = typer.Typer(name=name, help=about)
    for verb in verbs:
        _add(group, verb)
    app.add_typer(group, rich_help_panel="Results")


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"shotproof {__version__}")
        raise typer.Exit


@app.callback(help=ABOUT)
@typed_by_user
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=WORKERS.least,
            max=WORKERS.most,
            help="Processes. Default: as many as pay off.",
            rich_help_panel=RUNTIME,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="cpu, cuda:0, or cuda for all GPUs. Default: GPUs if any.", rich_help_panel=RUNTIME),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            help="Folder that keeps what was computed once; none keeps nothing. Default: ~/.cache/shotproof.",
            rich_help_panel=RUNTIME,
        ),
    ] = None,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Bars. Default: on a terminal.", rich_help_panel=RUNTIME),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="Where work is done: local, ray, ray:HOST:PORT, ray://HOST:PORT.", rich_help_panel=RUNTIME),
    ] = None,
) -> None:
    """Make what the runtime flags say the current runtime; `context.obj` has these, for commands that read others."""
    given = {"workers": workers, "device": device, "cache": cache, "progress": progress, "engine": engine}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if cache == NO_CACHE:
        changes["cache"] = None
    context.obj = changes
    if changes:
        from shotproof.core.runtime.engine import engines
        from shotproof.core.runtime.runtime import runtime

        if engine is not None:
            changes["engine"] = engines.make(engine)  # as an object it stays trusted, though a verb has not read it
        context.with_resource(runtime(**changes))


# Typer builds the command anew whenever it is called, which takes longer than a small command.
command = functools.cache(lambda: typer.main.get_command(app))


def main() -> None:
    """Run the command; bad input is one line on standard error and exit status 2."""
    arguments = sys.argv[1:] or ["--help"]
    if len(arguments) == 1 and arguments[0] in GROUPS:
        arguments.append("--help")
    tell_all_warnings()
    try:
        _refuse_empty(arguments)
        status = command()(args=arguments, prog_name="shotproof", standalone_mode=False)
    except ShotproofError as error:
        (_leave if is_want_of_memory(error) else _stop)(str(error), 2)
    except typer.TyperException as error:
        _stop(getattr(error, "format_message", error.__str__)(), 2)
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
