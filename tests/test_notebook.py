"""The example notebook runs: from a folder to a data frame and a figure."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

NOTEBOOK = Path(__file__).parents[1] / "examples" / "from-a-folder.ipynb"


def test_the_notebook_goes_from_a_folder_to_a_frame_and_a_figure_in_15_lines(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(bool(line.strip()) for cell in cells for line in cell.source.splitlines()) <= 15
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    catalog, gaps, figure = (cells[place].outputs[-1]["data"] for place in (0, -2, -1))
    assert "320 items of 8 classes" in catalog["text/plain"]
    assert "<table" in gaps["text/html"]
    assert "image/png" in figure
