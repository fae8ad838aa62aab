"""The page: figures, template, style and script lie beside the Python that fills them."""
