"""Generated pages of the site: the command line and the Python interface from the code, notebooks by running them.

A hook of mkdocs (`make docs`). Links of the pages to files of the repository beside `docs/` become code, since the
site has no such pages.
"""

from __future__ import annotations

import inspect
import posixpath
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_UPWARD = re.compile(r"\[([^\]]+)\]\((\.\./[^)]*)\)")
_EXAMPLE = re.compile(r"(?:Example:|([A-Z][\w ,]*:))?\s*(shotproof .+)", re.DOTALL)
_KINDS = ("Functions", "Objects", "Registries")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for path, text in {"reference/command-line.md": command_line(), "reference/python.md": python_interface()}.items():
        files.append(File.generated(config, path, content=text))
    notebooks = sorted((Path(config.docs_dir) / "notebooks").glob("*.py"))
    with ThreadPoolExecutor(2) as kernels:
        for pages in kernels.map(run_notebook, notebooks):
            for path, content in pages.items():
                files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name the files that are not part of the site, without a link."""
    return without_links_out(markdown, page.file.src_uri)


def without_links_out(markdown: str, page: str) -> str:
    """Replace links out of `docs/` by code.

    Example:
        >>> without_links_out("[a](../ideas/gaps.md) [Rules](../../RULES.md)", "how-to/run.md")
        '[a](../ideas/gaps.md) `Rules`'
    """

    def code_or_link(link: re.Match[str]) -> str:
        leads_out = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[2])).startswith("..")
        return f"`{link[1]}`" if leads_out else link[0]

    return _UPWARD.sub(code_or_link, markdown)


def run_notebook(path: Path) -> dict[str, str | bytes]:
    """Run a notebook; return its page and its pictures, by their paths in the site."""
    import jupytext
    from nbclient import NotebookClient
    from nbconvert import MarkdownExporter

    notebook = jupytext.read(path)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    naming = {"output_files_dir": f"{path.stem}-files", "unique_key": "picture"}
    text, resources = MarkdownExporter().from_notebook_node(notebook, resources=naming)
    text = text.replace('<table border="1" class="dataframe">', "<table>")  # to look like all other tables
    pictures = {f"notebooks/{name}": content for name, content in resources["outputs"].items()}
    return {f"notebooks/{path.stem}.md": text, **pictures}


def command_line() -> str:
    """Write one section per command: what it does, and its options."""
    from typer.main import get_command

    from shotproof.cli.app import app

    root: Any = get_command(app)
    sections = [_command("Flags of every command", root)]
    for name, command in root.commands.items():
        parts = getattr(command, "commands", {})
        sections += [_command(f"{name} {part}", subcommand) for part, subcommand in parts.items()] or [
            _command(name, command)
        ]
    return "# Command line\n\nEvery command says the same by `--help`.\n\n" + "\n".join(sections)


def _command(name: str, command: Any) -> str:
    help_text = inspect.cleandoc(command.help or "").replace("\b", "").replace("\f", "")
    paragraphs = "\n\n".join(_paragraph(part) for part in re.split(r"\n{2,}|\n(?=Example: )", help_text))
    rows = "".join(f"| {' | '.join(row)} |\n" for row in _parameters(command))
    return f"## {name}\n\n{paragraphs}\n\n| given as | what it is |\n|---|---|\n{rows}"


def _paragraph(text: str) -> str:
    """Format a paragraph of help; an example becomes code."""
    match = _EXAMPLE.fullmatch(text.strip())
    if match is None:
        return text
    command = "    " + match[2].replace("\n", " \\\n        ")
    return f"{match[1]}\n\n{command}" if match[1] else command


def _parameters(command: Any) -> Iterator[tuple[str, str]]:
    for param in command.params:
        if getattr(param, "hidden", False):
            continue
        spelling = param.name.upper() if param.param_type_name == "argument" else ", ".join(param.opts)
        help_text = (getattr(param, "help", None) or "").replace("|", "\\|").replace("\n", " ")
        yield f"`{spelling}`", help_text


def python_interface() -> str:
    """List every public name by kind and module; mkdocstrings inserts the docstrings."""
    import shotproof
    from shotproof.core.registry import Registry

    entries_by_kind: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for name, home in sorted(shotproof.HOMES.items(), key=lambda pair: pair[0].lower()):
        value = getattr(shotproof, name)
        kind = "Registries" if isinstance(value, Registry) else "Objects" if isinstance(value, type) else "Functions"
        entries_by_kind[kind].append(f"::: shotproof.{home}.{name}\n")
    for module in shotproof.MODULES:
        homes = getattr(shotproof, module).HOMES
        entries_by_kind[f"`sp.{module}`"] = [f"::: shotproof.{home}.{name}\n" for name, home in homes.items()]
    sections = [f"## {kind}\n\n" + "\n".join(entries) for kind, entries in entries_by_kind.items()]
    return "# Python\n\n`import shotproof as sp`\n\n" + "\n".join(sections)
