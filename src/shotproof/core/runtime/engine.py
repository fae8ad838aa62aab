"""The contract of an engine, which does one piece of work on many inputs, and the registered ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import ClassVar, Literal, TypeVar

from shotproof.core.options import Component
from shotproof.core.registry import Registry

Input = TypeVar("Input")
Output = TypeVar("Output")

Needs = Literal["core", "share", "device"]
"""What work takes of a machine: a core; a core and, where there are GPUs, a share of one; or a whole device, which is a
GPU with its part of the cores, or else all cores."""


class Engine(Component, ABC):
    """Where work is done: in processes of this machine, or on others.

    An engine sends `work` once to each worker, together with `carried_states()`, and inputs in blocks.
    """

    kind = "engine"
    remote: ClassVar[bool] = False  # whether work goes to other machines: then networks go along, to the devices there

    @property
    def sends_to(self) -> str | None:
        """The address of others to which its options have it send work: a stranger's file may not choose it."""
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
        """Do the work on each input.

        Args:
            work: A function or a method of an object; it may hold much data.
            inputs: Small ones.
            workers: How many processes at most; None lets the engine choose.
            chunk: How many inputs travel at a time.
            needs: What one input takes of a machine.

        Returns:
            The outputs in order of the inputs. Nothing is computed on after the generator is closed.

        Raises:
            ShotproofError: A worker died. An error of the work itself is raised as it is.
        """

    def shards(self, count: int) -> list[range]:
        """Into which ranges work is cut that takes a whole device: one here, several for each of many machines.

        Args:
            count: How many inputs there are, at least 1.

        Example:
            >>> engines.make("local").shards(600)
            [range(0, 600)]
        """
        return [range(count)]


engines: Registry[Engine] = Registry(
    "engine", {"local": "shotproof.core.runtime.local:LocalEngine", "ray": "shotproof.core.runtime.ray:RayEngine"}
)
