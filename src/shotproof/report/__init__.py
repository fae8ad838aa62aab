"""The page: figures, template, style and script lie beside the Python that fills them."""

from shotproof.report.page import write_report

__all__ = ["write_report"]
