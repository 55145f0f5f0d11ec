"""EXPLODE of a collection of a table, written as the join with its dictionary that it means.

So the derivative of a query reads and changes what is about the elements that change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Dictionary
from everview.errors import UserError
from everview.expr.types import names
from everview.lang.sql.lower.generators import GeneratorCall, generator_of
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.statements import CreateView, Explain, Insert, Query, Statement

_GENERATORS = ("explode", "inline")


def with_joins(statement: Statement, tables: Mapping[str, TableDefinition]) -> Statement:
    """The statement with a join in the place of each EXPLODE of a collection."""
    if not any(each.collections for each in tables.values()):
        return statement
    match statement:
        case Query(text):
            written = joined(text, tables)
            if written == text:
                return statement
            return replace(statement, text=written, reads=reads_of(parse_query(written)))
        case CreateView() | Insert():
            return replace(statement, query=joined(statement.query, tables))
        case Explain(name) if name.lower().lstrip("( ").startswith(("select", "with")):
            return replace(statement, name=joined(name, tables))
        case _:
            return statement


def joined(text: str, tables: Mapping[str, TableDefinition]) -> str:
    """A query with joins in the place of EXPLODE; as it is, if it explodes no collection."""
    if not any(each in text.lower() for each in _GENERATORS):
        return text
    tree = parse_query(text)
    known = {name.lower(): table for name, table in tables.items()}
    selects = list(tree.find_all(exp.Select))
    changed = [_Select(each, known, number).rewrite() for number, each in enumerate(selects)]
    return tree.sql(dialect=QUERIES) if any(changed) else text


@dataclass(frozen=True, slots=True)
class _Element:
    """The elements of a dictionary, joined under an alias; `name` is what the query calls them."""

    dictionary: Dictionary
    alias: str
    table: str
    name: str
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of INLINE, what the query calls the fields."""

    def part(self, name: str) -> exp.Expr | None:
        """The column of a field, None where there is none."""
        if name not in names(self.dictionary.fields):
            lower = {each.lower(): each for each in names(self.dictionary.fields)}
            name = lower.get(name.lower(), "")
        return _column(self.alias, _hidden(self.alias, name)) if name else None

    @property
    def whole(self) -> exp.Expr:
        """The element as one value."""
        fields = names(self.dictionary.fields)
        if self.dictionary.inner:
            raise UserError(
                "Q020",
                f"an element of {self.dictionary.relation} has collections, and is no one value",
                remedy=f"name its parts: {', '.join(f'{self.name}.{each}' for each in fields)}",
            )
        if not self.dictionary.is_record:
            return _column(self.alias, _hidden(self.alias, fields[0]))
        parts: list[exp.Expr] = []
        for each in fields:
            parts += [exp.Literal.string(each), _column(self.alias, _hidden(self.alias, each))]
        return exp.Anonymous(this="named_struct", expressions=parts)


class _Select:
    """One SELECT, whose explosions become joins one after the other."""

    def __init__(self, tree: exp.Select, known: Mapping[str, TableDefinition], number: int) -> None:
        self.tree, self.known, self.number = tree, known, number
        self.elements: list[_Element] = []
        self.items = {each.alias_or_name.lower(): each.name.lower() for each in _tables(tree)}

    def rewrite(self) -> bool:
        """Whether there was something to rewrite."""
        self._from_select_list()
        for item in list(self.tree.args.get("joins") or []):
            if isinstance(item.this, exp.Lateral) and self._join(item.this):
                item.pop()
        for lateral in list(self.tree.args.get("laterals") or []):
            if self._join(lateral):
                lateral.pop()
        if not self.elements:
            return False
        for each in self.tree.expressions:
            if isinstance(each, exp.Star):
                remedy = "name the columns, or write alias.*"
                problem = "SELECT * shows collections, which are joined here by their labels"
                raise UserError("Q020", problem, remedy=remedy)
        for column in list(self.tree.find_all(exp.Column)):
            if column.find_ancestor(exp.Select) is self.tree:
                self._resolve(column)
        return True

    def _from_select_list(self) -> None:
        """EXPLODE in the SELECT list as LATERAL VIEW."""
        for item in list(self.tree.expressions):
            inner = item.this if isinstance(item, exp.Alias) else item
            call = generator_of(inner)
            if call is None or self._exploded(call) is None:
                continue
            if call.inline:
                remedy = "write LATERAL VIEW inline(…) name AS columns"
                raise UserError("Q020", "INLINE of a collection in SELECT", remedy=remedy)
            name = item.alias if isinstance(item, exp.Alias) else "col"
            lateral = exp.Lateral(
                this=inner.copy(),
                view=True,
                alias=exp.TableAlias(columns=[exp.to_identifier(name, quoted=True)]),
            )
            self.tree.append("laterals", lateral)
            item.replace(exp.column(exp.to_identifier(name, quoted=True)))

    def _join(self, lateral: exp.Lateral) -> bool:
        """The join that an explosion means; whether it is one of a collection."""
        call = generator_of(lateral.this)
        found = None if call is None else self._exploded(call)
        if call is None or found is None:
            return False
        dictionary, above = found
        if call.place:
            problem = f"{dictionary.relation} is a collection, whose elements have no places"
            raise UserError("Q020", problem, remedy="use EXPLODE")
        given = lateral.args.get("alias")
        columns = [each.name for each in given.columns] if given is not None else []
        alias = f"#{self.number}.{len(self.elements) + 1}"
        fields = names(dictionary.fields)
        if call.inline:
            called = columns if len(columns) == len(fields) else fields
            own = {name.lower(): each for name, each in zip(called, fields, strict=True)}
            element = _Element(dictionary, alias, lateral.alias, "", own)
        else:
            element = _Element(dictionary, alias, lateral.alias, columns[0] if columns else "col")
        self.elements.append(element)
        outer = bool(lateral.args.get("outer")) or call.outer
        self.tree.append("joins", _join(element, above, outer=outer))
        return True

    def _exploded(self, call: GeneratorCall) -> tuple[Dictionary, list[exp.Expr]] | None:
        """The dictionary of a collection, and the columns with its label; None of an array."""
        array = call.array
        if not isinstance(array, exp.Column):
            return None
        for element in self.elements:
            for inner in element.dictionary.inner:
                if _names_collection(element, inner, array):
                    return inner, [_column(element.alias, _hidden(element.alias, inner.column))]
        for alias, name in self.items.items():
            if array.table and array.table.lower() != alias:
                continue
            for each in self._inside(name):
                if each.column.lower() == array.name.lower():
                    return each, [_column(alias, column) for column in each.above]
        return None

    def _inside(self, relation: str) -> tuple[Dictionary, ...]:
        table = self.known.get(relation)
        if table is None:
            return ()
        if not table.inside:
            return table.dictionaries
        every = (d for top in self.known[table.inside.lower()].dictionaries for d in top.walk())
        return next(each.inner for each in every if each.relation.lower() == relation)

    def _resolve(self, column: exp.Column) -> None:
        """What a column of an element is called in the join."""
        for element in self.elements:
            found = _part_of(element, column)
            if found is not None:
                if column.parent is self.tree and column.arg_key == "expressions":
                    found = exp.alias_(found, column.name, quoted=True)
                column.replace(found)
                return


def _tables(tree: exp.Select) -> list[exp.Table]:
    """The tables in FROM and JOIN of a SELECT itself."""
    start = tree.args.get("from_")
    items = [start.this] if start is not None else []
    items += [each.this for each in tree.args.get("joins") or []]
    return [each for each in items if isinstance(each, exp.Table)]


def _part_of(element: _Element, column: exp.Column) -> exp.Expr | None:
    """An element, or a field of it, by the name that a column has."""
    parts = [each.name.lower() for each in column.parts]
    if element.columns:
        own = parts[1:] if parts[0] == element.table.lower() and len(parts) > 1 else parts
        found = element.columns.get(own[0]) if len(own) == 1 else None
        return None if found is None else element.part(found)
    whole = [element.name.lower()]
    for prefix in (whole, [element.table.lower(), *whole]):
        if parts == prefix:
            return element.whole
        if parts[:-1] == prefix and element.dictionary.is_record:
            return element.part(column.name)
    return None


def _names_collection(element: _Element, inner: Dictionary, column: exp.Column) -> bool:
    """Whether a column is a collection inside an element, or the element where it is one."""
    if element.dictionary.is_record:
        label = _hidden(element.alias, inner.column)
        return _part_of(element, column) == _column(element.alias, label)
    parts = [each.name.lower() for each in column.parts]
    return parts in ([element.name.lower()], [element.table.lower(), element.name.lower()])


def _join(element: _Element, above: list[exp.Expr], *, outer: bool) -> exp.Join:
    """The dictionary under names that no other column has, by its labels."""
    dictionary, alias = element.dictionary, element.alias
    listed = (*names(dictionary.labels), *names(dictionary.fields))
    kept = dict.fromkeys(each for each in listed)
    shown = [exp.alias_(_column("", n), _hidden(alias, n), quoted=True) for n in kept]
    source = exp.select(*shown).from_(exp.Table(this=_name(dictionary.relation)))
    pairs = zip(names(dictionary.labels), above, strict=True)
    on = [
        exp.EQ(this=_column(alias, _hidden(alias, own)), expression=label.copy())
        for own, label in pairs
    ]
    item = exp.Subquery(this=source, alias=exp.TableAlias(this=_name(alias)))
    return exp.Join(this=item, side="LEFT" if outer else "", on=exp.and_(*on, copy=False))


def _hidden(alias: str, name: str) -> str:
    return f"{alias}.{name}"


def _column(table: str, name: str) -> exp.Column:
    return exp.Column(this=_name(name), table=_name(table) if table else None)


def _name(text: str) -> exp.Identifier:
    return exp.to_identifier(text, quoted=True)
