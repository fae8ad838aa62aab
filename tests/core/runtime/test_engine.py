from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import pytest

from shotproof.core.errors import InputError, UnknownName
from shotproof.core.runtime.engine import Engine, Needs, engines
from shotproof.core.runtime.local import LocalEngine
from shotproof.core.runtime.runtime import Runtime


class Backwards(Engine):
    """Engine that computes from the end, and returns the outputs in order."""

    def map(
        self, work: Callable[[Any], Any], inputs: Sequence[Any], workers: int | None, chunk: int, needs: Needs = "core"
    ) -> Generator[Any, None, None]:
        yield from reversed([work(value) for value in reversed(inputs)])


@pytest.fixture
def backwards() -> Iterator[str]:
    engines.register("backwards", Backwards)
    yield "backwards"
    engines.unregister("backwards")


def test_a_second_engine_is_one_registration(backwards: str) -> None:
    seen: list[int] = []
    assert list(Runtime(engine=backwards).map(lambda x: seen.append(x) or x, [1, 2, 3], title="looking")) == [1, 2, 3]
    assert seen == [3, 2, 1]
    assert list(Runtime(engine=Backwards()).map(abs, [-1], title="looking")) == [1]
    assert engines.names() == ["backwards", "local", "ray"]


def test_names_are_unique_and_known(backwards: str) -> None:
    with pytest.raises(InputError, match=r"engine 'local' is .*registered"):
        engines.register("local", Backwards)
    assert engines.make("local(cores=2)") == LocalEngine(cores=2)
    with pytest.raises(UnknownName, match="unknown engine 'lokal': did you mean 'local'"):
        engines.make("lokal")
