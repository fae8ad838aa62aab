"""Reports as HTML pages: figures, templates, styles and scripts are next to the Python that fills them."""
