"""Methods: they learn from a support set and label a query set. One file each, one contract."""

from shotproof.methods.method import Method, make_method, methods

__all__ = ["Method", "make_method", "methods"]
