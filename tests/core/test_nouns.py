from shotproof.core.nouns import counted


def test_counts_are_in_the_plural_and_grouped() -> None:
    assert [counted(number, "task") for number in (0, 1, 1200)] == ["0 tasks", "1 task", "1,200 tasks"]
    assert [counted(number, "class", "classes") for number in (1, 2)] == ["1 class", "2 classes"]
