"""The database a user opens: the public methods, each checked and handed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from os import PathLike
from types import ModuleType, TracebackType
from typing import Any, Literal, Self, overload

from everview import arguments
from everview.database import languages, reading
from everview.database import nested as nested_views
from everview.database.audit_report import Audit, audit_all, audit_whole
from everview.database.begin import begin, change_alone
from everview.database.catalog.catalog import Catalog
from everview.database.change_feed import ChangePair
from everview.database.commit import install_plan
from everview.database.execute import execute_all, explain
from everview.database.handle import Handle
from everview.database.introspect.history import MAX_EPOCHS, Entry, history
from everview.database.introspect.status import (
    MemoryStatus,
    RelationStatus,
    memory_status,
    status,
)
from everview.database.python_functions import checked_function
from everview.database.run_text import run_inside, run_text
from everview.database.transaction import Transaction
from everview.database.upkeep import compact_all, retain
from everview.lang.sql.parse.statements import NESTED_MODES, Parameters, Statement
from everview.plan.nodes import Plan, Source
from everview.runtime.protocol import Engine
from everview.runtime.results import Result
from everview.store.store import Store

GRACE_SECONDS, GRACE_MAX_SECONDS = 3_600, 10**9
"""How long an epoch that is no longer the newest stays readable: by default, and at the most."""


class Database:
    """Tables and views that stay fresh, in one store. Threads may share it.

    As a context manager it is closed at the end:

        with ev.open("shop", engine="duckdb") as shop:
            print(shop.epoch)
    """

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        """What the methods work on; for Everview's own use."""

    @property
    def store(self) -> Store:
        """Where it lies; a database that is closed has none."""
        return self.handle.store

    @property
    def engine(self) -> Engine:
        """What computes; a database that is closed has none."""
        return self.handle.engine

    @property
    def epoch(self) -> int:
        """The number of the newest epoch; transactions and declarations each make one."""
        return self.handle.store.latest().epoch

    @property
    def catalog(self) -> Catalog:
        """What is declared at the newest epoch."""
        return self.handle.catalog

    def close(self) -> None:
        """Release the store and the engine, once the running write is done.

        To close twice does nothing; any other use of a closed database is refused.
        """
        self.handle.close()

    def __enter__(self) -> Self:
        self.handle.must_be_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Reading

    def read(self, name: str, *, epoch: int | None = None, nested: bool = True) -> Result:
        """The rows of a table or view, now or at an earlier epoch.

        A nested view is rebuilt as it is read: its collections are lists, in ascending order. With
        `nested=False` they are the labels under which `changes` shows their elements.

            db.read("revenue").rows()
            db.read("orders", epoch=1).to_pandas()
        """
        arguments.text("name", name)
        if epoch is not None:
            epoch = arguments.count("epoch", epoch)
        return reading.read(self.handle, name, epoch, nested=arguments.flag("nested", nested))

    @overload
    def changes(
        self, name: str, *, after: int = 0, pair: Literal[False] = False, path: str | None = None
    ) -> Result: ...

    @overload
    def changes(
        self, name: str, *, after: int = 0, pair: Literal[True], path: str | None = None
    ) -> ChangePair: ...

    def changes(
        self, name: str, *, after: int = 0, pair: bool = False, path: str | None = None
    ) -> Result | ChangePair:
        """The change feed of a table or view: rows with `_w` and `_epoch`, oldest first.

        `_w` is what was added to the weight of the row: positive for rows that came, negative for
        rows that went. `_epoch` is the epoch that did it. Remember the newest epoch you have seen,
        and pass it as `after` the next time. With a `path` it is the feed of a collection inside a
        nested view: labels and elements.

            seen = db.epoch
            db.sql("DELETE FROM orders WHERE id = 1")
            for *row, weight, epoch in db.changes("revenue", after=seen).rows():
                print(row, weight, epoch)

        With `pair=True` it is the change as a whole, as two relations: the rows that went, and
        those that came since then. A row that came and went is in neither.

            deleted, inserted = db.changes("revenue", after=0, pair=True)
        """
        arguments.text("name", name)
        after = arguments.count("after", after)
        if path is not None:
            arguments.text("path", path)
        if arguments.flag("pair", pair):
            return reading.change_pair(self.handle, name, after, path)
        return reading.changes(self.handle, name, after, path)

    # Changing

    def transaction(self, *, id: str | tuple[str, int] | None = None) -> Transaction:  # noqa: A002
        """Begin a transaction; as a context manager it commits, or rolls back on an error.

        For example:

            with db.transaction() as tx:
                tx.insert("orders", [(4, 7, "2.00")])
                tx.delete("orders", [(1, 7, "10.00")])

        With an `id` it can be sent again: if it was committed before, it is `repeated` and changes
        nothing. The id is the name of a writer with a number that ascends, of which the last one
        is kept for ever, or a text, which is kept for seven days at least.

            with db.transaction(id=("stream", 42)) as tx:
                tx.insert("orders", [(5, 8, "3.10")])
            print(tx.repeated)
        """
        wanted = None if id is None else arguments.transaction_id(id)
        return begin(self.handle, wanted, run_inside(self.handle))

    def insert(self, table: str, rows: Any) -> int:
        """Insert rows in a transaction of their own, and return the new epoch.

        Rows are tuples, dicts, pandas, Arrow or Polars frames, an iterator of Arrow batches, a
        Spark DataFrame, or a `pathlib.Path` of files.

            db.insert("orders", [(4, 7, "2.00")])
            db.insert("orders", [{"id": 5, "customer": 8, "amount": "3.10"}])
        """
        return change_alone(self.handle, lambda tx: tx.insert(table, rows))

    def delete(self, table: str, rows: Any = None, *, keys: Any = None) -> int:
        """Delete rows in a transaction of their own, and return the new epoch.

        Rows are given whole, or by their primary keys, and each must be there; `DELETE` in SQL
        deletes by a condition.

            db.delete("orders", [(1, 7, "10.00")])
            db.delete("orders", keys=[2, 3])
        """
        return change_alone(self.handle, lambda tx: tx.delete(table, rows, keys=keys))

    def upsert(self, table: str, rows: Any) -> int:
        """Insert rows or replace those with the same primary key, and return the new epoch.

        For example:

            db.upsert("orders", [(1, 7, "12.00")])
        """
        return change_alone(self.handle, lambda tx: tx.upsert(table, rows))

    def update(
        self,
        table: str,
        rows: Any = None,
        *,
        keys: Any = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> int:
        """Change some columns of rows named by their primary keys, and return the new epoch.

        `keys` with what to `set`, or rows with the key and the columns to be changed; `UPDATE` in
        SQL changes rows by a condition.

            db.update("orders", keys=[2, 3], set={"amount": "5.00"})
            db.update("orders", [{"id": 2, "amount": "6.00"}])
        """
        return change_alone(self.handle, lambda tx: tx.update(table, rows, keys=keys, set=set))

    def compact(self) -> int:
        """Add up the segments of every relation now, and return the new epoch.

        Answers, feeds and older epochs stay the same. It happens by itself as relations grow.
        """
        self.handle.must_write()
        return compact_all(self.handle)

    def retain(self, epochs: int, *, grace: int = GRACE_SECONDS) -> list[str]:
        """Keep the newest `epochs` epochs, and delete the files that only older ones need.

        An epoch that was the newest less than `grace` seconds ago is kept for those who read it.
        Returns the paths that were deleted.

            db.retain(100)
        """
        self.handle.must_write()
        kept = arguments.count("epochs", epochs, least=1)
        readers = timedelta(seconds=min(arguments.count("grace", grace), GRACE_MAX_SECONDS))
        return retain(self.handle, kept, readers)

    # Declaring and running SQL

    def sql(
        self, text: str, params: Parameters | None = None, *, dialect: str | None = None
    ) -> Result | None:
        """Run one or more statements, and return the rows of the last one, if it has any.

        CREATEs that stand next to each other are one step, and so are DROPs: all are made, in one
        epoch, or none. `params` are values for `?`, in a list, or for `:name`, in a dict. `dialect`
        reads a text of another database, such as `"postgres"`. INSERT, UPDATE, DELETE and MERGE
        say how many rows they changed.

            db.sql("CREATE VIEW big AS SELECT id FROM orders WHERE amount > 5")
            db.sql("UPDATE orders SET amount = ? WHERE id = ?", [6, 3]).changed
            db.sql("SELECT COUNT(*) AS n FROM big").show()
        """
        return run_text(self.handle, self.catalog, text, params, dialect)

    def run(self, statements: Iterable[Statement]) -> Iterator[Result | None]:
        """Run parsed statements in order; the rows of each step, as it is done."""
        return execute_all(self.handle, statements)

    def datalog(self, text: str, facts: Mapping[str, Any] | None = None) -> tuple[str, ...]:
        """Declare the relations of a Datalog program, and return the names of its outputs.

        Relations with facts become tables, those with rules become views. `facts` are rows for
        each relation, beside those in the text.

            rules = '''
                .decl edge(x: number, y: number)  .input edge
                .decl reach(x: number, y: number)  .output reach
                reach(x, y) :- edge(x, y).
                reach(x, z) :- reach(x, y), edge(y, z).
            '''
            db.datalog(rules, {"edge": [(1, 2), (2, 3)]})
            db.read("reach").rows()
        """
        return languages.declare_datalog(self.handle, text, facts)

    def agca(self, text: str) -> tuple[str, ...]:
        """Declare the views of an AGCA text, and return their names.

        A view has a column for each group variable, and the column `value`. It has a row for each
        group that has bindings; without group variables it has one row.

            db.agca('''
                spent[customer] := Sum(orders(_, customer, amount) * amount);
                total[] := Sum(orders(_, _, amount) * amount)
            ''')
            db.read("spent").rows()
        """
        return languages.declare_agca(self.handle, text)

    def relalg(self, name: str, text: str) -> None:
        """Declare a view by an expression of relational algebra on sets.

        There are σ[condition], Π[columns], ×, ∪, ∩, − and ⋈, or in words `select`, `project`,
        `times`, `union`, `intersect`, `minus` and `join`. Tables are read as sets of rows.

            db.relalg("large", "Π[customer](σ[amount > 5](orders))")
            db.relalg("others", "project[customer](orders) minus large")
        """
        languages.declare_relalg(self.handle, name, text)

    def view(self, name: str, plan: Plan) -> None:
        """Declare a view by a plan that was built in Python, over what `source` gives.

        For example:

            from everview.plan.build import filter_
            db.view("large", filter_(db.source("orders"), "amount > 5"))
        """
        arguments.text("name", name)
        self.handle.must_declare()

        self.handle.exclusively(lambda: install_plan(self.handle, name, plan))

    def nested(
        self,
        query: Callable[..., Any] | str,
        *,
        name: str | None = None,
        tables: Mapping[str, str] | None = None,
        replace: bool = False,
        nested: Literal["auto", "shredded", "inline"] = "auto",
    ) -> Any:
        """Declare a nested view by a function of comprehensions, and return the function.

        The function is read and never run on data. Its parameters are the tables and views that it
        reads, or `tables` names those. The view has the name of the function unless a `name` is
        given; with `replace=True` a nested view of that name is replaced. It is written as a
        decorator, `@db.nested`. A text is read as a query of the nested relational calculus:

            db.nested("for o in orders where o.amount > 5 union sng(o.id)", name="large_ids")

        Collections are stored element by element; those that read no table are arrays in their
        rows. With `nested="shredded"` all are stored so, with `nested="inline"` none.
        """
        given = {} if tables is None else arguments.mapping("tables", tables)
        self.handle.must_declare()
        replaces = arguments.flag("replace", replace)
        mode = arguments.one_of("nested", nested, NESTED_MODES)
        nested_views.declare(self.handle, query, name, given, replaces=replaces, mode=mode)
        return query

    def load_module(self, module: str | PathLike[str] | ModuleType) -> tuple[str, ...]:
        """Declare a program of nested views, a Python module, and return their names.

        The functions that are marked with `@ev.nested` are views; their parameters are tables and
        views, those of the module too. All of them are declared in one epoch, or none. A view that
        is there is replaced by its function, and one that says the same stays as it is. The module
        is read as text and never run: its constants are folded.

            from pathlib import Path
            Path("shop.py").write_text('''
            import everview as ev

            @ev.nested
            def dear(orders):
                return [(o.id, [p.id for p in orders if p.amount > o.amount]) for o in orders]
            ''')
            db.load_module("shop.py")
        """
        self.handle.must_declare()
        return nested_views.load(self.handle, module)

    def source(self, name: str) -> Source:
        """A table or view as plans read it."""
        return self.catalog.source(arguments.text("name", name))

    def function(
        self, name: str, function: Callable[..., Any], gives: str, *, deterministic: bool = False
    ) -> None:
        """Let queries call a function in Python, on Spark, until the database is closed.

        A view that calls it needs it again whenever the store is opened: see `functions=` of
        `ev.open`. The function must give the same answer for the same values; say so by
        `deterministic=True`. `gives` is the SQL type of its answer.

            db.function("area", lambda a, b: a * b, "double", deterministic=True)
        """
        arguments.flag("deterministic", deterministic)
        type_ = checked_function(name, function, gives, deterministic=deterministic)
        self.engine.register_function(name, function, type_)
        if self.catalog.beyond_reach:  # it may be what one of them waits for
            self.handle.reload_catalog()

    # Looking inside

    def explain(self, view: str, stage: str = "operators") -> str:
        """How a view is kept fresh, or what the check of a constraint reads, as text.

        `stage` is `"operators"` (each with its law, its state and what it read the last time),
        `"plan"`, `"deltas"` (the degree, and the maps that each change reads), `"domains"`
        (subqueries with inputs, and how many values these have), `"derivative"`,
        `"nabla"` (what leaves a view in relational algebra and what comes into it), `"pre"` (what
        it will be), `"program"`, `"sql"`, `"agca"` and `"triggers"` (a GROUP BY as sums of
        products), or of a nested view `"shredded"`.

            print(db.explain("revenue"))
        """
        arguments.text("view", view)
        arguments.text("stage", stage)
        return explain(self.handle, view, stage)

    def audit(self, view: str | None = None) -> Audit:
        """Compare one view, or all, with their queries evaluated from scratch, as bags of rows.

        One view is evaluated from the tables alone. Where all are audited, each is evaluated from
        what it reads: if every view equals its query over those, it does over the tables too.

            assert db.audit().ok
        """
        if view is not None:
            arguments.text("view", view)
        snapshot, catalog = self.handle.at()
        with self.handle.reading(snapshot):
            if view is None:
                return audit_all(catalog, self.engine, snapshot)
            found = audit_whole(catalog.relation(view), catalog, self.engine, snapshot)
        return Audit(snapshot.manifest.epoch, found)

    def status(self) -> list[RelationStatus]:
        """Every table, view and state with its rows, bytes and segments, and how it is refreshed.

        For example:

            {each.name: each.refresh for each in db.status() if each.kind == "view"}
        """
        snapshot, catalog = self.handle.at()
        return status(catalog, snapshot.manifest, self.engine.local.held, self.store)

    @property
    def memory(self) -> MemoryStatus:
        """How many bytes may be held in memory between transactions, and how many are held now.

        For example:

            assert db.memory.held <= db.memory.budget
        """
        return memory_status(self.engine.local, self.store)

    def history(self, epochs: int = MAX_EPOCHS) -> list[Entry]:
        """What the newest epochs cost, oldest first: each as a whole, and each view it changed.

        The same is in the table `everview.history`.

            db.history(10)[-1].total_ms
        """
        return history(self.store, self.catalog, arguments.count("epochs", epochs, least=1))
