"""Methods: few-shot classifiers that learn from a support set and label a query set."""
