from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from shotproof.core.errors import InputError
from shotproof.learners.custom.sklearn_estimator import SklearnEstimator
from shotproof.learners.method import SeededMethod, make_method
from tests.drawn_tasks import draw


def test_predictions_are_the_estimators_own() -> None:
    batch = draw(tasks=4)
    scores = make_method("sklearn:sklearn.svm.SVC(C=10, kernel='linear')").scores(*batch)
    for task in range(4):
        reference = SVC(C=10, kernel="linear").fit(batch.support[task].numpy(), batch.labels[task].numpy())
        assert scores[task].argmax(-1).tolist() == reference.predict(batch.query[task].numpy()).tolist()


def test_objects_are_copied_not_fitted() -> None:
    estimator = make_pipeline(StandardScaler(), LogisticRegression(C=3))
    method = make_method(estimator)
    method.scores(*draw(tasks=2))
    assert not hasattr(estimator[-1], "coef_")
    assert method.spelling.startswith("Pipeline(")
    assert method.parameters()["logisticregression__C"] == 3


class Majority:
    """No relative of scikit-learn: the most frequent label, for every query."""

    fitted = 0

    def fit(self, X: Any, y: Any) -> Majority:  # noqa: N803
        self.fitted += 1
        self.label = np.bincount(y).argmax()
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        return np.full(len(X), self.label)


def test_anything_with_fit_and_predict_will_do() -> None:
    estimator = Majority()
    method = make_method(estimator)
    assert method.spelling == "Majority"
    assert method.scores(*draw(shots=(1, 3, 2))).argmax(-1).unique().tolist() == [1]
    assert estimator.fitted == 0


def test_a_task_that_draws_depends_on_its_seed_alone() -> None:
    method = SklearnEstimator(make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=3)))
    assert isinstance(method, SeededMethod)
    batch = draw(tasks=3, queries=40)
    seeds = torch.tensor([5, 6, 7])
    scores = method.seeded_scores(*batch, seeds)
    backwards = method.seeded_scores(batch.support.flip(0), batch.labels.flip(0), batch.query.flip(0), 4, seeds.flip(0))
    assert torch.equal(backwards.flip(0), scores)
    assert not torch.equal(method.seeded_scores(*batch, seeds + 1), scores)


def test_a_random_state_that_was_given_is_kept() -> None:
    method = SklearnEstimator(RandomForestClassifier(n_estimators=3, random_state=1))
    batch = draw(tasks=1, queries=40)
    first, second = (method.seeded_scores(*batch, torch.tensor([seed])) for seed in (1, 2))
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sklearn:sklearn.svn.SVC", "unknown module of scikit-learn 'svn': did you mean 'svm'"),
        ("sklearn:sklearn.svm.SCV", "unknown classifier of sklearn.svm 'SCV': did you mean 'SVC'"),
        ("sklearn:sklearn.svm.SVR", "unknown classifier of sklearn.svm 'SVR'"),
        ("sklearn:sklearn.svm.SVC(c=10)", "has no option 'c': did you mean 'C'"),
        ("sklearn:sklearn.svm.SVC(C=open('x'))", "not a literal"),
        ("sklearn:os.system", "expected a public scikit-learn class"),
        ("sklearn:sklearn.svm._classes.SVC", "expected a public scikit-learn class"),
        ("sklearn:sklearn._config.SVC", "expected a public scikit-learn class"),
        ("sklearn:sklearn.conftest.SVC", "unknown module of scikit-learn 'conftest'"),
        (
            "sklearn:sklearn.multiclass.OneVsRestClassifier",
            "OneVsRestClassifier' needs estimator: e.g. sklearn:",
        ),
    ],
)
def test_only_public_classifiers_with_literal_options(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        make_method(spec)


def test_a_value_that_the_estimator_refuses_is_one_line() -> None:
    with pytest.raises(InputError, match=r"method 'sklearn:sklearn.svm.SVC\(C=-1\)' failed: The 'C' parameter"):
        make_method("sklearn:sklearn.svm.SVC(C=-1)").scores(*draw())


def test_an_estimator_that_answers_something_else_is_refused() -> None:
    class Wrong(Majority):
        def predict(self, X: Any) -> Any:  # noqa: N803
            return np.full(len(X), 99)

    with pytest.raises(InputError, match="or 9 labels from 0 to 3, found int64"):
        make_method(Wrong()).scores(*draw())


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InputError, match=r"pip install shotproof\[sklearn\]"):
        make_method("sklearn:sklearn.svm.SVC")
