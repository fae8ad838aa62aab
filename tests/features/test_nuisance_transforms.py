"""Transforms against what should not matter: what they are fitted on, and what they refuse."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import FittedOn
from shotproof.features.features import Features
from shotproof.features.map_transforms import Fitted
from shotproof.features.nuisance_transforms import CenterContexts, Leace, Nap, Wccn
from shotproof.features.transforms import transform, transforms

RANDOM = np.random.default_rng(11)
D, CLASSES, PER_CLASS = 8, 6, 30
BASE_ITEMS = [f"base/{row}.png" for row in range(CLASSES * PER_CLASS)]
TEST_ITEMS = [f"test/{row}.png" for row in range(40)]
ITEMS = [*BASE_ITEMS, *TEST_ITEMS]
CONTEXTS = np.array(["sea", "land", "air"])[RANDOM.integers(0, 3, len(ITEMS))]
WORDS = {item: [word for word in ("red", "wet", "old") if RANDOM.random() < 0.5] for item in ITEMS}
LABELS = np.array([f"base {row % CLASSES}" for row in range(len(BASE_ITEMS))] + [f"new {row % 4}" for row in range(40)])
TABLE = pa.table(
    {
        "item": ITEMS,
        "path": ITEMS,
        "label": LABELS,
        "split": ["train"] * len(BASE_ITEMS) + ["test"] * 40,
        "context": CONTEXTS,
    }
)
CATALOG, ATTRIBUTES = Catalog(TABLE), Attributes.from_words(WORDS)
# What matters is in the first dimensions; a context moves items along one direction, and each word along another.
SHIFTS = dict(zip(("sea", "land", "air", "red", "wet", "old"), RANDOM.normal(size=(6, D)), strict=True))
CENTERS = dict(zip(sorted(set(LABELS)), RANDOM.normal(size=(10, D)), strict=True))
CLEAN = np.stack([CENTERS[label] for label in LABELS])
SHIFTED = CLEAN + np.stack(
    [
        SHIFTS[context] + sum((SHIFTS[word] for word in WORDS[item]), np.zeros(D))
        for item, context in zip(ITEMS, CONTEXTS, strict=True)
    ]
)
PLANTED = CLEAN + np.stack([SHIFTS[context] for context in CONTEXTS])
NOISY = SHIFTED + RANDOM.normal(size=SHIFTED.shape)
N_BASE = len(BASE_ITEMS)


def features(values: np.ndarray, items: list[str]) -> Features:
    return Features.from_array(items, values, name="drawn")


BASE, TEST = features(NOISY[:N_BASE], BASE_ITEMS), features(NOISY[N_BASE:], TEST_ITEMS)
ALL = features(NOISY, ITEMS)
BASE_VALUES, BASE_LABELS = BASE.array.astype(np.float64), LABELS[:N_BASE]
GIVEN: dict[str, Any] = {"base": BASE, "catalog": CATALOG}


def within(values: np.ndarray) -> np.ndarray:
    """Values minus the means of the base classes, by brute force."""
    return np.stack(
        [row - values[label == BASE_LABELS].mean(0) for row, label in zip(values, BASE_LABELS, strict=True)]
    )


def without(values: np.ndarray, rows: np.ndarray, directions: int) -> np.ndarray:
    """Values without the leading right singular vectors of some rows, by brute force."""
    vectors = np.linalg.svd(rows)[2][:directions]
    return values - values @ vectors.T @ vectors


def test_nap_of_contexts_is_the_projection_by_brute_force() -> None:
    rows = []
    for label in sorted(set(BASE_LABELS)):
        for context in ("sea", "land", "air"):
            cell = (label == BASE_LABELS) & (context == CONTEXTS[:N_BASE])
            rows.append(np.sqrt(cell.sum()) * (BASE_VALUES[cell].mean(0) - BASE_VALUES[label == BASE_LABELS].mean(0)))
    expected = without(NOISY[N_BASE:], np.array(rows), 2)
    np.testing.assert_allclose(transform(TEST, Nap(**GIVEN, directions=2)).array, expected, atol=2e-6)


def test_nap_of_words_is_the_projection_by_brute_force() -> None:
    rows = []
    for label in sorted(set(BASE_LABELS)):
        for word in ("red", "wet", "old"):
            in_class = label == BASE_LABELS
            holds = np.array([word in WORDS[item] for item in BASE_ITEMS])
            holders, others = BASE_VALUES[in_class & holds], BASE_VALUES[in_class & ~holds]
            weight = np.sqrt(len(holders) * len(others) / in_class.sum())
            rows.append(weight * (holders.mean(0) - others.mean(0)))
    step = Nap(**GIVEN, by="words", attributes=ATTRIBUTES, directions=3)
    assert step.available == D - 1
    np.testing.assert_allclose(transform(TEST, step).array, without(NOISY[N_BASE:], np.array(rows), 3), atol=2e-6)


def test_items_whose_words_are_not_known_are_not_others() -> None:
    unknown = {item: None if row % 7 == 0 else WORDS[item] for row, item in enumerate(ITEMS)}
    some = Nap(**GIVEN, by="words", attributes=Attributes.from_words(unknown), directions=3)
    rows = [row for row in range(N_BASE) if row % 7]
    fewer = features(NOISY[rows], [BASE_ITEMS[row] for row in rows])
    alone = Nap(base=fewer, catalog=CATALOG, by="words", attributes=ATTRIBUTES, directions=3)
    assert some.map.digest == alone.map.digest


def test_nap_of_changes_removes_what_a_change_moves() -> None:
    direction = RANDOM.normal(size=D)
    changed = [f"{item} @ blur(severity={severity})" for severity in (1, 5) for item in BASE_ITEMS]
    moved = np.concatenate([NOISY[:N_BASE] + severity * direction for severity in (1, 5)])
    base = features(np.concatenate([NOISY[:N_BASE], moved]), [*BASE_ITEMS, *changed])
    step = Nap(base=base, catalog=CATALOG, by="changes", directions=1)
    test = features(
        np.concatenate([NOISY[N_BASE:], NOISY[N_BASE:] + 3 * direction]),
        [*TEST_ITEMS, *(f"{item} @ blur" for item in TEST_ITEMS)],
    )
    after = transform(test, step).array
    np.testing.assert_allclose(after[:40], after[40:], atol=1e-5)
    unit = direction / np.linalg.norm(direction)
    np.testing.assert_allclose(after[:40], NOISY[N_BASE:] - np.outer(NOISY[N_BASE:] @ unit, unit), atol=1e-5)
    # Changed items count for changes only.
    assert Wccn(base=base, catalog=CATALOG).map.digest == Wccn(**GIVEN).map.digest


def test_planted_words_are_removed_exactly() -> None:
    moved = CLEAN + np.stack([sum((SHIFTS[word] for word in WORDS[item]), np.zeros(D)) for item in ITEMS])
    given: dict[str, Any] = {"base": features(moved[:N_BASE], BASE_ITEMS), "catalog": CATALOG}
    for step in (
        Nap(**given, by="words", attributes=ATTRIBUTES, directions=3),
        Leace(**given, by="words", attributes=ATTRIBUTES),
    ):
        after = transform(features(moved[N_BASE:], TEST_ITEMS), step).array
        for label in (f"new {number}" for number in range(4)):
            same_class = after[LABELS[N_BASE:] == label]
            np.testing.assert_allclose(same_class, np.tile(same_class[0], (len(same_class), 1)), atol=1e-5)
        assert len(np.unique(after.round(3), axis=0)) == 4


def test_wccn_whitens_with_a_small_ridge() -> None:
    small = transform(TEST, Wccn(**GIVEN, ridge=1e-9))
    covariance = np.cov(within(BASE_VALUES).T, bias=True)
    white = scipy.linalg.inv(scipy.linalg.sqrtm(covariance))
    expected = NOISY[N_BASE:] @ white * np.sqrt(np.trace(covariance) / D)
    np.testing.assert_allclose(small.array, expected, rtol=1e-4, atol=1e-4)
    large = transform(TEST, Wccn(**GIVEN, ridge=1e9))
    np.testing.assert_allclose(large.array, TEST.array, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("by", ["contexts", "words"])
def test_after_leace_no_linear_rule_tells_base_items(by: str) -> None:
    step = Leace(**GIVEN, by=by, attributes=ATTRIBUTES)
    with pytest.warns(UserWarning, match="contains all items"):
        after = within(transform(BASE, step).array.astype(np.float64))
    if by == "contexts":
        concepts = np.eye(3)[np.unique(CONTEXTS[:N_BASE], return_inverse=True)[1]]
    else:
        concepts = np.array([[word in WORDS[item] for word in ("red", "wet", "old")] for item in BASE_ITEMS], float)
    deviations = within(concepts)
    for values, most in ((within(BASE_VALUES), 1.0), (after, 1e-5)):
        residuals = deviations - values @ np.linalg.lstsq(values, deviations, rcond=1e-5)[0]
        share = 1 - (residuals**2).sum() / (deviations**2).sum()
        assert share <= most
        assert (share > 0.2) == (most == 1.0)


def test_leace_erases_the_words_that_vary_most() -> None:
    rare = {item: [*words, *(["rare"] if row == 3 else []), "all"] for row, (item, words) in enumerate(WORDS.items())}
    step = Leace(**GIVEN, by="words", attributes=Attributes.from_words(rare), words=3)
    assert step.map.digest == Leace(**GIVEN, by="words", attributes=ATTRIBUTES).map.digest
    assert step.map.rank == 3


def test_centering_takes_the_mean_of_the_context_away() -> None:
    means = {name: BASE_VALUES[CONTEXTS[:N_BASE] == name].mean(0) - BASE_VALUES.mean(0) for name in set(CONTEXTS)}
    expected = NOISY[N_BASE:] - np.stack([means[context] for context in CONTEXTS[N_BASE:]])
    step = CenterContexts(**GIVEN)
    np.testing.assert_allclose(transform(TEST, step).array, expected, rtol=1e-5, atol=1e-5)
    maps = Features.from_array(TEST_ITEMS, np.tile(NOISY[N_BASE:, :, None, None], (1, 1, 2, 3)))
    np.testing.assert_allclose(transform(maps, step).maps[:, :, 1, 2], expected, atol=1e-2)
    with pytest.raises(InputError, match="transform 'center-contexts' needs to know which items"):
        step.apply(NOISY)


def test_items_in_no_context_of_the_base_set_are_left_as_they_are() -> None:
    contexts = [None, "fog", *CONTEXTS[2:].tolist()]
    place = TABLE.column_names.index("context")
    reordered = TABLE.take(pa.array([*range(N_BASE, N_BASE + 40), *range(N_BASE)])).set_column(
        place, "context", pa.array(contexts)
    )
    step = CenterContexts(base=BASE, catalog=Catalog(reordered))
    names = [*TEST_ITEMS[:3], f"{TEST_ITEMS[2]} @ blur", f"{TEST_ITEMS[2]} @ only-foreground"]
    test = features(np.tile(NOISY[N_BASE], (5, 1)), names)
    with pytest.warns(
        UserWarning, match="3 of the 5 items have no context of the base set, e.g. 'test/0.png' has none"
    ):
        moved = transform(test, step).array - test.array
    assert np.abs(moved).max(axis=1).astype(bool).tolist() == [False, False, True, True, False]
    np.testing.assert_array_equal(moved[2], moved[3])
    with pytest.raises(
        InputError, match=r"1 of the 1 items have no context .*'test/1.png' is in 'fog'; the base set has air"
    ):
        transform(features(NOISY[:1], TEST_ITEMS[1:2]), step)


def test_a_step_on_maps_treats_each_location() -> None:
    maps = RANDOM.normal(size=(3, D, 2, 2)).astype(np.float16)
    for step in (Wccn(**GIVEN), Nap(**GIVEN, directions=2), Leace(**GIVEN)):
        after = transform(Features.from_array(TEST_ITEMS[:3], maps), step).maps
        expected = step.apply(maps[:, :, 1, 0].astype(np.float64))
        np.testing.assert_allclose(after[:, :, 1, 0], expected, atol=1e-2, rtol=1e-2)


def test_the_base_set_goes_through_the_earlier_steps() -> None:
    step = Nap(**GIVEN, directions=2)
    unit_base = transform(BASE, "l2")
    by_hand = transform(transform(TEST, "l2"), Nap(base=unit_base, catalog=CATALOG, directions=2))
    for after in (transform(TEST, ["l2", step]), transform(transform(TEST, "l2"), step)):
        np.testing.assert_array_equal(after.array, by_hand.array)
        assert after.name == f"drawn > l2 > {step}"
    assert not np.allclose(transform(TEST, [step, "l2"]).array, by_hand.array)
    centered = transform(TEST, [transforms.make("center", base=BASE), step])
    np.testing.assert_allclose(
        centered.array, transform(TEST, step).array - step.apply(BASE_VALUES.mean(0)[None]), atol=1e-5
    )
    with pytest.warns(UserWarning, match="'drawn > l2' and the features 'drawn' went through different steps"):
        transform(TEST, Nap(base=unit_base, catalog=CATALOG, directions=2))


def test_a_split_of_the_catalog_is_the_base_set() -> None:
    in_split = Wccn(base=ALL, catalog=CATALOG, split="train")
    assert in_split.map.digest == Wccn(**GIVEN).map.digest
    np.testing.assert_array_equal(transform(ALL, in_split).array[N_BASE:], transform(TEST, Wccn(**GIVEN)).array)
    assert in_split.map.record.classes == tuple(f"base {number}" for number in range(CLASSES))
    assert in_split.spelling.endswith(", split='train')")


def test_a_base_set_of_what_is_evaluated_is_noted() -> None:
    everything = Wccn(base=ALL, catalog=CATALOG)
    with pytest.warns(UserWarning, match="transform 'wccn': the base set contains all items to evaluate"):
        transform(TEST, everything)
    half = features(NOISY[: N_BASE // 2], BASE_ITEMS[: N_BASE // 2])
    rest = features(NOISY[N_BASE // 2 : N_BASE], BASE_ITEMS[N_BASE // 2 :])
    with pytest.warns(UserWarning, match="all classes to evaluate are in the base set.*split='train'"):
        transform(rest, Wccn(base=half, catalog=CATALOG))


def test_files_are_spelled_with_their_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    BASE.write("base.parquet")
    CATALOG.write("catalog.parquet")
    ATTRIBUTES.write("words.parquet")
    spelling = (
        "nap(base='base.parquet', catalog='catalog.parquet', attributes='words.parquet', by='words', directions=3)"
    )
    after = transform(TEST, spelling)
    written = after.record.transforms[0].spelling
    assert written == (
        f"nap(base='base.parquet@{BASE.digest[:8]}', catalog='catalog.parquet@{CATALOG.digest[:8]}', "
        f"attributes='words.parquet@{ATTRIBUTES.digest[:8]}', by='words', directions=3)"
    )
    assert transform(TEST, written).digest == after.digest
    assert (
        transform(TEST, Nap(**GIVEN, by="words", attributes=ATTRIBUTES, directions=3)).array.tobytes()
        == after.array.tobytes()
    )
    with pytest.raises(Mismatch, match=r"transform 'nap': words\.parquet has the digest .*, not 0badbeef"):
        transform(TEST, spelling.replace("words.parquet", "words.parquet@0badbeef"))


def test_a_map_knows_what_it_was_fitted_on() -> None:
    step = Nap(base=transform(BASE, "l2"), catalog=CATALOG, by="words", attributes=ATTRIBUTES, directions=2)
    record = step.map.record
    assert record.transform is not None
    assert record.transform.spelling == step.spelling
    assert (record.name, record.features, record.transforms) == ("nap", "drawn > l2", ("l2",))
    assert {role: source.digest for role, source in record.sources.items()} == {
        "features": step.base_set.digest,
        "catalog": CATALOG.digest,
        "attributes": ATTRIBUTES.digest,
    }
    by_file, by_step = (transform(transform(TEST, "l2"), each) for each in (Fitted(file=step.map), step))
    assert by_file.array.tobytes() == by_step.array.tobytes()
    assert by_file.record.fitted == by_step.record.fitted == (FittedOn(record.transform, CLASSES),)


def with_contexts(contexts: list[str | None], name: str = "context") -> Catalog:
    table = TABLE.drop_columns(["context"]).append_column(name, pa.array(contexts, pa.string()))
    return Catalog(table)


@pytest.mark.parametrize(
    ("step", "options", "message"),
    [
        (
            Wccn,
            {"base": features(NOISY[:9, :5], BASE_ITEMS[:9])},
            r"5 dimensions \('drawn'\), the features 8 \('drawn'\)",
        ),
        (
            Wccn,
            {"base": features(NOISY[:1], BASE_ITEMS[:1])},
            r"wccn': the base set 'drawn' has 1 class \('base 0'\), expected at least 2",
        ),
        (Wccn, {"base": features(NOISY[:6], BASE_ITEMS[:6])}, "do not differ within classes"),
        *(
            (
                step,
                {"base": features(NOISY[:1], ["other.png"])},
                rf"^transform '{name}': the base set 'drawn': the catalog lacks 1 of the 1 items, e.g. 'other\.png'",
            )
            for name, step in {"wccn": Wccn, "nap": Nap, "leace": Leace, "center-contexts": CenterContexts}.items()
        ),
        (Wccn, {"split": "tran"}, "unknown split 'tran': did you mean 'train'"),
        (Wccn, {"split": "test"}, "has 0 classes in split 'test'"),
        (Nap, {"directions": 8}, r"directions: expected at most 7, .* the contexts .*found 8"),
        (
            Nap,
            {"base": features(PLANTED[:N_BASE], BASE_ITEMS), "directions": 3},
            "directions: expected at most 2, .*found 3",
        ),
        (Nap, {"by": "words", "attributes": ATTRIBUTES, "directions": 8}, "directions: expected at most 7"),
        (Nap, {"by": "changes"}, "has no changed items, such as 'base/0.png @ blur'"),
        (Nap, {"context_column": "contxt"}, "no column 'contxt' to take the contexts from: did you mean 'context'"),
        (
            Leace,
            {"context_column": "path"},
            "to erase 180 contexts leaves nothing of 8 dim",
        ),
        (Nap, {"catalog": with_contexts([None] * 220)}, "column 'context': none of the 180 base items has a context"),
        (Nap, {"catalog": with_contexts(["sea"] * 220)}, "nap': no items of a base class differ in contexts"),
        (Leace, {"catalog": with_contexts(["sea"] * 220)}, "leace': no items of a base class differ in contexts"),
        (CenterContexts, {"catalog": with_contexts([""] * 220)}, "none of the 180 base items has a context"),
        (
            Nap,
            {"by": "words", "attributes": Attributes.from_words(dict.fromkeys(ITEMS, ()))},
            "have no words for the base items",
        ),
        (
            Nap,
            {"by": "words", "attributes": Attributes.from_words({"a": ["x"]})},
            "the attributes lack 180 of the 180 items",
        ),
    ],
)
def test_what_cannot_be_fitted_is_explained(step: type[Any], options: dict[str, Any], message: str) -> None:
    contexts_of_two = {"directions": 2} if step is Nap else {}
    with pytest.raises(InputError, match=message):
        transform(TEST, step(**{**GIVEN, **contexts_of_two, **options}))


def test_a_file_that_cannot_be_read_is_named_with_its_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    BASE.write("base.parquet")
    CATALOG.write("catalog.parquet")
    for options, message in {
        "base='bse.parquet', catalog='catalog.parquet'": r"base: .*bse\.parquet does not exist: did you mean 'base\.p",
        "base='catalog.parquet', catalog='catalog.parquet'": "base: .*of kind 'features', found kind 'catalog'",
        "base='base.parquet', catalog='base.parquet'": "catalog: .*of kind 'catalog', found kind 'features'",
        "base='base.parquet', catalog='catalog.parquet', by='words', attributes='base.parquet'": (
            "attributes: .*of kind 'attributes', found kind 'features'"
        ),
    }.items():
        with pytest.raises(InputError, match=f"^transform 'nap': {message}"):
            transform(TEST, f"nap({options})")


def test_words_need_attributes_when_the_step_is_made() -> None:
    for name in ("nap", "leace"):
        with pytest.raises(InputError, match=rf"transform '{name}': by='words' needs attributes, e.g. attributes="):
            transforms.make(name, by="words", **GIVEN)


def test_items_without_a_label_are_left_out() -> None:
    labels = [label if row % 5 else None for row, label in enumerate(LABELS.tolist())]
    catalog = Catalog(TABLE.set_column(2, "label", pa.array(labels, pa.string())))
    rows = [row for row in range(N_BASE) if row % 5]
    fewer = features(NOISY[rows], [BASE_ITEMS[row] for row in rows])
    assert Wccn(base=BASE, catalog=catalog).map.digest == Wccn(base=fewer, catalog=CATALOG).map.digest


def test_the_order_of_items_changes_nothing() -> None:
    order = RANDOM.permutation(N_BASE)
    shuffled = features(NOISY[order], [BASE_ITEMS[row] for row in order])
    test = TEST.array.astype(np.float64)
    for step in (Wccn, Nap, Leace):
        options = {"directions": 2} if step is Nap else {}
        same = step(base=shuffled, catalog=CATALOG, **options).apply(test)
        np.testing.assert_allclose(same, step(**GIVEN, **options).apply(test), rtol=1e-5, atol=1e-5)


def test_nothing_is_noted_of_other_classes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in (Wccn(**GIVEN), Nap(**GIVEN, directions=1), Leace(**GIVEN), CenterContexts(**GIVEN)):
            assert replace(step) == step
            transform(TEST, step)
