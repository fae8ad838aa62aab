"""The page: figures, template, style and script are next to the Python that fills them."""
