"""What every registered method promises of its options: one record, from which all else follows."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import pytest

from shotproof.core.errors import InputError
from shotproof.core.options import Option
from shotproof.core.spelling import write_call
from shotproof.learners.method import Method, make_method, methods

every_method = pytest.mark.parametrize("name", methods.names())
OPTIONS = [(name, each) for name in methods.names() for each in methods.get(name).options()]
every_option = pytest.mark.parametrize(
    ("name", "option"), OPTIONS, ids=[f"{name}-{each.name}" for name, each in OPTIONS]
)


def plain(name: str) -> Method:
    """The method with its defaults; what must be given is a text."""
    return make_method({"name": name, **required(name)})


def required(name: str) -> dict[str, object]:
    return {each.name: "some" for each in methods.get(name).options() if each.required}


def other_values(method: Method) -> dict[str, object]:
    """A value for each option that is not the default, and may be given."""
    values: dict[str, object] = {}
    for each in method.options():
        if each.kind in (str, str | None, Path | None) and not each.choices:
            values[each.name] = Path("cosine") if each.kind == Path | None else "cosine"
        elif each.choices:
            values[each.name] = next(choice for choice in each.choices if choice != each.default)
        elif isinstance(each.default, bool):
            values[each.name] = not each.default
        elif isinstance(each.default, tuple):
            values[each.name] = tuple(value / 2 for value in each.default)
        elif isinstance(each.default, float):
            values[each.name] = each.default / 2 or 0.5
        else:
            values[each.name] = (each.default or 0) + 2
    return values


@every_method
def test_its_spelling_makes_it_again(name: str) -> None:
    method = plain(name)
    assert method.spelling == write_call(name, required(name))
    other = make_method({"name": name, **other_values(method)})
    assert make_method(other.spelling) == other
    assert make_method({"name": name, **other.parameters()}) == other
    assert (other == method) == (not method.options())
    unrecorded = {each.name for each in method.options() if not each.recorded}
    assert not other.parameters().keys() & unrecorded
    assert hash(make_method(other.spelling)) == hash(other)


@every_method
def test_it_cannot_be_changed_and_travels(name: str) -> None:
    method = plain(name)
    for each in method.options():
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, each.name, getattr(method, each.name))
    other = make_method({"name": name, **other_values(method)})
    copy = pickle.loads(pickle.dumps(other))
    assert copy == other
    assert (copy.spelling, copy.balanced, copy.in_order) == (other.spelling, other.balanced, other.in_order)


@every_method
def test_it_tells_what_it_is(name: str) -> None:
    kind = methods.get(name)
    assert kind.about
    if kind.example:
        example = make_method(kind.example)
        assert type(example) is kind
        assert example.spelling != name


@every_method
def test_an_option_that_it_has_not_is_referred_to_the_nearest(name: str) -> None:
    for each in methods.get(name).options():
        with pytest.raises(InputError, match=f"method '{name.replace('+', '.')}' has no option '.*did you mean '"):
            make_method({"name": name, **required(name), f"{each.name}x": each.default})


@every_option
def test_it_is_explained_and_its_default_is_allowed(name: str, option: Option) -> None:
    assert option.help
    assert not option.help.endswith(".")
    assert option.required or option.check(option.default) == option.default


@every_option
def test_what_it_cannot_be_is_refused_by_its_name(name: str, option: Option) -> None:
    wrong: list[object] = [object(), float("nan")]
    for bound, beyond in ((option.least, -1), (option.above, 0), (option.most, 1)):
        if bound is not None:
            value = bound + beyond
            wrong.append([value] * len(option.default) if isinstance(option.default, tuple) else value)
    if option.choices:
        wrong.append("no such choice")
    for value in wrong:
        with pytest.raises(InputError, match=f"method '{name.replace('+', '.')}': {option.name}: expected "):
            make_method({"name": name, **required(name), option.name: value})
