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
    return {option.name: "some" for option in methods.get(name).options() if option.required}


def other_values(method: Method) -> dict[str, object]:
    """A value for each option that is not the default, and may be given."""
    values: dict[str, object] = {}
    for option in method.options():
        if option.kind in (str, str | None, Path | None) and not option.choices:
            values[option.name] = Path("cosine") if option.kind == Path | None else "cosine"
        elif option.choices:
            values[option.name] = next(choice for choice in option.choices if choice != option.default)
        elif isinstance(option.default, bool):
            values[option.name] = not option.default
        elif isinstance(option.default, tuple):
            values[option.name] = tuple(value / 2 for value in option.default)
        elif isinstance(option.default, float):
            values[option.name] = option.default / 2 or 0.5
        else:
            values[option.name] = (option.default or 0) + 2
    return values


@every_method
def test_its_spelling_makes_it_again(name: str) -> None:
    method = plain(name)
    assert method.spelling == write_call(name, required(name))
    other = make_method({"name": name, **other_values(method)})
    assert make_method(other.spelling) == other
    assert make_method({"name": name, **other.parameters()}) == other
    assert (other == method) == (not method.options())
    unrecorded = {option.name for option in method.options() if not option.recorded}
    assert not other.parameters().keys() & unrecorded
    assert hash(make_method(other.spelling)) == hash(other)


@every_method
def test_it_cannot_be_changed_and_travels(name: str) -> None:
    method = plain(name)
    for option in method.options():
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, option.name, getattr(method, option.name))
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
    for option in methods.get(name).options():
        with pytest.raises(InputError, match=f"method '{name.replace('+', '.')}' has no option '.*did you mean '"):
            make_method({"name": name, **required(name), f"{option.name}x": option.default})


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
