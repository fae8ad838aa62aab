"""Machine-readable formats of a gate: JUnit XML, GitHub workflow annotations, and plain values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from shotproof.comparison.gate import Gate
from shotproof.core.printable import printable

# Characters that XML 1.0 does not allow, not even escaped.
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(gate: Gate, strict: bool = False) -> str:
    """Write one test case per check; an inconclusive check is skipped, or a failure if strict."""
    skipped = 0 if strict else len(gate.unclear)
    failures = len(gate.failed) + (len(gate.unclear) if strict else 0)
    counts = {"tests": str(len(gate.checks)), "failures": str(failures), "skipped": str(skipped), "errors": "0"}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(
        suites, "testsuite", {"name": _xml_text(f"shotproof gate: {gate.card.title}"), **counts}
    )
    for check in gate.checks:
        attributes = {"classname": _xml_text(f"{gate.card.name}.{check.axis}"), "name": check.quantity}
        case = ElementTree.SubElement(suite, "testcase", attributes)
        if check.outcome == "fail" or (check.outcome == "cannot tell" and strict):
            ElementTree.SubElement(case, "failure", {"message": _xml_text(check.sentence), "type": check.outcome})
        elif check.outcome == "cannot tell":
            ElementTree.SubElement(case, "skipped", {"message": _xml_text(check.sentence)})
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def github_annotations(gate: Gate, strict: bool = False) -> Iterator[str]:
    """Write one line per check that does not pass; GitHub shows them beside the change as errors and warnings."""
    for check in gate.checks:
        if check.outcome != "pass":
            kind = "error" if check.outcome == "fail" or strict else "warning"
            yield f"::{kind} title={_escape(f'shotproof: {check.axis}', in_title=True)}::{_escape(check.sentence)}"


def gate_json(gate: Gate, strict: bool = False) -> dict[str, Any]:
    """Return all checks as plain values."""
    checks = [
        {
            **{"axis": check.axis, "quantity": check.quantity, "limit": check.limit, "outcome": check.outcome},
            **{"sentence": check.sentence, "mean": None if math.isnan(check.interval.mean) else check.interval.mean},
            **{"interval": check.interval.bounds, "covers": check.interval.covers, "level": check.interval.level},
        }
        for check in gate.checks
    ]
    return {"classifier": gate.card.title, "passes": gate.passes(strict), "checks": checks, "notes": list(gate.notes)}


def _escape(text: str, in_title: bool = False) -> str:
    """Escape one line of text for GitHub's runner."""
    escaped = printable(text).replace("%", "%25")
    return escaped.replace(":", "%3A").replace(",", "%2C") if in_title else escaped


def _xml_text(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
