"""The scope of one query: the columns that its FROM makes visible, and the query around it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from everview.arguments import did_you_mean
from everview.errors import UserError
from everview.expr.types import Schema, names
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.trees import read_trees


@dataclass(frozen=True, slots=True)
class Item:
    """A table, view or subquery in FROM: its alias, and (name, plan column) for each column."""

    alias: str
    columns: tuple[tuple[str, str], ...]


class OuterQuery(Protocol):
    """The query around a subquery, which it may read columns of."""

    def find(self, node: exp.Column) -> str | None:
        """The plan column that a name stands for there, None when it has no such name."""


@dataclass(slots=True)
class Scope:
    """The items of a FROM clause, from left to right.

    `visible` holds the columns that `*` stands for and that need no alias, in order: those that
    USING made one of two stand once.
    """

    text: str
    outer: OuterQuery | None = None
    items: list[Item] = field(default_factory=list)
    visible: list[tuple[str, str]] = field(default_factory=list)
    negations: set[str] = field(default_factory=set)
    """The plan columns that hold NOT of a condition with IN, which a subquery in FROM selects."""
    not_negatable: set[str] = field(default_factory=set)
    """The plan columns of such conditions that have no column with their negation."""
    exploded: dict[str, str] = field(default_factory=dict)
    """The plan columns of collections that only generators read, which no plan has, and the
    nested view of each."""

    def copy(self) -> Scope:
        """An independent copy of the scope as it is now."""
        items, visible = list(self.items), list(self.visible)
        negations, not_negatable = set(self.negations), set(self.not_negatable)
        hidden = (negations, not_negatable, dict(self.exploded))
        return Scope(self.text, self.outer, items, visible, *hidden)

    def since(self, before: Scope) -> Scope:
        """A scope of only the items that were added after `before` was copied."""
        items, visible = self.items[len(before.items) :], self.visible[len(before.visible) :]
        return Scope(self.text, None, items, visible)

    def common(self, other: Scope) -> list[str]:
        """The names that both scopes have, in the order of this one, for NATURAL JOIN."""
        theirs = {name.lower() for name, _ in other.visible}
        return list(dict.fromkeys(name for name, _ in self.visible if name.lower() in theirs))

    def merge(self, columns: list[tuple[str, str]]) -> None:
        """Merge the columns of USING: each stands once, before all other columns."""
        merged = {name.lower() for name, _ in columns}
        rest = [(name, plan) for name, plan in self.visible if name.lower() not in merged]
        self.visible = [*columns, *rest]

    @property
    def negation_pairs(self) -> frozenset[str]:
        """The plan columns that hold NOT of another, and those others."""
        return frozenset((*self.negations, *(n.removesuffix(_NOT) for n in self.negations)))

    def negation_of(self, node: exp.Expr) -> exp.Expr | None:
        """The column that holds NOT of a column, given by its name or as a plan column."""
        if not isinstance(node, exp.Column) or not (self.negations or self.not_negatable):
            return None
        own = self._own(node)
        plan = own[0][1] if len(own) == 1 else node.name
        name = plan.removesuffix(_NOT) if plan in self.negations else negated_name(plan)
        if plan in self.not_negatable:
            raise UserError(
                "Q020",
                f"NOT of {node.name}, which is IN (subquery) in a subquery with DISTINCT, LIMIT or "
                "a set operation, cannot be maintained in a view yet",
                span=span_of(node, self.text),
                remedy="select the opposite in the subquery, with NOT IN",
            )
        if plan not in self.negations and name not in self.negations:
            return None
        negation = plan_column(name)
        negation.this.meta.update(node.this.meta)
        return negation

    def add(self, item: Item, node: exp.Expr) -> None:
        """Make an item visible; refuse an alias that FROM has already."""
        if any(known.alias.lower() == item.alias.lower() for known in self.items):
            raise named_twice(node, "FROM", self.text, item.alias)
        self.items.append(item)
        self.visible += item.columns

    def resolve(self, node: exp.Column) -> str:
        """The plan column that a name in the query stands for; case does not matter."""
        matches = self._own(node)
        if len(matches) > 1:
            choices = [f"{item.alias}.{node.name}" for item, _ in matches]
            apart = len(set(choices)) == len(choices)
            raise UserError(
                "Q008",
                f"the column {node.name} is ambiguous",
                span=span_of(node, self.text),
                remedy=f"write {' or '.join(choices)}" if apart else "name each with AS",
            )
        if matches:
            return matches[0][1]
        column = self.outer.find(node) if self.outer else None
        if column is not None:
            return column
        items = self._items(node)
        if node.table and not items:
            raise self.unknown_table(node)
        raise self._unknown(node, [name for item in items for name, _ in item.columns])

    def find(self, node: exp.Column) -> str | None:
        """The plan column of a name in this or an outer query, None when there is none."""
        if self._own(node):
            return self.resolve(node)
        return self.outer.find(node) if self.outer else None

    def _own(self, node: exp.Column) -> list[tuple[Item, str]]:
        if node.args.get("db"):
            return []
        wanted = node.name.lower()
        if not node.table:
            plans = [plan for name, plan in self.visible if name.lower() == wanted]
            return [(self._item_of(plan), plan) for plan in plans]
        return [
            (item, plan)
            for item in self._items(node)
            for name, plan in item.columns
            if name.lower() == wanted
        ]

    def _items(self, node: exp.Column) -> list[Item]:
        if not node.table:
            return self.items
        return [item for item in self.items if item.alias.lower() == node.table.lower()]

    def has(self, name: str) -> bool:
        """Whether a name alone stands for a column."""
        return any(name.lower() == known.lower() for known, _ in self.visible)

    def has_item(self, alias: str) -> bool:
        """Whether FROM has an item of that name."""
        return any(alias.lower() == item.alias.lower() for item in self.items)

    def alias_of(self, plan: str) -> str:
        """The alias of the item of a column; empty for a merged column of USING."""
        return self._item_of(plan).alias

    def _item_of(self, plan: str) -> Item:
        """The item of a column; one without a name for a merged column of USING."""
        merged = Item("", ())
        return next((item for item in self.items if plan in dict(item.columns).values()), merged)

    def star(self, table: str | None, node: exp.Expr) -> list[tuple[str, str]]:
        """The columns that `*` or `table.*` stands for, as (name, plan column)."""
        items = [i for i in self.items if table is None or i.alias.lower() == table.lower()]
        if not items:
            raise self.unknown_table(node)
        if table is None:
            return list(self.visible)
        return [pair for item in items for pair in item.columns]

    def _unknown(self, node: exp.Column, known: list[str]) -> UserError:
        near, listed = did_you_mean(node.name, known), ", ".join(known)
        return UserError(
            "Q007",
            f"unknown column {node.sql(dialect='spark')}",
            span=span_of(node, self.text),
            remedy=f"{near}the columns here are {listed or 'none'}",
        )

    def unknown_table(self, node: exp.Expr) -> UserError:
        """The error for a name before a dot that FROM does not have."""
        shown = ", ".join(item.alias for item in self.items) or "nothing"
        table = node.args.get("table") or node
        if _is_around(table, self.text):
            return UserError(
                "Q006",
                f"deep correlation: {table.name} belongs to a query around this subquery in FROM, "
                "which cannot read it",
                span=span_of(table, self.text),
                remedy="write LATERAL before the subquery, or move the condition out of it",
            )
        return UserError(
            "Q006",
            f"{table.name or node.sql(dialect='spark')} is not in the FROM clause",
            span=span_of(table, self.text),
            remedy=f"FROM holds {shown}",
        )


def _is_around(table: exp.Expr, text: str) -> bool:
    """Whether an outer query has a table in FROM, which the inner one names."""
    trees, _ = read_trees(text)
    for column in (each for tree in trees for each in tree.find_all(exp.Column)):
        place = column.args.get("table")
        if place is None or place.meta.get("start") != table.meta.get("start"):
            continue
        own_query = column.find_ancestor(exp.Select)
        query = own_query.find_ancestor(exp.Select) if own_query is not None else None
        while query is not None:
            items = query.find_all(exp.Table, exp.Subquery)
            own = (item for item in items if item.find_ancestor(exp.Select) is query)
            if any(item.alias_or_name.lower() == place.name.lower() for item in own):
                return True
            query = query.find_ancestor(exp.Select)
    return False


def named_twice(node: exp.Expr, clause: str, text: str, name: str = "") -> UserError:
    """The error for a name that a clause gives twice."""
    return UserError(
        "Q008",
        f"{name or node.name} stands twice in {clause}",
        span=span_of(node, text),
        remedy="give each its own alias with AS",
    )


def plan_column(name: str) -> exp.Column:
    """A column of a plan, as an expression."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def qualified(alias: str, schema: Schema) -> Item:
    """The item whose plan columns are named after its alias."""
    return Item(alias, tuple((shown_name(name), f"{alias}.{name}") for name in names(schema)))


_NOT = "/not"


def negated_name(name: str) -> str:
    """The name of the column beside another that holds NOT of it."""
    return name + _NOT


def is_negated(name: str) -> bool:
    """Whether a plan column holds NOT of the one before it, and is not shown."""
    return name.endswith(_NOT)


def unlike(given: Iterable[str]) -> tuple[str, ...]:
    """The names made distinct: one that was there before gets a number.

    >>> unlike(["a", "b", "A"])
    ('a', 'b', 'A/2')
    """
    seen: Counter[str] = Counter()
    distinct = []
    for name in given:
        seen[name.lower()] += 1
        times = seen[name.lower()]
        distinct.append(name if times == 1 else f"{name}/{times}")
    return tuple(distinct)


def shown_name(name: str) -> str:
    """The name before `unlike` or `negated_name` added to it, as the user knows it."""
    return re.sub(r"(/\d+|/not)+$", "", name)
