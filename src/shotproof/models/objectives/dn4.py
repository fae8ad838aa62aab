"""DN4: from each location of the query to the nearest descriptors of the class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from shotproof.core.options import option
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective
from shotproof.models.scoring.local_maps import ClassDescriptors, descriptors, unit
from shotproof.models.scoring.nearest_descriptors import nearest_descriptor_scores


@dataclass(frozen=True)
class Dn4(TaskObjective):
    """Cross-entropy of the sums, over a query's locations, of the k largest cosines to the class's descriptors.

    The paper's maps are of 21 x 21 locations: `conv64f(pools=2, slope=0.2)` at 84 pixels.
    """

    about = "tasks: nearest local descriptors, image to class"
    paper = "Li et al., Revisiting Local Descriptor based Image-to-Class Measure for Few-shot Learning, 2019"
    example = "dn4(k=1)"
    needs = "maps"
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "adam",
        "lr": 1e-3,
        "schedule": "step",
        "milestones": (50,),
        "decay": 0.5,
        "tasks_per_update": 1,
    }

    k: int = option(3, "nearest descriptors of each class that count", least=1)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The sums of the largest cosines."""
        classes = ClassDescriptors.of(unit(descriptors(support, support.dtype)), labels, way)
        return nearest_descriptor_scores(classes, unit(descriptors(query, query.dtype)), self.k)
