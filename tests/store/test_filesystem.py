"""What the folder of a store says about its files."""

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
    monkeypatch.setattr(filesystem, "LAST_LINE_BYTES", tail)
    (tmp_path / "file").write_bytes(before + line)
    whole = before + line
    expected = whole[whole.rfind(b"\n", 0, -1) + 1 :]
    assert resolve(tmp_path).last_line("file") == expected


def test_a_file_that_is_not_there_has_no_line(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        resolve(tmp_path).last_line("file")


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    folder = resolve(tmp_path)
    folder.make_folder("manifests")
    assert folder.create("manifests/1", b"old")
    folder.replace("manifests/1", b"new")
    assert (tmp_path / "manifests" / "1").read_bytes() == b"new"
    assert folder.names("manifests") == ["1"]


def test_a_file_is_not_created_before_what_it_waits_for(tmp_path: Path) -> None:
    folder = resolve(tmp_path)
    folder.make_folder("manifests")
    seen: list[bool] = []
    assert folder.create(
        "manifests/1", b"x", once=lambda: seen.append(folder.exists("manifests/1"))
    )
    assert seen == [False]

    def refuse() -> None:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        folder.create("manifests/2", b"x", once=refuse)
    assert folder.names("manifests") == ["1"]
