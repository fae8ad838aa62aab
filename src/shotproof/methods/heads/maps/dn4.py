"""DN4: from each location of the query to the nearest descriptors of the class."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import GramBlocks, GramMethod, unit_rows
from shotproof.methods.shared.map_method import MapMethod
from shotproof.models.scoring.local_maps import ClassDescriptors, descriptors, rows_of_classes, unit
from shotproof.models.scoring.nearest_descriptors import largest, nearest_descriptor_scores

PAPER = "Li et al., Revisiting Local Descriptor based Image-to-Class Measure for Few-shot Learning, 2019"


@dataclass(frozen=True)
class Dn4(MapMethod):
    """Score: the sum over the query's locations of the k largest cosines to the class's descriptors.

    Where the smallest class of a task has fewer than k descriptors, k is their number.
    """

    about = "DN4: nearest local descriptors, image to class"
    paper = PAPER
    example = "dn4(k=1)"

    k: int = option(3, "nearest descriptors of each class that count", least=1)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The largest cosines of descriptors."""
        classes = ClassDescriptors.of(unit(descriptors(support)), labels, way)
        return nearest_descriptor_scores(classes, unit(descriptors(query)), self.k)


@dataclass(frozen=True)
class GlobalDn4(GramMethod):
    """Score: the sum of the k largest cosines to the class's support rows, k at most the shots of the smallest class.

    DN4's rule on one vector per item, as in SpurAudio's comparison of heads; with one shot, the nearest neighbor.
    """

    about = "DN4's rule on whole items: the k largest cosines of each class"
    paper = PAPER
    example = "dn4-global(k=1)"

    k: int = option(3, "nearest support rows of each class that count", least=1)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """The cosines by class, then the largest."""
        _, cosines = unit_rows(gram)
        index, present = rows_of_classes(labels, way)
        columns = index.flatten(1).unsqueeze(1).expand(-1, cosines.shape[1], -1)
        by_class = cosines.gather(-1, columns).view(*cosines.shape[:2], *index.shape[1:])
        return largest(by_class, present.unsqueeze(1), self.k)
