"""Cache in memory that is bounded by its bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Values by key, of which the least recently used are dropped once all together are too large.

    Example:
        >>> cache = BoundedCache(8, len)
        >>> cache.get("a", lambda: "12345"), cache.get("a", lambda: "made once")
        ('12345', '12345')
        >>> cache.get("b", lambda: "6789"), cache.nbytes
        ('6789', 4)
    """

    def __init__(self, most_bytes: int, size: Callable[[Value], int]) -> None:
        self._most_bytes = most_bytes
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()
        self.nbytes = 0

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key; made if it is not in the cache. Larger values than all may be are not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            if key not in self._values and self._size(value) <= self._most_bytes:
                self._values[key] = value
                self.nbytes += self._size(value)
                while self.nbytes > self._most_bytes:
                    _, dropped = self._values.popitem(last=False)
                    self.nbytes -= self._size(dropped)
        return value
