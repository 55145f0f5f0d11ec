from __future__ import annotations

from pathlib import Path

import pytest

from everview.store.store import Store
from store import worlds


@pytest.fixture(params=[False, True], ids=["own files", "one file"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    monkeypatch.setattr(worlds, "together", request.param)
    return Store.create_or_open(tmp_path / "shop", created="2026-01-01T00:00:00Z")
