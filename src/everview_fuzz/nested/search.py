"""Searches for nested views that differ from what CPython makes of the same rows."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Literal, TypeAlias

import everview
from everview.database.database import Database
from everview.database.transaction import Transaction
from everview.errors import UserError
from everview_fuzz.nested.collections import Call, Schema, quoted, random_call
from everview_fuzz.nested.comprehensions import (
    AGGREGATES,
    DECLARED,
    MISSING,
    TABLES,
    Generator,
    Row,
    answered,
    canonical,
    defined,
    expected,
    given,
    random_row,
    record,
)
from everview_fuzz.nested.queries import Queries, Value, grouped
from everview_fuzz.temporary_folder import temporary_folder

Rows: TypeAlias = dict[str, list[tuple[Any, ...]]]
Engine: TypeAlias = Literal["duckdb", "spark", "both"]
LEVELS_MAX, TURNS = 3, 4
MODES: tuple[Literal["auto", "shredded", "inline"], ...] = ("auto", "auto", "shredded", "inline")
"""How the collections of a view are kept."""
SPARK_EVERY = 8
"""Where both engines are searched, one case in this many runs on Spark, which takes longer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that fails: what leads to it, as Python, and the reason."""

    seed: int
    number: int
    engine: str
    script: tuple[str, ...]
    reason: str

    @property
    def text(self) -> str:
        """The failure as Python: comments that say what it shows, then what leads to it."""
        again = f"everview fuzz --nested --engine {self.engine} --seed {self.seed}"
        return "\n".join(
            (
                f"# seed {self.seed}, case {self.number}: {self.reason}".replace("\n", "\n# "),
                f"# find it again:  {again} --case {self.number}",
                "",
                *self.script,
            )
        )


@dataclass(slots=True)
class Report:
    """What was searched and what was found."""

    cases: int = 0
    views: int = 0
    transactions: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The counts of a search."""
        return (
            f"{self.cases} cases, {self.views} nested views, {self.transactions} transactions in "
            f"{self.seconds:.0f} s\nviews refused: {self.refused}\nfailures: {len(self.findings)}"
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """What to search: where, how long, from which numbers."""

    engine: Engine
    seed: int
    seconds: float = 60.0
    cases: int | None = None
    first: int = 0
    keep_going: bool = False

    def engine_of(self, number: int) -> str:
        """The engine that a case runs on."""
        on_spark = self.engine == "spark" or number % SPARK_EVERY == SPARK_EVERY - 1
        return "spark" if on_spark and self.engine != "duckdb" else "duckdb"


def search(settings: Settings, progress: Callable[[Report], None] = lambda _: None) -> Report:
    """Run cases until the time or the number is reached, or something is found."""
    report, began = Report(), time.monotonic()
    for number in count(settings.first):
        over = time.monotonic() - began >= settings.seconds
        if over or report.cases == settings.cases:
            break
        found = run_number(settings.seed, number, settings.engine_of(number), report)
        report.seconds = time.monotonic() - began
        report.findings += [] if found is None else [found]
        progress(report)
        if found is not None and not settings.keep_going:
            break
    return report


def run_number(seed: int, number: int, engine: str, report: Report) -> Finding | None:
    """Run one case in a folder of its own, compared after each transaction."""
    rng, script = random.Random(f"{seed} {number}"), list[str]()
    began = report.transactions
    report.cases += 1
    with temporary_folder() as folder, everview.open(str(folder / "store"), engine=engine) as db:
        case = flat_tables if number % 3 == 0 else collections
        try:
            for problem in case(db, rng, script, report):
                return Finding(seed, number, engine, tuple(script), problem)
        except UserError as problem:
            report.refused += 1
            if report.transactions > began:
                why = f"a transaction is refused: {problem.problem}"
                return Finding(seed, number, engine, tuple(script), why)
        except Exception:
            return Finding(seed, number, engine, tuple(script), traceback.format_exc(limit=-4))
    return None


def flat_tables(
    db: Database, rng: random.Random, script: list[str], report: Report
) -> Iterator[str]:
    """Views over views over flat tables: what differs, after each transaction."""
    functions = Generator(rng).functions(rng.randint(1, LEVELS_MAX))
    script += [f'db.sql("{DECLARED}")', *functions]
    db.sql(DECLARED)
    for level, text in enumerate(functions):
        under = {"v": f"v{level - 1}"} if level else {}
        mode = rng.choice(MODES)
        script.append(f"# v{level} is kept as {mode!r}")
        db.nested(defined(text), name=f"v{level}", tables=under, nested=mode)
        report.views += 1
    tables: Rows = {name: [] for name in TABLES}
    for turn in range(TURNS):
        come, gone = _change(tables, rng, everything=turn == TURNS - 2)
        script += [f"# comes: {come}", f"# goes:  {gone}"]
        report.transactions += 1
        with db.transaction() as tx:
            for name in tables:
                if come[name]:
                    tx.insert(name, come[name])
                if gone[name]:
                    tx.delete(name, gone[name])
        for level, text in enumerate(functions):
            wanted = expected(functions[0], tables, None, *functions[1 : level + 1])
            found = answered(db.read(f"v{level}").rows(), text)
            if found != wanted:
                yield f"v{level} is {found}, and CPython makes {wanted}"
    yield from _audited(db)


def collections(
    db: Database, rng: random.Random, script: list[str], report: Report
) -> Iterator[str]:
    """A table with collections under functions and SQL: what differs, after each transaction."""
    schema = Schema(rng)
    db.sql(schema.declared)
    script.append(f"db.sql({schema.declared!r})")
    views = _views_of(schema, db, script, report)
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for _ in range(TURNS):
        report.transactions += 1
        with db.transaction() as tx:
            for _ in range(rng.randint(1, 3)):
                yield from _changed(tx, schema, rows, script)
        script.append("# end of the transaction")
        values: dict[str, list[Any]] = {"T": [*map(record, rows.values())]}
        wanted = canonical(values["T"])
        found = canonical(db.read(schema.name).rows())
        if found != wanted:
            yield f"{schema.name} is {found}, and CPython makes {wanted}"
        for name, text, columns in views:
            function = defined(text, **AROUND)
            parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
            made = function(*(values[each] for each in parameters))
            if columns:
                values[name] = [Row(**dict(zip(columns, row, strict=True))) for row in made]
            wanted, found = canonical(made), answered(db.read(name).rows(), text)
            if found != wanted:
                yield f"{name} is {found}, and CPython makes {wanted}"
    yield from _audited(db)


AROUND = {"Row": Row, "MISSING": MISSING, "grouped": grouped, **AGGREGATES}


def _views_of(
    schema: Schema, db: Database, script: list[str], report: Report
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Views by comprehensions and by SQL: the name, the meaning and the columns of each."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    texts = [f"def query(T):\n    return {each}\n" for each in schema.functions()]
    texts.append(Generator(schema.rng, ("T",), schema.world).function())
    for text in texts:
        name = f"f{len(found)}"
        script += [text, f"db.nested(query, name={name!r}, tables={{'T': {schema.name!r}}})"]
        tables = {"T": schema.name}
        if _is_taken(partial(db.nested, defined(text), name=name, tables=tables), report):
            found.append((name, text, ()))
    queries = Queries(schema.rng)
    queries.add("T", schema.name, schema.columns)
    for _ in range(3):
        name, query = f"q{len(found)}", queries.query()
        mode = schema.rng.choice(("", "", *(f" WITH (nested = '{each}')" for each in MODES[2:])))
        text = f"CREATE VIEW {name}{mode} AS {query.sql}"
        script += [f"# {query.python}".replace("\n", "\n# "), f"db.sql({text!r})"]
        if _is_taken(partial(db.sql, text), report):
            found.append((name, query.python, (*query.columns,)))
            queries.add(name, name, query.columns)
    return found


def _is_taken(declare: Callable[[], object], report: Report) -> bool:
    """Whether a view is declared, and not refused."""
    try:
        declare()
    except UserError:
        report.refused += 1
        return False
    report.views += 1
    return True


def _changed(
    tx: Transaction,
    schema: Schema,
    rows: dict[tuple[Any, ...], dict[str, Any]],
    script: list[str],
) -> Iterator[str]:
    """Make one change, and say what is wrong with the way it is answered."""
    call = random_statement(schema, rows) if schema.rng.random() < 0.2 else None
    call = call or random_call(schema, rows)
    script.append(call.text)
    try:
        getattr(tx, call.method)(*call.args, **call.options)
    except UserError as problem:
        if problem.code != call.error:
            raise
        return
    if call.error:
        yield f"{call.text} is not refused"


def random_statement(schema: Schema, rows: dict[tuple[Any, ...], dict[str, Any]]) -> Call:
    """A DELETE or UPDATE that may look into collections, made in the rows too."""
    queries, scope = Queries(schema.rng), [Value("t", "t", schema.columns)]
    test, table, kind = queries.condition(scope), quoted(schema.name), schema.rng.random()
    holds = defined(f"def query(t):\n    return {test.python}\n", **AROUND)
    chosen = {key: record(row) for key, row in rows.items() if holds(record(row))}
    if kind < 0.4:
        for key in chosen:
            del rows[key]
        return Call("sql", (f"DELETE FROM {table} AS t WHERE {test.sql}",))
    name, value = "v", Value("'p'", "'p'", "STRING")
    if kind < 0.8:
        name = schema.rng.choice([*schema.bags])
        value = queries.collection(scope, schema.bags[name])
    made = defined(f"def query(t):\n    return {value.python}\n", **AROUND)
    for key, row in chosen.items():
        rows[key] = {**rows[key], name: given(made(row))}
    return Call("sql", (f"UPDATE {table} AS t SET {quoted(name)} = {value.sql} WHERE {test.sql}",))


def _audited(db: Database) -> Iterator[str]:
    for each in db.audit():
        if not each.ok:
            yield f"{each.view} differs from its query"


def _change(tables: Rows, rng: random.Random, *, everything: bool) -> tuple[Rows, Rows]:
    """Rows that come and rows that go; a table loses all of them now and then."""
    come: Rows = {}
    gone: Rows = {}
    for name, rows in tables.items():
        gone[name] = [row for row in rows if everything or rng.random() < 0.4]
        come[name] = [random_row(rng, name) for _ in range(rng.randint(0, 3))]
        for row in gone[name]:
            rows.remove(row)
        rows += come[name]
    return come, gone
