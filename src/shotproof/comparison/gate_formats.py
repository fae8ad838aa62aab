"""What a gate found, for machines: JUnit XML, annotations of GitHub's workflows, and plain values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from shotproof.comparison.gate import Gate
from shotproof.core.printable import printable

# What XML 1.0 cannot hold, not even escaped.
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(gate: Gate, strict: bool = False) -> str:
    """One test case per check; what cannot be told is skipped, or where that is strict a failure."""
    skipped = 0 if strict else len(gate.unclear)
    failures = len(gate.failed) + (len(gate.unclear) if strict else 0)
    counts = {"tests": str(len(gate.checks)), "failures": str(failures), "skipped": str(skipped), "errors": "0"}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _text(f"shotproof gate: {gate.card.title}"), **counts})
    for check in gate.checks:
        named = {"classname": _text(f"{gate.card.name}.{check.axis}"), "name": check.what}
        case = ElementTree.SubElement(suite, "testcase", named)
        if check.outcome == "fail" or (check.outcome == "cannot tell" and strict):
            ElementTree.SubElement(case, "failure", {"message": _text(check.told), "type": check.outcome})
        elif check.outcome == "cannot tell":
            ElementTree.SubElement(case, "skipped", {"message": _text(check.told)})
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def github_annotations(gate: Gate, strict: bool = False) -> Iterator[str]:
    """One line per check that does not pass, which GitHub shows beside the change: errors, and warnings."""
    for check in gate.checks:
        if check.outcome != "pass":
            kind = "error" if check.outcome == "fail" or strict else "warning"
            yield f"::{kind} title={_escaped(f'shotproof: {check.axis}', in_title=True)}::{_escaped(check.told)}"


def gate_json(gate: Gate, strict: bool = False) -> dict[str, Any]:
    """All checks as plain values."""
    checks = [
        {
            **{"axis": one.axis, "what": one.what, "limit": one.limit, "outcome": one.outcome, "told": one.told},
            **{"mean": None if one.interval.mean != one.interval.mean else one.interval.mean},
            **{"interval": one.interval.bounds, "covers": one.interval.covers, "level": one.interval.level},
        }
        for one in gate.checks
    ]
    return {"classifier": gate.card.title, "passes": gate.passes(strict), "checks": checks, "notes": list(gate.notes)}


def _escaped(text: str, in_title: bool = False) -> str:
    """Write one line of text as GitHub's runner reads it back."""
    written = printable(text).replace("%", "%25")
    return written.replace(":", "%3A").replace(",", "%2C") if in_title else written


def _text(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
