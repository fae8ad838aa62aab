"""Custom methods: code in files and modules, functions, objects, and scikit-learn classifiers."""
