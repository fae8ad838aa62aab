"""Methods: they learn from a support set and label a query set. One file each, one contract."""
