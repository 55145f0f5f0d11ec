"""Names to columns: what the FROM clause of one query makes visible."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from everview.errors import UserError
from everview.lang.sql.place import span_of
from everview.plan.types import Schema, names


@dataclass(frozen=True, slots=True)
class Item:
    """A table, view or subquery in FROM: its alias, and the plan column behind each name."""

    alias: str
    columns: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Scope:
    """The items of a FROM clause, from left to right."""

    text: str
    items: list[Item] = field(default_factory=list)

    def resolve(self, node: exp.Column) -> str:
        """The plan column that a name in the query stands for; case does not matter."""
        items = self.items
        if node.args.get("db"):
            raise self._unknown(node, [])
        if node.table:
            items = [item for item in items if item.alias.lower() == node.table.lower()]
            if not items:
                raise self._unknown_table(node)
        wanted = node.name.lower()
        found = [
            (item, plan) for item in items for name, plan in item.columns if name.lower() == wanted
        ]
        if len(found) > 1:
            choices = " or ".join(f"{item.alias}.{node.name}" for item, _ in found)
            raise UserError(
                "Q008",
                f"the column {node.name} is ambiguous",
                span=span_of(node, self.text),
                remedy=f"write {choices}",
            )
        if not found:
            raise self._unknown(node, [name for item in items for name, _ in item.columns])
        return found[0][1]

    def has(self, name: str) -> bool:
        """Whether any item has a column of that name."""
        wanted = name.lower()
        return any(wanted == known.lower() for item in self.items for known, _ in item.columns)

    def star(self, table: str | None, node: exp.Expr) -> list[tuple[str, str]]:
        """The columns that `*` or `table.*` stands for, as (name, plan column)."""
        items = [i for i in self.items if table is None or i.alias.lower() == table.lower()]
        if not items:
            raise self._unknown_table(node)
        return [pair for item in items for pair in item.columns]

    def _unknown(self, node: exp.Column, known: list[str]) -> UserError:
        near = get_close_matches(node.name.lower(), [k.lower() for k in known], 1)
        hint = f"did you mean {near[0]}? " if near else ""
        return UserError(
            "Q007",
            f"unknown column {node.sql(dialect='spark')}",
            span=span_of(node, self.text),
            remedy=f"{hint}the columns here are {', '.join(known) or 'none'}",
        )

    def _unknown_table(self, node: exp.Expr) -> UserError:
        shown = ", ".join(item.alias for item in self.items) or "nothing"
        table = node.args.get("table") or node
        return UserError(
            "Q006",
            f"{table.name or node.sql(dialect='spark')} is not in the FROM clause",
            span=span_of(table, self.text),
            remedy=f"FROM holds {shown}",
        )


def qualified(alias: str, schema: Schema) -> Item:
    """The item whose plan columns are named after its alias."""
    return Item(alias, tuple((name, f"{alias}.{name}") for name in names(schema)))
