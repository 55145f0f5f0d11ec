"""What the examples share: a database that passes, its data, and how rows are shown."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import everview as ev
from everview.database.database import Database

DATA = Path(__file__).parent / "data"


@contextmanager
def database(engine: str) -> Iterator[Database]:
    """A database in a folder that is removed afterwards."""
    with TemporaryDirectory() as folder, ev.open(f"{folder}/store", engine=engine) as db:
        yield db


def program(example: str) -> str:
    """The program or statements of an example."""
    (found,) = (DATA / example).glob("program.*")
    return found.read_text(encoding="utf-8")


def facts(example: str, relation: str) -> list[tuple[Any, ...]]:
    """The rows of a file of facts: whole numbers as numbers, the rest as text."""
    with (DATA / example / f"{relation}.facts").open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t")
        return [tuple(int(cell) if cell.isdigit() else cell for cell in row) for row in rows]


def show(title: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Print rows in order, one a line."""
    print(title)
    for row in sorted(rows):
        print("  " + "  ".join(map(str, row)))


def proved(db: Database) -> None:
    """Print whether every view equals its rules, evaluated from scratch."""
    print("every view equals its rules:", db.audit().ok)


def run(main: Callable[[str], None]) -> None:
    """Run an example from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=("spark", "duckdb"), default="duckdb")
    main(parser.parse_args().engine)
