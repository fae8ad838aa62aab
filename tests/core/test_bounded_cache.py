from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from shotproof.core.bounded_cache import BoundedCache


def test_the_least_recently_used_values_are_dropped_first() -> None:
    cache: BoundedCache[str, str] = BoundedCache(6, len)
    for key in "abc":
        cache.get(key, lambda key=key: 2 * key)  # type: ignore[misc]
    assert cache.get("a", lambda: "new") == "aa"
    cache.get("d", lambda: "dd")
    assert cache.nbytes == 6
    assert cache.get("a", lambda: "new") == "aa"
    assert cache.get("b", lambda: "bbb") == "bbb"
    assert cache.nbytes <= 6


def test_what_is_larger_than_the_cache_is_returned_and_not_kept() -> None:
    cache: BoundedCache[str, str] = BoundedCache(3, len)
    cache.get("small", lambda: "s")
    assert cache.get("large", lambda: "large") == "large"
    assert cache.get("large", lambda: "again") == "again"
    assert cache.get("small", lambda: "t") == "s"


def test_threads_share_a_cache() -> None:
    cache: BoundedCache[int, bytes] = BoundedCache(500, len)
    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda number: cache.get(number % 37, lambda: bytes(number % 37)), range(4_000)))
    assert [len(value) for value in values] == [number % 37 for number in range(4_000)]
    assert cache.nbytes <= 500
