"""Hard supports of one network, tested on others."""

from __future__ import annotations

from reproduction.kept import Table
from reproduction.sections.hard import METHODS, NETWORKS, RANDOM, hard_table, transfer_table

from tests.reproduction.test_kept import evaluated


def test_tasks_are_found_by_the_network_that_they_are_hard_for() -> None:
    searched = "hardest-on-model-some-folder-models-baseline-.model-0a1b2c-like-random-5way-5shot"
    kept = [
        evaluated(RANDOM, "rfs", "cosine", [[9, 8], [7, 7], [8, 9]]),
        evaluated(searched, "rfs", "cosine", [[5, 4], [4, 3], [4, 3]]),
    ]
    rows = [line.split(" | ") for line in transfer_table(Table(tuple(kept))).splitlines()[2:]]
    assert rows[1][0] == "| baseline++"
    assert rows[1][1].startswith("41.67 ±")
    told = [cell.strip(" |") for row in rows for cell in row[1:]]
    assert told.count("not run yet") == 3 * len(NETWORKS) - 1


def test_a_method_is_held_against_class_means_on_the_same_tasks() -> None:
    hardest = "hardest-on-model-rfs-0a1b2c-like-random-5way-5shot"
    kept = [
        evaluated(RANDOM, "rfs", "ncc", [[9, 9], [8, 10], [9, 9]]),
        evaluated(RANDOM, "rfs", "finetune", [[8, 8], [8, 8], [8, 8]]),
        evaluated(hardest, "rfs", "ncc", [[4, 4], [5, 5], [3, 5]]),
        evaluated(hardest, "rfs", "finetune", [[5, 5], [6, 6], [5, 5]]),
    ]
    rows = [
        [cell.strip(" |") for cell in line.split(" | ")] for line in hard_table(Table(tuple(kept))).splitlines()[2:]
    ]
    told = {(row[0], row[1]): row[2:] for row in rows}
    assert told["rfs", "ncc"][2:] == ["46.67 ±14.34", "", ""]
    assert told["rfs", "finetune"][3:] == ["−10.00", "10.00"]  # no interval: all tasks alike
    assert len(rows) == 2 * len(METHODS)
    assert told["protonet-5", "tsa"] == ["not run yet", "", "", "", ""]
