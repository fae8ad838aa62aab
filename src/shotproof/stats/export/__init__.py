"""A comparison for other programs and for paper: tidy tables, LaTeX, HTML, figures."""
