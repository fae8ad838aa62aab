"""PyTorch, imported on first use, so that commands that only name a method start without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
else:

    class _Torch:
        def __getattr__(self, name: str) -> Any:
            import torch

            return getattr(torch, name)

    torch = _Torch()
