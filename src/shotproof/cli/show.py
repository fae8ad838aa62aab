"""`shotproof show`: one thing that can be picked by name, with its options."""

from __future__ import annotations

from typing import Annotated

import typer

from shotproof.cli.console import say


def show(
    name: Annotated[str, typer.Argument(help="E.g. hardest, ridge, lite0, photometric, folder, l2, fewstab-cub.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the options as a JSON Schema.")] = False,
) -> None:
    """Show the options of anything that is picked by name, with an example.

    Example: shotproof show hardest
    """
    import inspect

    from shotproof.cli.console import print_json, print_table, say_text
    from shotproof.pipeline.components import find_components, option_rows, recipe_rows, usage
    from shotproof.training.training_recipes import RECIPES

    found = find_components(name)
    if name in RECIPES and as_json:
        print_json(dict(recipe_rows(RECIPES[name])))
        return
    if name in RECIPES:
        recipe = RECIPES[name]
        say(f"recipe {name}: {recipe.about}", "")
        print_table("", ["for", "settings"], [list(row) for row in recipe_rows(recipe)], left=2)
        objective = "" if recipe.steps else f" --objective {next(iter(recipe.by_objective))}"
        say("", f"Example: shotproof train catalog.parquet --recipe {name}{objective} -o some.model", "")
    if as_json:
        schemas = {kind: {each.name: each.json_schema() for each in of.options()} for kind, of in found}
        print_json(schemas if len(found) > 1 else next(iter(schemas.values())))
        return
    for kind, component in found:
        say(f"{kind} {name}: {component.about}", "")
        say_text(f"{inspect.getdoc(component)}\n")
        if component.paper:
            say(f"Paper: {component.paper}", "")
        for what in ("license", "citation"):  # of a layout's data set
            if told := getattr(component, what, None):
                say_text(f"{what.capitalize()}: {told}\n")
        rows = [list(row) for row in option_rows(component)]
        if rows:
            print_table("", ["option", "values", "default", "what it does"], rows, left=4)
        else:
            say("It has no options.")
        for what, roles in (("Needs", getattr(component, "needs", ())), ("Takes", getattr(component, "takes", ()))):
            if kind == "sampler" and roles:
                say(f"{what}: {', '.join(f'--{role}' for role in roles)}")
        say("", f"Example: {usage(name, component)}", "")
