"""Hard supports of one network, tested on others."""

from __future__ import annotations

from reproduction.kept import Table
from reproduction.sections.hard import NETWORKS, transfer_table

from tests.reproduction.test_kept import evaluated


def test_tasks_are_found_by_the_network_that_they_are_hard_for() -> None:
    searched = "hardest-on-model-some-folder-models-baseline-.model-0a1b2c-like-random-5way-5shot"
    kept = [
        evaluated("random-5way-5shot", "rfs", "cosine", [[9, 8], [7, 7], [8, 9]]),
        evaluated(searched, "rfs", "cosine", [[5, 4], [4, 3], [4, 3]]),
    ]
    rows = [line.split(" | ") for line in transfer_table(Table(tuple(kept))).splitlines()[2:]]
    assert rows[1][0] == "| baseline++"
    assert rows[1][1].startswith("41.67 ±")
    told = [cell.strip(" |") for row in rows for cell in row[1:]]
    assert told.count("not run yet") == 3 * len(NETWORKS) - 1
