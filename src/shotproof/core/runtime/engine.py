"""Base class and registry of engines, which apply one function to many inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import ClassVar, Literal, TypeVar

from shotproof.core.options import Component
from shotproof.core.registry import Registry

Input = TypeVar("Input")
Output = TypeVar("Output")

Needs = Literal["core", "share", "device"]
"""Resources that one input needs: a core; a core and a share of a GPU, if there are GPUs; or a whole device, which is a
GPU with its part of the cores, or all cores if there is no GPU."""


class Engine(Component, ABC):
    """Engine that runs work in processes of this machine, or on other machines.

    An engine sends `work` once to each worker, together with `shared_states()`, and the inputs in blocks.
    """

    kind = "engine"
    remote: ClassVar[bool] = False  # whether work is sent to other machines, with networks, to the devices there

    @property
    def sends_to(self) -> str | None:
        """Return the remote address this engine sends work to, if any.

        An experiment file may set it only with consent.
        """
        return None

    @abstractmethod
    def map(
        self,
        work: Callable[[Input], Output],
        inputs: Sequence[Input],
        workers: int | None,
        chunk: int,
        needs: Needs = "core",
    ) -> Generator[Output, None, None]:
        """Apply a function to each input.

        Args:
            work: a function, or a method of an object; the object may be large
            inputs: the inputs, which should be small
            workers: the maximum number of processes; None lets the engine choose
            chunk: the number of inputs sent at a time
            needs: the resources that one input needs

        Returns:
            The outputs, in the order of the inputs. Computation stops when the generator is closed.

        Raises:
            ShotproofError: a worker died. An error raised by the function itself is raised unchanged.
        """

    def shards(self, count: int) -> list[range]:
        """Split work that needs a whole device into ranges: one on this machine, several per device of a cluster.

        Args:
            count: the number of inputs, at least 1

        Example:
            >>> engines.make("local").shards(600)
            [range(0, 600)]
        """
        return [range(count)]


engines: Registry[Engine] = Registry(
    "engine", {"local": "shotproof.core.runtime.local:LocalEngine", "ray": "shotproof.core.runtime.ray:RayEngine"}
)
