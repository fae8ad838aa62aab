"""Changed tasks: the same tasks with one thing changed, plates that follow the rules, and gaps of planted truth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

from shotproof.catalog.catalog import MASK, Catalog
from shotproof.catalog.changed_catalog import with_changes
from shotproof.changes.change import BackgroundChange, changes
from shotproof.core.errors import InputError, InsufficientData, Mismatch, UnknownName
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.masks.cut_images import PIXEL_BOX
from shotproof.results.origin import Origin
from shotproof.results.results import Results
from shotproof.tasks.changed import Changed, Variants
from shotproof.tasks.plates import CANDIDATES, Plates
from shotproof.tasks.sampler import sample, samplers
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import SIDES, TaskSet, TaskShape
from tests.drawn_layers import COLORS, draw_masked
from tests.hash_seeds import run_with_another_hash_seed

DESIGN: dict[str, Any] = {"way": 3, "shot": 2, "query": 3}
MIXED = ("mixed-same", "mixed-random", "mixed-rival")


def catalog_of(
    classes: int = 5, items: int = 8, per_source: int = 1, without: tuple[str, ...] = (), contexts: int = 0
) -> Catalog:
    """Images with masks, but for those `without`; so many in a row share a source, and contexts take turns."""
    names = [f"class{c}/{i}.png" for c in range(classes) for i in range(items)]
    columns = {
        "item": names,
        "path": names,
        "label": [name.split("/")[0] for name in names],
        "split": ["test"] * len(names),
        MASK: [None if name in without else f"masks/{name}" for name in names],
        "source": [f"source{number // per_source}" for number in range(len(names))],
    }
    if contexts:
        columns["context"] = [f"place{number % contexts}" for number in range(len(names))]
    return Catalog(pa.table(columns))


def changed(catalog: Catalog, like: TaskSet, change: str, **options: Any) -> TaskSet:
    """The tasks with one change."""
    seed = options.pop("seed", 0)
    return sample(catalog, Changed(change=change, **options), like=like, seed=seed)


@dataclass(frozen=True)
class Shown:
    """An item of a task with what its change says.

    labels: classes of the task
    support: items in its support sets
    plate: item whose background is shown
    """

    item: str
    label: str
    labels: set[str]
    support: set[str]
    plate: str


def shown(tasks: TaskSet, side: str = "query") -> Iterator[Shown]:
    """Each changed item of one side."""
    rows = tasks.table.to_pylist()
    for task in range(len(tasks)):
        of_task = rows[tasks.starts[task] : tasks.starts[task + 1]]
        labels = {row["label"] for row in of_task}
        support = {item for row in of_task for item in row["support"]}
        for row in of_task:
            for item, spelling in zip(row[side], row[f"{side}_change"], strict=True):
                change = changes.make(spelling)
                assert isinstance(change, BackgroundChange)
                yield Shown(item, row["label"], labels, support, str(change.plate))


@pytest.mark.parametrize(
    ("spec", "spelling"),
    [
        ("blur", "blur"),
        ("blur(severity=5)", "blur(severity=5)"),
        ({"name": "blur", "severity": 5}, "blur"),
        ({"name": "mixed-rival(seed=2)"}, "mixed-rival"),
    ],
)
def test_the_name_of_a_change_says_which_sampler_applies_it(spec: Any, spelling: str) -> None:
    with pytest.raises(UnknownName) as caught:
        samplers.make(spec)
    name = spelling.partition("(")[0]
    assert str(caught.value) == f"unknown sampler '{name}': it is a change, \"changed(change='{spelling}')\""
    with pytest.raises(UnknownName, match=r"unknown sampler 'blurred' \(known: "):
        samplers.make("blurred")


@pytest.mark.parametrize("change", ["blur(severity=2)", "only-background", *MIXED])
@pytest.mark.parametrize("side", ["query", "support", "both"])
def test_classes_items_and_slots_are_those_of_the_other_set(change: str, side: str) -> None:
    catalog = catalog_of()
    like = sample(catalog, "random", **DESIGN, tasks=12)
    tasks = changed(catalog, like, change, side=side)
    columns = ["task", "slot", "label", "support", "query"]
    assert tasks.table.select(columns).equals(like.table.select(columns))
    assert tasks.match == like.digest
    assert tasks.digest != like.digest
    assert (tasks.record.way, tasks.record.shot, tasks.record.query) == (3, 2, 3)
    assert check_tasks(tasks, catalog) == []
    for name in SIDES:
        spellings = tasks.changes(name)
        assert (spellings is not None) == (side in (name, "both"))
        items = pc.list_flatten(tasks.table.column(name)).to_pylist()
        if spellings is None:
            assert tasks.item_names(name).to_pylist() == items
        else:
            expected = [f"{item} @ {text}" for item, text in zip(items, spellings.to_pylist(), strict=True)]
            assert tasks.item_names(name).to_pylist() == expected


def test_the_change_is_spelled_in_full_whichever_way_it_was_typed() -> None:
    assert str(Changed(change="blur( style='motion',severity=2 )")) == str(
        samplers.make({"name": "changed", "change": "blur(severity=2, style='motion')"})
    )
    with pytest.raises(InputError, match="unknown change 'blurr': did you mean 'blur'"):
        Changed(change="blurr")
    with pytest.raises(InputError, match="side: expected query or support or both, found 'queries'"):
        Changed(change="blur", side="queries")  # type: ignore[arg-type]


@pytest.mark.parametrize("per_source", [1, 2])
@pytest.mark.parametrize("change", MIXED)
def test_plates_follow_their_rules(change: str, per_source: int) -> None:
    catalog = catalog_of(per_source=per_source)
    label, source = (
        dict(zip(catalog.items, catalog.table.column(name).to_pylist(), strict=True)) for name in ("label", "source")
    )
    tasks = changed(catalog, sample(catalog, "random", **DESIGN, tasks=60), change, side="both")
    plates = set()
    for side in SIDES:
        for query in shown(tasks, side):
            assert source[query.plate] != source[query.item]
            plates.add(query.plate)
            if change == "mixed-same":
                assert label[query.plate] == query.label
            if change == "mixed-rival":
                assert label[query.plate] in query.labels - {query.label}
    assert len(plates) > 20


@pytest.mark.parametrize("change", ["mixed-same", "mixed-rival"])
def test_backgrounds_of_a_class_are_from_the_context_that_its_supports_plant(change: str) -> None:
    catalog = catalog_of(items=20, contexts=4)
    context = dict(zip(catalog.items, catalog.table.column("context").to_pylist(), strict=True))
    like = sample(catalog, "iid", way=3, shot=2, query=3, tasks=40)
    tasks = changed(catalog, changed(catalog, like, "mixed-same"), change)
    rows = tasks.table.to_pylist()
    planted = {(row["task"], row["label"]): row["attribute"] for row in rows}
    label = dict(zip(catalog.items, catalog.table.column("label").to_pylist(), strict=True))
    for row in rows:
        assert {context[item] for item in row["support"]} == {row["attribute"]}
        for spelling in row["query_change"]:
            plate = changes.make(spelling).plate  # type: ignore[attr-defined]
            assert context[plate] == planted[row["task"], label[plate]]
    assert check_tasks(tasks, catalog) == []
    variants = Variants.of(tasks, catalog)
    assert variants.is_complete
    spellings = tasks.changes("query")
    assert spellings is not None
    asked = pairs_of(pc.list_flatten(tasks.table.column("query")), spellings)
    assert asked <= pairs_of(variants.items, variants.changes)

    # Random tasks plant nothing: their backgrounds are from any context of the class.
    free = changed(catalog, sample(catalog, "random", way=3, shot=2, query=3, tasks=40), change)
    places = {
        context[changes.make(spelling).plate]  # type: ignore[attr-defined]
        for row in free.table.to_pylist()
        for spelling in row["query_change"]
        if row["label"] == "class0"
    }
    assert places == {"place0", "place1", "place2", "place3"}


@pytest.mark.parametrize("change", ["mixed-same", "mixed-rival"])
def test_the_column_of_planted_contexts_is_that_of_the_tasks(change: str) -> None:
    catalog = catalog_of(items=20, contexts=4)
    habitats = catalog.table.column("context")
    columns = [name if name != "context" else "habitat" for name in catalog.table.column_names]
    renamed = Catalog(catalog.table.rename_columns(columns))
    # A column `context` that the tasks do not plant has no say.
    misleading = Catalog(renamed.table.append_column("context", pa.array(["anywhere"] * len(renamed))))
    context = dict(zip(catalog.items, habitats.to_pylist(), strict=True))
    label = dict(zip(catalog.items, catalog.table.column("label").to_pylist(), strict=True))
    for other in (renamed, misleading):
        like = sample(other, "iid(context_column='habitat')", way=3, shot=2, query=3, tasks=40)
        tasks = changed(other, changed(other, like, "mixed-same"), change)
        assert tasks.record.context_column == "habitat"
        planted = {(row["task"], row["label"]): row["attribute"] for row in tasks.table.to_pylist()}
        for row in tasks.table.to_pylist():
            for spelling in row["query_change"]:
                plate = changes.make(spelling).plate  # type: ignore[attr-defined]
                assert context[plate] == planted[row["task"], label[plate]]
        assert check_tasks(tasks, other) == []
        spellings = tasks.changes("query")
        assert spellings is not None
        variants = Variants.of(tasks, other)
        assert pairs_of(pc.list_flatten(tasks.table.column("query")), spellings) <= pairs_of(
            variants.items, variants.changes
        )
    with pytest.raises(InputError, match="has no column 'habit' to take the contexts from: did you mean 'habitat'"):
        changed(renamed, like, change, context_column="habit")


def test_a_context_with_too_few_backgrounds_is_named() -> None:
    catalog = catalog_of(items=8, contexts=4)
    like = sample(catalog, "iid(hard_ood=False)", way=3, shot=1, query=1, tasks=4)
    with pytest.raises(InsufficientData, match=r"class 'class\d' has 2 backgrounds in context 'place\d' in 2 items"):
        changed(catalog, like, "mixed-same")


@pytest.mark.parametrize("per_source", [1, 4])
def test_every_item_of_another_source_is_as_likely_where_any_may_be(per_source: int) -> None:
    catalog = catalog_of(classes=3, items=8, per_source=per_source)
    place = {item: number for number, item in enumerate(catalog.items)}
    counts = np.zeros((24, 24), int)
    for seed in range(100):
        change = changes.make(f"mixed-random(seed={seed})")
        assert isinstance(change, BackgroundChange)
        items, spellings = Plates.of(catalog, change).every_variant(np.array([-1]))
        for item, spelling in pairs_of(items, spellings):
            plate = changes.make(spelling)
            assert isinstance(plate, BackgroundChange)
            counts[place[item], place[str(plate.plate)]] += 1
    is_own_source = np.arange(24)[:, None] // per_source == np.arange(24) // per_source
    assert (counts.sum(axis=1) == CANDIDATES["random"] * 100).all()  # different ones each time
    assert not counts[is_own_source].any()
    assert stats.chisquare(counts[~is_own_source]).pvalue > 1e-3


def _like(catalog: Catalog) -> TaskSet:
    return sample(catalog, "random", **DESIGN, tasks=1)


@pytest.mark.parametrize("change", MIXED)
def test_a_plate_in_the_support_set_is_shown_only_if_all_candidates_are_there(change: str) -> None:
    catalog = catalog_of(classes=3, items=6)
    tasks = changed(catalog, sample(catalog, "random", way=3, shot=4, query=2, tasks=40), change)
    most = CANDIDATES[change.removeprefix("mixed-")]
    pairs: dict[tuple[str, str], set[str]] = {}  # of an item and the class of its plate
    queries = list(shown(tasks))
    label = dict(zip(catalog.items, catalog.table.column("label").to_pylist(), strict=True))
    for query in queries:
        pairs.setdefault((query.item, "" if change == "mixed-random" else label[query.plate]), set()).add(query.plate)
    assert max(map(len, pairs.values())) == most
    hidden = 0
    for query in queries:
        candidates = pairs[query.item, "" if change == "mixed-random" else label[query.plate]]
        if query.plate in query.support:
            assert candidates <= query.support or len(candidates) < most
            hidden += 1
    assert 0 < hidden < len(queries)


def mixtures(classes: int = 4, foregrounds: int = 6, recordings: int = 5) -> Catalog:
    """Mixtures without files: each foreground with each recording of the background of its class, and of the next."""
    rows = []
    for label in range(classes):
        for front in range(foregrounds):
            for place in (label, (label + 1) % classes):
                back = f"place{place}/{(front + label) % recordings}.flac"
                rows.append((f"class{label}", f"{label}/{front}.flac", back, f"place{place}"))
    labels, fronts, backs, places = (list(column) for column in zip(*rows, strict=True))
    names = [f"{front}+{back}" for front, back in zip(fronts, backs, strict=True)]
    columns = {"item": names, "path": [f"{name}.flac" for name in names], "label": labels, "context": places}
    return Catalog(
        pa.table(
            {**columns, "split": ["test"] * len(names), "source": fronts, "foreground": fronts, "background": backs}
        )
    )


def background_of(catalog: Catalog) -> dict[str, str]:
    """What the background of each item is from: a recording, or the item's source."""
    column = "background" if "background" in catalog.table.column_names else "source"
    return dict(zip(catalog.items, catalog.table.column(column).to_pylist(), strict=True))


def shown_twice(tasks: TaskSet, catalog: Catalog) -> int:
    """How many items show, with their plate, what the other side of their task shows, by plain sets."""
    background, rows, count = background_of(catalog), tasks.table.to_pylist(), 0
    side = "query" if tasks.changes("query") is not None else "support"
    other = "support" if side == "query" else "query"

    def plates(row: dict[str, Any], of_side: str) -> list[str]:
        spellings = row.get(f"{of_side}_change")
        if spellings is None:
            return list(row[of_side])
        made = [changes.make(spelling) for spelling in spellings]
        return [str(change.plate) for change in made if isinstance(change, BackgroundChange)]

    for task in range(len(tasks)):
        of_task = rows[tasks.starts[task] : tasks.starts[task + 1]]
        seen = {background[plate] for row in of_task for plate in plates(row, other)}
        count += sum(background[plate] in seen for row in of_task for plate in plates(row, side))
    return count


@pytest.mark.parametrize("side", ["query", "support", "both"])
@pytest.mark.parametrize("change", MIXED)
@pytest.mark.parametrize("catalog", [catalog_of(items=24, per_source=2), mixtures()], ids=["images", "sounds"])
def test_plates_have_other_backgrounds_than_the_item_and_the_other_side(
    catalog: Catalog, change: str, side: str
) -> None:
    like = sample(catalog, "random", way=3, shot=2, query=2, tasks=60)
    tasks = changed(catalog, like, change, side=side)
    background = background_of(catalog)
    for one_side in [name for name in SIDES if tasks.changes(name) is not None]:
        for query in shown(tasks, one_side):
            assert background[query.plate] != background[query.item]
    count = shown_twice(tasks, catalog)
    assert tasks.record.summary["backgrounds_shown_twice"] == count
    assert count < 0.25 * len(list(shown(tasks, side if side != "both" else "query")))
    assert check_tasks(tasks, catalog) == []
    if catalog.medium == "image" and change == "mixed-same":  # four candidates, and two sources in the support
        assert count == 0


@pytest.mark.parametrize(("first", "then"), [("blur", "noise"), ("blur", "mixed-same"), ("only-foreground", "blur")])
def test_a_change_of_changed_tasks_is_refused(first: str, then: str) -> None:
    catalog = catalog_of()
    tasks = changed(catalog, _like(catalog), first)
    with pytest.raises(InputError, match=rf"query items .* have the change '{first}', and '{then}' of .*unchanged set"):
        changed(catalog, tasks, then)
    with pytest.raises(InputError, match=r"query items .* have the change 'mixed-same', and 'mixed-rival' of support"):
        changed(catalog, changed(catalog, _like(catalog), "mixed-same"), "mixed-rival", side="support")


def test_the_plate_is_not_for_users_to_choose() -> None:
    with pytest.raises(InputError, match=r"the sampler chooses .*: leave plate out"):
        Changed(change="mixed-same(plate='class0/1.png')")


@pytest.mark.parametrize("change", ["noise", *MIXED])
def test_tasks_do_not_depend_on_how_many_are_drawn_or_in_which_parts(change: str) -> None:
    catalog = catalog_of()
    like = sample(catalog, "random", **DESIGN, tasks=20)
    sampler = Changed(change=change)
    whole = sample(catalog, sampler, like=like)
    part = sample(catalog, sampler, like=like, tasks=10)
    assert (len(whole), len(part)) == (20, 10)
    assert whole.first(10).table.equals(part.table)
    assert part.match == like.first(10).digest
    bound = sampler.bind(catalog, TaskShape(**DESIGN), 0, like=like)
    pieces = [bound.draw(range(start, start + 5)) for start in (15, 5, 0, 10)]
    assert TaskSet(pa.concat_tables([pieces[2], pieces[1], pieces[3], pieces[0]])).digest == whole.digest


def test_seeds_and_changes_give_other_tasks() -> None:
    catalog = catalog_of()
    like = sample(catalog, "random", **DESIGN, tasks=10)
    sets = [
        *(changed(catalog, like, change) for change in (*MIXED, "blur", "blur(severity=1)", "only-foreground")),
        changed(catalog, like, "mixed-same(seed=1)"),
        changed(catalog, like, "mixed-random(seed=1)"),
        changed(catalog, like, "mixed-rival", seed=1),
        changed(catalog, like, "blur", side="support"),
        changed(catalog, like, "blur", side="both"),
    ]
    assert len({tasks.digest for tasks in sets}) == len(sets)


def digest_of_tasks() -> str:
    """Digest of a changed task set."""
    catalog = catalog_of()
    return changed(catalog, sample(catalog, "random", **DESIGN, tasks=10), "mixed-rival").digest


def test_another_process_with_another_hash_seed_draws_the_same() -> None:
    program = "from tests.tasks.test_changed import digest_of_tasks; print(digest_of_tasks())"
    assert run_with_another_hash_seed(program).strip() == digest_of_tasks()


def pairs_of(items: pa.Array, spellings: pa.Array) -> set[tuple[str, str]]:
    return set(zip(items.to_pylist(), spellings.to_pylist(), strict=True))


@pytest.mark.parametrize("per_source", [1, 2])
@pytest.mark.parametrize("change", ["noise", "only-foreground", *MIXED])
def test_complete_variants_are_all_that_tasks_ask_for(change: str, per_source: int) -> None:
    catalog = catalog_of(per_source=per_source)
    variants = Variants.of(changed(catalog, _like(catalog), change), catalog)
    assert variants.is_complete
    known = pairs_of(variants.items, variants.changes)
    assert len(known) == len(variants.names)
    for seed in range(4):
        like = sample(catalog, "random", **DESIGN, tasks=25, seed=seed)
        tasks = changed(catalog, like, change, side="both", seed=seed)
        for side in SIDES:
            spellings = tasks.changes(side)
            assert spellings is not None
            assert pairs_of(pc.list_flatten(tasks.table.column(side)), spellings) <= known


@pytest.mark.parametrize("change", MIXED)
def test_classes_with_too_few_plates_do_no_harm_where_tasks_have_none_of_them(change: str) -> None:
    catalog = catalog_of().filter(
        [not item.startswith("class0") or item == "class0/0.png" for item in catalog_of().items]
    )
    like = sample(catalog, "random(skip_small_classes=True)", **DESIGN, tasks=10)
    tasks = changed(catalog, like, change)
    variants = Variants.of(tasks, catalog)
    assert variants.is_complete
    spellings = tasks.changes("query")
    assert spellings is not None
    assert pairs_of(pc.list_flatten(tasks.table.column("query")), spellings) <= pairs_of(
        variants.items, variants.changes
    )


def test_variants_beyond_the_limit_are_those_of_the_tasks() -> None:
    catalog = catalog_of(classes=40, items=10)
    like = sample(catalog, "random", **DESIGN, tasks=4)
    count = 2 * 39 * len(catalog)
    assert count > Changed().most_items
    enough = changed(catalog, like, "mixed-rival", most_items=count)
    assert Variants.of(enough, catalog).is_complete
    assert len(Variants.of(enough, catalog).items) == count
    tasks = changed(catalog, like, "mixed-rival")
    assert tasks.digest == enough.digest
    variants = Variants.of(tasks, catalog)
    assert not variants.is_complete
    spellings = tasks.changes("query")
    assert spellings is not None
    asked = pairs_of(pc.list_flatten(tasks.table.column("query")), spellings)
    assert pairs_of(variants.items, variants.changes) == asked
    assert len(variants.items) == len(asked)


def test_the_limit_holds_for_changes_without_plates_too() -> None:
    catalog = catalog_of()
    like = sample(catalog, "random", **DESIGN, tasks=2)
    for change in ("blur", "only-background"):
        assert Variants.of(changed(catalog, like, change, most_items=len(catalog)), catalog).is_complete
        tasks = changed(catalog, like, change, most_items=len(catalog) - 1)
        variants = Variants.of(tasks, catalog)
        assert not variants.is_complete
        assert set(variants.items.to_pylist()) == set(pc.list_flatten(tasks.table.column("query")).to_pylist())


@pytest.mark.parametrize("side", ["query", "both"])
def test_a_written_set_is_read_again(tmp_path: Path, side: str) -> None:
    catalog = catalog_of()
    tasks = changed(catalog, _like(catalog), "mixed-rival", side=side)
    tasks.write(tmp_path / "tasks.parquet")
    again = TaskSet.read(tmp_path / "tasks.parquet")
    assert again.digest == tasks.digest
    assert again.is_changed
    assert again.record.sampler == tasks.record.sampler
    assert again.table.equals(tasks.table)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([["noise"]], "column 'query_change': expected as many changes as 'query' has items"),
        ([["noise", None]], "column 'query_change'"),
        ([None], "column 'query_change'"),
        (["noise"], "column 'query_change'"),
    ],
)
def test_columns_of_changes_that_do_not_fit_are_refused(value: list[Any], message: str) -> None:
    columns = {"task": [0], "slot": [0], "label": ["x"], "attribute": pa.array([None], pa.string())}
    table = pa.table({**columns, "support": [["a"]], "query": [["b", "c"]], "query_change": value})
    with pytest.raises(InputError, match=message):
        TaskSet(table)


def test_items_without_a_mask_are_counted_and_named() -> None:
    without = ("class0/0.png", "class1/3.png", "class2/2.png")
    catalog = catalog_of(classes=3, without=without)
    like = sample(catalog, "random", way=3, shot=4, query=4, tasks=4)
    for change in ("only-background", "mixed-same"):
        with pytest.raises(InputError, match=rf"change '{change}': 3 items .* no mask .*e\.g\. 'class"):
            changed(catalog, like, change, side="both")
    with pytest.raises(InputError, match=r"1 item of the tasks has no mask") as caught:
        changed(catalog_of(classes=3, without=without[:1]), like, "mixed-same", side="both")
    (advised,) = re.findall(r"shift\(.+?\)", str(caught.value))
    conditioned = sample(catalog, advised, **DESIGN, tasks=30)
    assert len(changed(catalog, conditioned, "mixed-same", side="both")) == 30
    unchanged = changed(catalog, like, "blur")
    assert len(unchanged) == 4
    masked = catalog.filter([item not in without for item in catalog.items])
    kept = changed(masked, sample(masked, "random", **DESIGN, tasks=30), "mixed-random")
    assert not {query.plate for query in shown(kept)} & set(without)


def test_no_masks_at_all_tell_what_would_give_them() -> None:
    catalog = catalog_of()
    like = _like(catalog)
    bare = Catalog(catalog.table.drop_columns([MASK]))
    with pytest.raises(InputError, match=r"change 'mixed-same' .*: images need masks .*--cutter grabcut") as caught:
        changed(bare, like, "mixed-same")
    assert "--masks FOLDER" in str(caught.value)
    assert all(name in str(caught.value) for name in PIXEL_BOX)
    assert len(changed(bare, like, "blur")) == 1


def test_changes_of_another_medium_are_refused() -> None:
    catalog = catalog_of()
    with pytest.raises(InputError, match=r"change 'gain' does not apply to images: expected one of .*rotation"):
        changed(catalog, _like(catalog), "gain")


@pytest.mark.parametrize("sampler", ["changed(change='blur')", "changed(change='mixed-same')", "copied"])
def test_tasks_of_another_catalog_are_refused(sampler: str) -> None:
    catalog = catalog_of(classes=3)
    like = sample(catalog, "random", way=3, shot=4, query=4, tasks=1)
    smaller = catalog.filter([item != "class1/2.png" for item in catalog.items])
    with pytest.raises(Mismatch, match=r"like: .* lack 1 of .* 'class1/2\.png'"):
        sample(smaller, sampler, like=like)


@pytest.mark.parametrize(
    ("per_source", "message"),
    [
        (1, "class 'class[01]' has 2 backgrounds in 2 items: each item needs 2 others"),
        (3, "class 'class[01]' has 2 backgrounds in 4 items: each item needs 2 others"),
    ],
)
def test_too_few_plates_of_a_class_are_told(per_source: int, message: str) -> None:
    catalog = catalog_of(classes=2, items=2 if per_source == 1 else 4, per_source=per_source)
    like = sample(catalog, "random", way=2, shot=1, query=1, tasks=8)
    with pytest.raises(InsufficientData, match=message):
        changed(catalog, like, "mixed-same")


def test_too_few_plates_in_all_are_told() -> None:
    masked = ("class0/1.png", "class1/1.png")
    catalog = catalog_of(classes=2, items=2, without=("class0/0.png", "class1/0.png"))
    columns = {"task": [0, 0], "slot": [0, 1], "label": ["class0", "class1"]}
    supports = {"support": [["class0/0.png"], ["class1/0.png"]], "query": [[item] for item in masked]}
    like = TaskSet(pa.table({**columns, "attribute": pa.nulls(2, pa.string()), **supports}))
    with pytest.raises(InsufficientData, match="'mixed-random': only 2 items have a background, and 1 of them"):
        changed(catalog, like, "mixed-random")


NO_CACHE = Runtime(cache=None, workers=1)
Encoder = Callable[[Catalog], Features]


def seen_of_border(catalog: Catalog) -> Features:
    """The colors along the border of a picture: nothing of its object."""
    seen = encode(catalog, "pixels(size=8)", runtime=NO_CACHE)
    cells = seen.array.reshape(len(catalog), 8, 8, 3)
    border = np.concatenate([cells[:, 0], cells[:, -1], cells[:, :, 0], cells[:, :, -1]], axis=1)
    return Features.from_array(catalog.items, border.reshape(len(catalog), -1) - 0.4, name="border")


def seen_of_object(catalog: Catalog) -> Features:
    """The color of the object of a picture: nothing of its background."""
    colors = np.array(COLORS, np.float64)[[int(item[0]) for item in catalog.items]]
    return Features.from_array(catalog.items, colors - 100, name="object")


def evaluated(catalog: Catalog, encoder: Encoder, names: tuple[str, ...]) -> dict[str, Results]:
    """The results on tasks, unchanged and with each change, of one encoder that sees all items."""
    like = sample(catalog, "random", **DESIGN, tasks=25)
    sets = {"unchanged": like, **{name: changed(catalog, like, name) for name in names}}
    variants = [Variants.of(tasks, catalog) for name, tasks in sets.items() if name != "unchanged"]
    features = encoder(with_changes(catalog, [(variant.items, variant.changes) for variant in variants]))
    return {name: evaluate(tasks, features, ["ncc"], runtime=NO_CACHE) for name, tasks in sets.items()}


def accuracy(results: Results) -> float:
    table = results.table
    return float(pc.sum(table.column("n_correct")).as_py() / pc.sum(table.column("n_query")).as_py())


def correct(results: Results) -> npt.NDArray[np.int64]:
    return np.asarray(results.table.column("n_correct").to_numpy())


def test_a_classifier_of_backgrounds_falls_with_the_background(tmp_path: Path) -> None:
    results = evaluated(draw_masked(tmp_path), seen_of_border, (*MIXED, "only-background", "blur(severity=1)"))
    assert accuracy(results["unchanged"]) == 1
    assert accuracy(results["mixed-same"]) == 1
    assert accuracy(results["only-background"]) == 1
    assert accuracy(results["blur(severity=1)"]) == 1
    assert accuracy(results["mixed-rival"]) == 0  # each query looks like another class of its task
    # A background of a class outside of the task is as near to any of its three, one of the same class to its own.
    assert 0.1 < accuracy(results["mixed-random"]) < 0.55


def test_backgrounds_that_say_nothing_of_the_class_are_known_by_chance_before_and_after(tmp_path: Path) -> None:
    results = evaluated(draw_masked(tmp_path, correlated=False), seen_of_border, ("mixed-same", "mixed-rival"))
    for each in results.values():
        assert accuracy(each) == pytest.approx(1 / 3, abs=0.15)


@pytest.mark.parametrize("correlated", [True, False])
def test_an_encoder_that_sees_no_background_has_a_gap_of_zero(tmp_path: Path, correlated: bool) -> None:
    results = evaluated(draw_masked(tmp_path, correlated=correlated), seen_of_object, MIXED)
    for each in results.values():
        assert accuracy(each) == 1
        np.testing.assert_array_equal(correct(each), correct(results["unchanged"]))


def test_the_reference_is_the_unchanged_set(tmp_path: Path) -> None:
    results = evaluated(draw_masked(tmp_path), seen_of_object, ("mixed-same", "mixed-rival"))
    origins = {name: Origin.of(each) for name, each in results.items()}
    assert {name: origin.reference(origins) for name, origin in origins.items()} == {
        "unchanged": None,
        "mixed-same": "unchanged",
        "mixed-rival": "unchanged",
    }
    assert {origin.match for origin in origins.values()} == {origins["unchanged"].match}
    assert origins["mixed-same"].axis == "changes"
    del origins["unchanged"]
    assert origins["mixed-same"].reference(origins) is None


def test_features_without_the_changed_items_are_refused(tmp_path: Path) -> None:
    catalog = draw_masked(tmp_path)
    tasks = changed(catalog, _like(catalog), "noise")
    with pytest.raises(Mismatch, match=r"lack 9 of the 15 items, e\.g\. '\d-\d\.png @ noise'"):
        evaluate(tasks, seen_of_object(catalog), ["ncc"], runtime=NO_CACHE)
