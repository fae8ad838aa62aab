from __future__ import annotations

import torch

from shotproof.functional.task_rows import eigh_on_cores, main_directions


def cosines(tasks: int = 5, rows: int = 60, d: int = 80) -> torch.Tensor:
    drawn = torch.randn(tasks, rows, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    unit = torch.nn.functional.normalize(drawn, dim=-1)
    return unit @ unit.mT


def test_the_cores_find_the_same_eigenvectors() -> None:
    given = cosines()
    values, vectors = eigh_on_cores(given)
    expected, expected_vectors = torch.linalg.eigh(given)
    torch.testing.assert_close(values, expected)
    torch.testing.assert_close(vectors, expected_vectors)


def test_main_directions_are_those_of_the_singular_value_decomposition() -> None:
    drawn = torch.randn(1, 60, 80, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = torch.nn.functional.normalize(drawn, dim=-1)[0]
    expected = rows @ torch.linalg.svd(rows, full_matrices=False).Vh[:40].T
    expected = torch.nn.functional.normalize(expected - expected.mean(0), dim=-1)
    found = main_directions((rows @ rows.T)[None])[0]
    torch.testing.assert_close(found @ found.T, expected @ expected.T)
