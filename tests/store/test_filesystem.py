"""What a place tells of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.store import filesystem
from everview.store.filesystem import resolve


@pytest.mark.parametrize("tail", [1, 4, 1 << 16])
@pytest.mark.parametrize("before", [b"", b"\n", b"rows\n", b"\x00\n\xff" * 50 + b"\n"])
@pytest.mark.parametrize("line", [b"", b"\n", b"x", b"x\n", b"a long line" * 20 + b"\n"])
def test_of_a_file_the_last_line_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: int, before: bytes, line: bytes
) -> None:
    monkeypatch.setattr(filesystem, "_TAIL", tail)
    (tmp_path / "file").write_bytes(before + line)
    whole = before + line
    expected = whole[whole.rfind(b"\n", 0, -1) + 1 :]
    assert resolve(tmp_path).last_line("file") == expected


def test_a_file_that_is_not_there_has_no_line(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        resolve(tmp_path).last_line("file")
