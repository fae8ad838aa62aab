"""`shotproof show`: available names, their options, and the contents of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import AsJson
from shotproof.cli.console import print_json, print_table, say, say_text
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.core.options import Component
    from shotproof.core.registry import Registry

RECIPES = "recipes"
_ROLES = {"attributes": "attributes.parquet", "features": "features.parquet", "like": "--like TASKS"}


def show(
    subject: Annotated[
        str | None,
        typer.Argument(
            help="A kind (methods, samplers, ...), a name (ridge, fewstab, lite0, ...), a file, or experiment or card "
            "for its JSON Schema. Default: all kinds and names."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List available components, show the options of one, or describe a file.

    Example: shotproof show samplers

    Example: shotproof show hardest

    Example: shotproof show features.parquet
    """
    from shotproof.comparison import card_schema
    from shotproof.core.storage.files import path_exists
    from shotproof.pipeline import experiment_file
    from shotproof.pipeline.components import all_registries

    kinds = all_registries()
    schemas = {"experiment": experiment_file.SHIPPED, "card": card_schema.SHIPPED}
    plural = next((name for name, registry in kinds.items() if subject in (name, registry.kind)), subject)
    plural = RECIPES if subject == RECIPES.removesuffix("s") else plural
    if subject is None:
        _show_kinds(kinds, as_json)
    elif plural is not None and plural in (*kinds, RECIPES):
        _show_kind(plural, kinds.get(plural), as_json)
    elif subject in schemas:
        say_text(schemas[subject].read_text(encoding="utf-8"))
    elif _is_file_name(subject) or path_exists(Path(subject)):
        _show_file(Path(subject), as_json)
    else:
        _show_name(subject, as_json)


def _is_file_name(text: str) -> bool:
    """Return whether a text has the suffix of a Shotproof file."""
    from shotproof.pipeline.read import MODEL_SUFFIXES

    return Path(text).suffix in (".parquet", ".parts", ".toml", ".json", ".zip", *MODEL_SUFFIXES)


def _show_kinds(kinds: dict[str, Registry[Any]], as_json: bool) -> None:
    """Print all kinds with their names."""
    from shotproof.training.training_recipes import RECIPES as RECIPES_BY_NAME

    if as_json:
        print_json({plural: _entries(registry) for plural, registry in {RECIPES: None, **kinds}.items()})
        return
    names = {**{plural: list(registry) for plural, registry in kinds.items()}, RECIPES: list(RECIPES_BY_NAME)}
    for plural, kind_names in names.items():
        say(f"{plural}: {', '.join(kind_names)}", "")
    say("shotproof show KIND describes them, shotproof show NAME lists options, shotproof show FILE describes a file.")


def _show_kind(plural: str, registry: Registry[Any] | None, as_json: bool) -> None:
    """Print the components of one kind, one line each."""
    if as_json:
        print_json({plural: _entries(registry)})
        return
    columns = ["name", "about"]
    rows = [[entry["name"], entry["about"]] for entry in _entries(registry)]
    if registry is not None and registry.kind == "method":
        columns = ["name", "family", "needs", "balanced", "about"]
        rows = [_method_row(name, registry.get(name)) for name in registry]
    print_table("", columns, rows, left=len(columns))
    say("", "shotproof show NAME lists the options.")


def _entries(registry: Registry[Any] | None) -> list[dict[str, Any]]:
    """Return the name, description and options of each component of one kind; None stands for recipes."""
    from shotproof.training.training_recipes import RECIPES as RECIPES_BY_NAME

    if registry is None:
        return [{"name": name, "about": recipe.about} for name, recipe in RECIPES_BY_NAME.items()]
    return [
        {"name": name, "about": registry.get(name).about, "options": _schema(registry.get(name))} for name in registry
    ]


def _schema(component: type[Component]) -> dict[str, Any]:
    """Return the JSON Schema of a component's options."""
    return {option.name: option.json_schema() for option in component.options()}


def _method_row(name: str, method: type) -> list[str]:
    """Return the row of a method: name, family, needs, balanced, description."""
    values = (getattr(method, key, "") for key in ("family", "needs", "balanced"))
    family, needs, balanced = ("by its options" if isinstance(value, property) else value for value in values)
    return [name, str(family), str(needs), "yes" if balanced is True else "", str(getattr(method, "about", ""))]


def _show_name(name: str, as_json: bool) -> None:
    """Print all components with a name, their options and an example each."""
    from shotproof.pipeline.components import find_components, recipe_rows
    from shotproof.training.training_recipes import RECIPES as RECIPES_BY_NAME

    components, recipe = find_components(name), RECIPES_BY_NAME.get(name)
    if as_json:
        schemas: dict[str, Any] = {kind: _schema(component) for kind, component in components}
        if recipe is not None:
            schemas["recipe"] = dict(recipe_rows(recipe))
        print_json(schemas if len(schemas) > 1 else next(iter(schemas.values())))
        return
    if recipe is not None:
        say(f"recipe {name}: {recipe.about}", "")
        print_table("", ["for", "settings"], [list(row) for row in recipe_rows(recipe)], left=2)
        objective = "" if recipe.steps else f" --objective {next(iter(recipe.by_objective))}"
        say("", f"Example: shotproof train catalog.parquet --recipe {name}{objective} -o some.model", "")
    for kind, component in components:
        _print_component(kind, name, component)


def _print_component(kind: str, name: str, component: type[Component]) -> None:
    """Print a component's documentation, options and an example."""
    import inspect

    from shotproof.pipeline.components import option_rows, usage

    say(f"{kind} {name}: {component.about}", "")
    say_text(f"{inspect.getdoc(component)}\n\n")
    if component.paper:
        say(f"Paper: {component.paper}", "")
    for attribute in ("license", "citation"):  # of a layout's data set
        if text := getattr(component, attribute, None):
            say_text(f"{attribute.capitalize()}: {text}\n\n")
    rows = [list(row) for row in option_rows(component)]
    if rows:
        print_table("", ["option", "values", "default", "description"], rows, left=4)
    else:
        say("No options.")
    if kind == "sampler":
        for attribute in ("needs", "takes"):
            if roles := getattr(component, attribute, ()):
                say(f"{attribute.capitalize()}: {', '.join(_ROLES[role] for role in roles)}")
    say("", f"Example: {usage(name, component)}", "")


def _show_file(path: Path, as_json: bool) -> None:
    """Print what a file or run folder contains, and how it was created."""
    from shotproof.cli.cure import print_cure
    from shotproof.cli.results.print_comparison import print_card
    from shotproof.cli.share.bundle import print_bundle
    from shotproof.comparison.card import Card
    from shotproof.cures.cure import Cure
    from shotproof.pipeline.bundle.bundle import Bundle
    from shotproof.pipeline.read import files_of, read
    from shotproof.pipeline.study import Study

    content = read(path)
    if isinstance(content, Card | Cure | Bundle):
        if as_json:
            print_json(content.to_json())
        elif isinstance(content, Bundle):
            print_bundle(path, content)
        elif isinstance(content, Cure):
            print_cure(content)
        else:
            print_card(content)
        return
    facts: dict[str, Any] = {}
    if isinstance(content, Study):
        facts["files"] = [str(file.relative_to(path)) for file in files_of(path)]
    elif record := getattr(content, "record", None):
        table = getattr(content, "table", None)
        facts = {"digest": content.digest} if hasattr(content, "digest") else {}
        facts |= {} if table is None else {"rows": table.num_rows, "columns": table.column_names}
        facts |= record.to_meta()
        facts |= _changes(content)
    if as_json:
        print_json({"file": str(path), "holds": repr(content), **facts})
        return
    say(f"{path}: {repr(content).strip('<>')}")
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        say(f"  {name.replace('_', ' '):{width}}  {_text(value)}")


def _changes(content: Any) -> dict[str, Any]:
    """Return what is changed in the items of a task set, by side, with how many items; empty if nothing is."""
    from shotproof.report.pages.changed_thumbnails import change_words
    from shotproof.tasks.taskset import SIDES, UNCHANGED_ITEM, TaskSet

    if not isinstance(content, TaskSet):
        return {}
    counts: dict[str, dict[str, int]] = {}
    for side in SIDES:
        spellings = content.changes(side)
        for entry in [] if spellings is None else spellings.value_counts().to_pylist():
            if entry["values"] != UNCHANGED_ITEM:
                words, of_side = change_words(entry["values"]), counts.setdefault(f"changed_{side}", {})
                of_side[words] = of_side.get(words, 0) + entry["counts"]
    return {
        name: ", ".join(f"{change} in {counted(count, 'item')}" for change, count in changes.items())
        for name, changes in counts.items()
    }


def _text(value: Any) -> str:
    """Return a value of a record as one line, with components as spellings."""
    if isinstance(value, dict):
        return str(value.get("spelling") or ", ".join(f"{name} {_text(entry)}" for name, entry in value.items()))
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)
