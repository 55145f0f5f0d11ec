"""How a script written by hand commits: Parquet files, synced, then a manifest renamed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def make_durable(folder: Path, epoch: int, written: Mapping[str, pa.Table]) -> dict[str, Path]:
    """Write the rows that an epoch adds to each relation; all are there when this returns."""
    files = {relation: folder / f"{epoch}-{relation}.parquet" for relation in written}
    for relation, rows in written.items():
        with open(files[relation], "wb") as file:
            pq.write_table(rows, file)
            file.flush()
            os.fsync(file.fileno())
    temporary = folder / "manifest.tmp"
    with open(temporary, "w", encoding="utf-8") as manifest:
        json.dump({"epoch": epoch, "files": {n: file.name for n, file in files.items()}}, manifest)
        manifest.flush()
        os.fsync(manifest.fileno())
    os.rename(temporary, folder / f"{epoch}.json")
    _sync(folder)
    return files


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
