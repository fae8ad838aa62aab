"""Check that names say what they hold and that docstrings begin with a verb.

python -m tools.plain_english [PATH ...]   # prints the counts; status 1 if a budget is exceeded
python -m tools.plain_english --list src/shotproof/stats
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

WORDS = Path(__file__).parent / "words"
# Words that say how a value came to be, not what it is: `one`, `found` and the like fit every variable.
VAGUE = frozenset((WORDS / "vague.txt").read_text().split())
# First words of docstrings. If another verb is needed, add it to the file.
VERBS = frozenset((WORDS / "verbs.txt").read_text().split())

# The largest shares that may remain, in percent. They only ever go down.
MAX_VAGUE_NAMES = 0.2
MAX_OTHER_DOCSTRINGS = 0.5


@dataclass(frozen=True)
class Finding:
    """A name or a docstring to rewrite."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each parameter, assigned variable and function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


def is_vague(name: str) -> bool:
    """Return whether a name says only how its value came to be."""
    return name.strip("_") in VAGUE


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the first line of each function's docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (docstring := ast.get_docstring(node)):
            yield node.lineno, docstring.splitlines()[0]


def begins_with_verb(docstring: str) -> bool:
    """Return whether the first word of a docstring is a verb in the imperative."""
    first = re.match(r"[A-Za-z]+(-[a-z]+)?", docstring)
    return first is not None and first[0].lower() in VERBS


def sources(paths: list[Path]) -> list[Path]:
    """List the Python files below some paths, in order."""
    return sorted({file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])})


def main(arguments: list[str] | None = None) -> int:
    """Print both shares, and with --list each finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "src"])
    parser.add_argument("--list", action="store_true", help="print each name and docstring to rewrite")
    options = parser.parse_args(arguments)

    totals = {"vague names": 0, "docstrings that do not begin with a verb": 0}
    findings: dict[str, list[Finding]] = {kind: [] for kind in totals}
    for path in sources(options.paths):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for kind, texts, is_plain in (
            ("vague names", names(tree), lambda name: not is_vague(name)),
            ("docstrings that do not begin with a verb", docstrings(tree), begins_with_verb),
        ):
            for line, text in texts:
                totals[kind] += 1
                if not is_plain(text):
                    findings[kind].append(Finding(path, line, text))

    exceeded = False
    for (kind, total), budget in zip(totals.items(), (MAX_VAGUE_NAMES, MAX_OTHER_DOCSTRINGS), strict=True):
        share = 100 * len(findings[kind]) / max(1, total)
        exceeded |= share > budget
        if options.list:
            print(*findings[kind], sep="\n")
        print(f"{kind}: {len(findings[kind])} of {total} ({share:.2f}%; at most {budget}%)")
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
