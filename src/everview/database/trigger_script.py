"""A script of CREATE TABLE and CREATE VIEW, read for triggers: its tables, and views as plans."""

from __future__ import annotations

import re

from everview.compiler import compile_view
from everview.database.error_context import with_span
from everview.engines.duckdb.queries import analyze
from everview.errors import UserError
from everview.lang.agca.from_plan import Grouped, grouped
from everview.lang.front_end import ViewText
from everview.lang.sql.parse.parser import parse_statements
from everview.lang.sql.parse.statements import CreateTable, CreateView
from everview.lang.stored_relation import StoredRelation
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import schema_of, sources, transform
from everview.rewrite.passes import rewrite

_SQL = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:(?!\*/).)*\*/)*+CREATE\s+\w", re.IGNORECASE | re.DOTALL)


def is_sql(text: str) -> bool:
    """Whether a text is a script of CREATE statements, rather than AGCA."""
    return _SQL.match(text) is not None


def read_script(text: str) -> Script:
    """The declarations of a script, in its order."""
    script = Script()
    for each in parse_statements(text):
        match each:
            case CreateTable(query=None):
                script.declare_table(each)
            case CreateView():
                script.declare_view(each)
            case _:
                raise UserError(
                    "G010",
                    "triggers are made from CREATE TABLE and CREATE VIEW alone",
                    span=each.span,
                    remedy="declare the columns of tables, and views over them",
                )
    return script


class Script:
    """The tables and views that a script declares."""

    def __init__(self) -> None:
        self.tables: dict[str, CreateTable] = {}
        self.plans: dict[str, Plan] = {}
        self.known: dict[str, StoredRelation] = {}

    def declare_table(self, statement: CreateTable) -> None:
        """Add a table; its constraints are taken as they are, and not checked."""
        self._must_be_new(statement)
        self.tables[statement.name] = statement
        source = Source(statement.name, statement.columns, statement.key)
        self.known[statement.name.lower()] = StoredRelation(source, nulls=True)

    def declare_view(self, statement: CreateView) -> None:
        """Add a view, as a plan over tables."""
        self._must_be_new(statement)
        text = ViewText(statement.name, statement.query, columns=statement.columns)
        with with_span(statement.span):
            view, _ = compile_view(text, self.known, analyze)
        query = view.query or view.plan
        if any(source.name in self.plans for source in sources(query)):
            query = rewrite(
                transform(
                    query,
                    lambda node: (
                        self.plans.get(node.name, node) if isinstance(node, Source) else node
                    ),
                )
            )
        self.plans[statement.name] = query
        source = Source(statement.name, schema_of(query))
        self.known[statement.name.lower()] = StoredRelation(source, nulls=True)

    def _must_be_new(self, statement: CreateTable | CreateView) -> None:
        if statement.name.lower() in self.known:
            raise UserError(
                "G010",
                f"there are two relations {statement.name}",
                span=statement.span,
                remedy="rename one of them",
            )

    def not_null(self) -> dict[str, frozenset[str]]:
        """The columns of each table that are never NULL."""
        return {t.name: frozenset({*t.not_null, *t.key}) for t in self.tables.values()}

    def grouped(self) -> dict[str, Grouped]:
        """The views that are totals of groups; another one may only be read by a view after it."""
        found = {name: grouped(plan) for name, plan in self.plans.items()}
        return {name: each for name, each in found.items() if each is not None}
