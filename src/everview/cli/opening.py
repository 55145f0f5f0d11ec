"""How a command opens a store: to read it beside a writer, or to write it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import click

import everview
from everview.engine.protocol import Engine
from everview.errors import Span, UserError
from everview.pipeline.database import Database
from everview.plan.types import Schema, Type
from everview.store.store import Store

_NO_STORE = "S004"


@contextmanager
def reading(location: str) -> Iterator[Database]:
    """The database at `location`, which must be there; Spark starts only if it is needed."""
    store = Store.open_existing(location)
    with Database(store, cast(Engine, LazySpark()), None, read_only=True) as db:
        yield db


@contextmanager
def writing(location: str) -> Iterator[Database]:
    """The database at `location`, made when there is none; says what came of it on stderr."""
    with _create_or_open(location) as db:
        before = db.epoch
        try:
            yield db
        finally:
            if db.epoch != before:
                click.echo(f"epoch {db.epoch}", err=True)


def _create_or_open(location: str) -> Database:
    try:
        return everview.open(location, create=False)
    except UserError as problem:
        if problem.code != _NO_STORE:
            raise
    db = everview.open(location)
    click.echo(f"created the store {location}", err=True)
    return db


class LazySpark:
    """The Spark engine, started when something is first asked of it.

    A catalog holds `analyze` from the beginning and calls it rarely, so it is a method here.
    """

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def analyze(self, scalar: str, schema: Schema, span: Span | None) -> Type:
        """The type of a scalar by Spark's rules."""
        return self._started().analyze(scalar, schema, span)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._started(), name)

    def close(self) -> None:
        """Close the engine if it was started."""
        if self._engine is not None:
            self._engine.close()

    def _started(self) -> Engine:
        if self._engine is None:
            from everview.engine.spark.engine import SparkEngine

            self._engine = SparkEngine()
        return self._engine
