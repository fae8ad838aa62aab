from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

import shotproof as sp
from shotproof.core.errors import InputError, Mismatch, UnknownName
from shotproof.report.figures.projection_figure import projection_part
from tests.context_data import catalog_of_counts, sample_context
from tests.report_files import write_report

CATALOG = catalog_of_counts(np.full((6, 4), 12))
SETS = sample_context(CATALOG, way=3, shot=2, query=4, tasks=9)


def features(dimensions: int = 8) -> sp.Features:
    """The class along the first axis, the context along the second."""
    labels, contexts = (CATALOG.table.column(name).to_pylist() for name in ("label", "context"))
    values = np.random.default_rng(0).normal(0, 0.1, (len(labels), dimensions))
    values[:, 0] += [5.0 * int(label[1:]) for label in labels]
    values[:, 1] += [2.0 * int(context[1:]) for context in contexts]
    return sp.Features.from_array(CATALOG.items, values, name="made up")


def test_pca_of_a_task_is_that_of_scikit_learn_over_both_sets() -> None:
    given = features()
    projection = sp.analysis.project_task([SETS["iid"], SETS["ood"]], given, task=4)
    iid, ood = projection.tasks
    assert [task.sampler for task in projection.tasks] == ["iid", "ood"]
    assert (iid.is_query.sum(), (~iid.is_query).sum()) == (12, 6)
    # The supports are the same items at the same places; the queries are others.
    assert [item for item, query in zip(iid.items, iid.is_query, strict=True) if not query] == [
        item for item, query in zip(ood.items, ood.is_query, strict=True) if not query
    ]
    np.testing.assert_array_equal(iid.places[~iid.is_query], ood.places[~ood.is_query])
    rows = dict(zip(given.table["item"].to_pylist(), given.array, strict=True))
    distinct = sorted({*iid.items, *ood.items})
    reference = PCA(2).fit(np.stack([rows[item] for item in distinct]).astype(np.float64))
    for one in projection.tasks:
        expected = reference.transform(np.stack([rows[item] for item in one.items]))
        np.testing.assert_allclose(np.abs(one.places), np.abs(expected), rtol=1e-4, atol=1e-4)
    assert projection.explained == pytest.approx(reference.explained_variance_ratio_.sum())
    labels = dict(zip(CATALOG.items, CATALOG.table["label"].to_pylist(), strict=True))
    assert [labels[item] for item in ood.items] == [ood.labels[slot] for slot in ood.slots]


def test_tsne_keeps_the_classes_of_a_task_together() -> None:
    projection = sp.analysis.project_task(SETS["iid"], features(), how="tsne")
    task = projection.tasks[0]
    assert projection.explained is None
    near = np.linalg.norm(task.places[:, None] - task.places[None], axis=-1) + 1e9 * np.eye(len(task.places))
    assert (task.slots[near.argmin(axis=1)] == task.slots).mean() > 0.9
    again = sp.analysis.project_task(SETS["iid"], features(), how="tsne")
    np.testing.assert_array_equal(again.tasks[0].places, task.places)
    assert sp.analysis.project_task(SETS["iid"], features(2), how="tsne").tasks[0].places.shape == (18, 2)


def test_what_cannot_be_laid_out_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"projection 'tnse'.*did you mean 'tsne'"):
        sp.analysis.project_task(SETS["iid"], features(), how="tnse")
    with pytest.raises(InputError, match="task 9: expected one of 0 to 8"):
        sp.analysis.project_task(SETS["iid"], features(), task=9)
    others = sp.sample(CATALOG, "random", way=3, shot=2, query=4, tasks=9, seed=5)
    with pytest.raises(Mismatch, match="has other classes in 'random' than in 'iid'"):
        sp.analysis.project_task([SETS["iid"], others], features())


def test_the_figure_marks_supports_and_queries_of_every_class() -> None:
    part = projection_part(sp.analysis.project_task([SETS["iid"], SETS["ood"]], features()))
    assert [name for name, _ in part["panels"]] == ["iid", "ood"]
    for _, figure in part["panels"]:
        assert figure.count('class="mark') == 18
        assert figure.count(' support"') == 6
    assert len(part["keys"]) == 3


def test_the_page_shows_the_iid_task_beside_the_ood_one(tmp_path: Path) -> None:
    given = features()
    results = [sp.evaluate(SETS[name], given, "ncc") for name in ("iid", "ood")]
    tasks = [SETS["iid"], SETS["ood"]]
    options = {"tasks": tasks, "features": [given], "intervals": "sampler", "placebo": False}
    write_report(tmp_path / "a.html", results, **options)
    assert "PCA, task " in (tmp_path / "a.html").read_text()

    write_report(tmp_path / "b.html", results, **options, projection="none")
    assert "PCA, task " not in (tmp_path / "b.html").read_text()
    with pytest.raises(UnknownName, match="projection 'umap'"):
        write_report(tmp_path / "c.html", results, **options, projection="umap")
