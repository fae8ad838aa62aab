from __future__ import annotations

import errno
import inspect

import pytest

from shotproof.core import errors
from shotproof.core.errors import ShotproofError, UnknownName, describe_system_error, did_you_mean


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("randm", ["random", "fewstab"], "random"),
        ("FewSTAB", ["random", "fewstab"], "fewstab"),
        (
            "001.black_footed_albatros",
            ["002.Laysan_Albatross", "001.Black_footed_Albatross"],
            "001.Black_footed_Albatross",
        ),
    ],
)
def test_the_nearest_name_is_offered_whatever_its_case(name: str, known: list[str], nearest: str) -> None:
    assert f"did you mean '{nearest}'?" in did_you_mean(name, known)


def test_a_name_that_is_far_from_all_gets_the_list_alone() -> None:
    assert did_you_mean("xyzzy", ["random", "fewstab"]) == " (known: fewstab, random)"
    assert did_you_mean("xyzzy", []) == ""


def test_a_long_list_is_cut() -> None:
    hint = did_you_mean("xyzzy", [f"class{i:03d}" for i in range(200)])
    assert "class011, ... (200 in all)" in hint
    assert "class012" not in hint


def test_the_hint_does_not_depend_on_the_order_of_the_names() -> None:
    names = ["abc1", "abc2", "abc3"]
    assert did_you_mean("abc", names) == did_you_mean("abc", set(names)) == did_you_mean("abc", names[::-1])


def test_an_unknown_name_says_what_it_should_be() -> None:
    assert str(UnknownName("sampler", "randm", ["random"])).startswith(
        "unknown sampler 'randm': did you mean 'random'?"
    )


def test_every_error_is_one_that_the_command_line_prints() -> None:
    raised = [value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, Exception)]
    assert len(raised) > 1
    assert all(issubclass(value, ShotproofError) for value in raised)


def test_a_disk_that_refuses_is_told_in_one_line_and_other_errors_are_not_hidden() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "out/tasks.parquet")
    assert describe_system_error(full) == "cannot write or read out/tasks.parquet: No space left on device"
    assert describe_system_error(OSError(errno.EROFS, "Read-only file system")) is not None
    assert describe_system_error(FileNotFoundError(errno.ENOENT, "No such file", "x")) is None
    assert describe_system_error(RuntimeError("of our own")) is None
