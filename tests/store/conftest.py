from __future__ import annotations

from pathlib import Path

import pytest

from everview.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create_or_open(tmp_path / "shop", created="2026-01-01T00:00:00Z")
