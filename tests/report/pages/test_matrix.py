from __future__ import annotations

from pathlib import Path

from shotproof.analysis.compare import compare
from shotproof.report.pages.matrix import matrices
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


def test_a_pair_reads_the_other_way_round_from_the_other_side(tmp_path: Path) -> None:
    results, _, _ = make_experiment(tmp_path)
    made = matrices(compare(results, metric="wacc"))
    names = [one.name for one in made[:3]]
    assert names == [f"{name}, 3-way 1-shot" for name in ("random", "fewstab", "skill lost, random - fewstab")]
    assert len(made) == 2 * 3
    for one in made:
        opposite = {"+": "−", "0": "0", "−": "+"}
        assert one.pairs == 4 * 3 / 2
        signs = {(i, j): cell.signs[0] for i, row in enumerate(one.rows) for j, cell in enumerate(row[2]) if cell}
        assert all(signs[j, i] == opposite[sign] for (i, j), sign in signs.items())
        assert one.conclusive["sampler"] == sum(sign != "0" for sign in signs.values()) / 2
        assert all(row[2][i] is None for i, row in enumerate(one.rows))


def test_a_matrix_is_by_the_metric_of_the_comparison(tmp_path: Path) -> None:
    comparison = compare(make_experiment(tmp_path)[0], metric="wacc")
    (first, *_), group = matrices(comparison), comparison.groups[0]
    ordered = sorted(group.rows, key=lambda row: -row.means["wacc"])
    assert [name for name, _, _ in first.rows] == [comparison.classifier_name(row.classifier) for row in ordered]
    assert [rank for _, rank, _ in first.rows] == [row.rank("wacc") for row in ordered]


def test_a_matrix_of_skill_begins_with_who_loses_least(tmp_path: Path) -> None:
    comparison = compare(make_experiment(tmp_path)[0])
    skill, made = comparison.blocks[0].losses[0].skill, matrices(comparison)[2]
    ordered = sorted(skill.rows, key=lambda row: row.means["acc"])
    assert made.is_lost
    assert [name for name, _, _ in made.rows] == [comparison.classifier_name(row.classifier) for row in ordered]
    ranked = [rank for _, rank, _ in made.rows]
    assert ranked == [row.rank("acc") for row in ordered]
    best, worst = ([getattr(rank, end) for rank in ranked] for end in ("best", "worst"))
    assert best[0] == 1 < best[-1]
    assert worst[0] < worst[-1] == len(ranked)


def test_designs_without_random_tasks_have_no_gap(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = [
        make_results(make_tasks(catalog, sampler, seed=seed), "pixels", {"ncc": 0.9, "knn": 0.4})
        for seed, sampler in enumerate(("fewstab", "ood"))
    ]
    made = matrices(compare(results, metric="wacc"))
    assert [one.name.split(",")[0] for one in made] == ["fewstab", "ood"]
    assert [str(row[1]) for row in made[0].rows] == ["1 of 2", "2 of 2"]
