from pathlib import Path

import pytest

from shotproof.core.runtime.cache import default_cache


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOTPROOF_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache() == Path.home() / ".cache" / "shotproof"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache() == Path("/xdg/shotproof")
    monkeypatch.setenv("SHOTPROOF_CACHE", "/mine")
    assert default_cache() == Path("/mine")
