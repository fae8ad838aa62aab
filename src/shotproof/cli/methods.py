"""`shotproof methods`: what there is to evaluate."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def methods(
    name: Annotated[str | None, typer.Argument(help="One method: its options, its formula and its paper.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List all methods: what they do, and what they need and take for granted; or explain one, with its options.

    Inductive methods label each query by itself, transductive ones all queries of a task together. Methods that assume
    balanced queries are favoured where every class has equally many.

    Example: shotproof methods tim
    """
    from shotproof.cli.console import print_json, print_table
    from shotproof.methods.method import methods as registry

    described = [_describe(each) for each in ([name] if name else registry.names())]
    described.sort(key=lambda row: (row["family"], row["method"]))
    if as_json:
        print_json({"methods": described})
        return
    rows = [
        [
            row["method"],
            row["family"],
            "balanced" if row["balanced"] else "any",
            row["needs"],
            row["about"],
        ]
        for row in described
    ]
    columns = ["method", "family", "queries", "needs", "what it is"]
    print_table("", columns, rows, left=len(columns))
    if name:
        typer.echo(_explain(name, described[0]["options"]))
        return
    typer.echo(
        "Options and paper of one: shotproof methods tim. Also sklearn:CLASS(...), a classifier of scikit-learn, and "
        "python:MODULE:NAME, your own."
    )


def _explain(name: str, options: dict[str, Any]) -> str:
    """The method with all of its options, as it is written to evaluate it, and what its class says of itself."""
    import inspect

    from shotproof.methods.method import methods as registry

    given = ", ".join(f"{option}={value!r}" for option, value in options.items())
    call = f'--method "{name}({given})"' if given else f"--method {name}"
    return f"\n{call}\n\n{inspect.getdoc(registry.factory(name)) or ''}"


def _describe(name: str) -> dict[str, Any]:
    """One method as it is by default."""
    import inspect

    from shotproof.methods.method import methods as registry

    parameters = inspect.signature(registry.factory(name)).parameters
    required = [option for option, parameter in parameters.items() if parameter.default is parameter.empty]
    made: Any = registry.factory(name) if required else registry.make(name)
    return {
        "method": name,
        "about": getattr(made, "about", ""),
        "family": getattr(made, "family", "inductive"),
        "balanced": getattr(made, "balanced", False),
        "needs": getattr(made, "needs", "vectors"),
        "options": {
            option: "..." if option in required else parameter.default for option, parameter in parameters.items()
        },
    }
