"""The `shotproof` command: its subcommands, the runtime flags, and how errors end it."""

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

from shotproof.cli.console import print_all_warnings, say
from shotproof.cli.cure import cure
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
from shotproof.core.errors import InputError, Interrupted, ShotproofError, describe_system_error, is_out_of_memory
from shotproof.core.limits import WORKERS
from shotproof.core.trust import typed_by_user
from shotproof.version import __version__

ABOUT = "Stress-test few-shot classifiers on tasks that expose what an average accuracy hides."
RUNTIME = "Runtime (does not change results; may appear anywhere)"
RUNTIME_HINT = "Runtime flags: --workers --device --cache --progress --engine (see shotproof --help)."
NO_CACHE = "none"
PANELS: dict[str, tuple[Callable[..., Any], ...]] = {
    "Start here": (demo, run, profile, cure, doctor),
    "Data": (catalog, mix, detect, encode, train),
    "Tasks": (sample, evaluate),
    "Results": (compare, view, gate),
    "Look up": (show,),
}
GROUPS: dict[str, tuple[str, tuple[Callable[..., Any], ...]]] = {
    "explain": (
        "Explain results: why tasks are hard, how contexts change features, how many tasks are needed.",
        (hardness, features, similarity, transfer, plan),
    ),
    "share": (
        "Share a benchmark, verify results, and rank classifiers on a leaderboard.",
        (bundle, verify, leaderboard),
    ),
}
COMMANDS: dict[str, Callable[..., Any]] = {
    function.__name__: function for functions in PANELS.values() for function in functions
}
COMMANDS |= {
    f"{name} {function.__name__}": function for name, (_, functions) in GROUPS.items() for function in functions
}
COMPUTES_LITTLE = (doctor, view, gate, show, plan, bundle, leaderboard)
CONTINUES = "run the same command again to continue (finished parts are kept)"
CACHED = "run the same command again to continue (the cache is kept)"
STARTS_OVER = "running the same command again starts over"
AFTER_CTRL_C: dict[Callable[..., Any], str] = dict.fromkeys((demo, run, profile, mix, train), CONTINUES)
AFTER_CTRL_C |= dict.fromkeys((encode, detect, evaluate, cure), CACHED)
INTERRUPTED = 130  # exit status after Ctrl-C; Typer returns the same one


class Stopped(Exception):
    """Command ended by Ctrl-C; the message says what is kept."""


class RuntimeAnywhere(typer.core.TyperGroup):
    """Command group whose runtime flags may appear before or after the subcommand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, runtime flags first, wherever they appear."""
        return super().parse_args(ctx, self._move_runtime_first(args))

    def _move_runtime_first(self, arguments: list[str]) -> list[str]:
        """Move the runtime flags and their values to the front."""
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
                    raise InputError(f"{argument}: expected a value after it")
                first += [argument, value]
        return first + others


app = typer.Typer(
    name="shotproof",
    help=ABOUT,
    cls=RuntimeAnywhere,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _stoppable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command so that Ctrl-C raises `Stopped`, with what is kept; Typer would only return a status."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Interrupted as interrupt:
            raise Stopped(str(interrupt)) from None
        except KeyboardInterrupt:
            raise Stopped(f"interrupted; {AFTER_CTRL_C.get(inspect.unwrap(function), STARTS_OVER)}") from None

    return call


def _add(parent: typer.Typer, function: Callable[..., Any], panel: str | None = None) -> None:
    """Add a function as a subcommand."""
    hint = None if function in COMPUTES_LITTLE else RUNTIME_HINT
    parent.command(function.__name__, rich_help_panel=panel, epilog=hint)(_stoppable(typed_by_user(function)))


for panel, functions in PANELS.items():
    for function in functions:
        _add(app, function, panel)
for name, (about, functions) in GROUPS.items():
    group = typer.Typer(name=name, help=about)
    for function in functions:
        _add(group, function)
    app.add_typer(group, rich_help_panel="Results")


def _print_version(is_set: bool) -> None:
    if is_set:
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
            help="Number of processes. Default: chosen by the work and the machine.",
            rich_help_panel=RUNTIME,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu, cuda:0, or cuda for all GPUs. Default: the GPUs, if there are any.", rich_help_panel=RUNTIME
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            help="Folder that caches computed results, or none for no cache. Default: ~/.cache/shotproof.",
            rich_help_panel=RUNTIME,
        ),
    ] = None,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Show progress bars. Default: on a terminal.", rich_help_panel=RUNTIME
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="Where to compute: local, ray, ray:HOST:PORT or ray://HOST:PORT.", rich_help_panel=RUNTIME),
    ] = None,
) -> None:
    """Apply the runtime flags, and keep them in `context.obj` for commands that read settings from a file as well."""
    flags = {"workers": workers, "device": device, "cache": cache, "progress": progress, "engine": engine}
    changes: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    if cache == NO_CACHE:
        changes["cache"] = None
    context.obj = changes
    if changes:
        from shotproof.core.runtime.engine import engines
        from shotproof.core.runtime.runtime import runtime

        if engine is not None:
            changes["engine"] = engines.make(engine)  # an object remains trusted when a command passes it on
        context.with_resource(runtime(**changes))


# Typer would build the command for each call, which takes longer than a small command.
command = functools.cache(lambda: typer.main.get_command(app))


def main() -> None:
    """Run the command; invalid input ends it with one line on standard error and exit status 2."""
    arguments = sys.argv[1:] or ["--help"]
    if len(arguments) == 1 and arguments[0] in GROUPS:
        arguments.append("--help")
    print_all_warnings()
    try:
        _check_not_empty(arguments)
        status = command()(args=arguments, prog_name="shotproof", standalone_mode=False)
    except ShotproofError as error:
        (_exit_now if is_out_of_memory(error) else _exit)(str(error), 2)
    except typer.TyperException as error:
        _exit(getattr(error, "format_message", error.__str__)(), 2)
    except Stopped as stopped:
        _exit_now(str(stopped), INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # nobody reads the output anymore
        sys.exit(141)
    except (MemoryError, RuntimeError, OSError, ImportError) as error:
        if refusal := describe_system_error(error):
            _exit(refusal, 2)
        if not is_out_of_memory(error):
            raise
        _exit_now(
            "out of memory; finished parts are kept: try fewer workers, or a smaller batch size or way",
            2,
        )
    if status == INTERRUPTED:
        _exit_now("interrupted", INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def _check_not_empty(arguments: Sequence[str]) -> None:
    """Reject empty arguments: mostly unset shell variables, which would be read as the working folder."""
    for previous, argument in zip(["shotproof", *arguments], arguments, strict=False):
        if argument == "":
            raise InputError(f"the argument after '{previous}' is empty: expected a value")
        if argument.startswith("--") and argument.endswith("="):
            raise InputError(f"{argument.removesuffix('=')}: expected a value after the '='")


def _exit(message: str, status: int) -> NoReturn:
    """Print an error and exit."""
    _print_error(message)
    sys.exit(status)


def _exit_now(message: str, status: int) -> NoReturn:
    """Print an error and exit at once: a normal exit waits for threads, and without memory it prints more errors."""
    _print_error(message)
    sys.stderr.flush()
    with contextlib.suppress(Exception):
        if "loky" in sys.modules:
            from shotproof.core.runtime.worker_pool import abandon_workers

            abandon_workers()
    os._exit(status)


def _print_error(message: str) -> None:
    """Print an error on one line of standard error."""
    say(f"error: {' '.join(message.split())}", err=True)
