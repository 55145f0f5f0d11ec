"""Collections of tables in SQL: EXPLODE of one is the join with its dictionary that it means.

So the derivative of a query reads and changes what is about the elements that change. Where a
collection is named as a value it is an array; see `arrays.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Dictionary
from everview.database.collections.arrays import Items, array_of, is_shadowed
from everview.database.collections.arrays import column as _column
from everview.database.collections.arrays import quoted as _name
from everview.errors import UserError
from everview.expr.types import names
from everview.lang.sql.lower.generators import GeneratorCall, generator_of
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.statements import (
    CopyTo,
    CreateTable,
    CreateView,
    Explain,
    Query,
    Statement,
)


def with_collections_read(statement: Statement, tables: Mapping[str, TableDefinition]) -> Statement:
    """The statement with joins and arrays in the place of the collections that it names."""
    if not any(each.collections for each in tables.values()):
        return statement
    match statement:
        case Query():
            return _query(statement, tables)
        case CreateTable(query=Query() as query):
            return replace(statement, query=_query(query, tables))
        case CopyTo():
            written = read(statement.query, tables)
            return replace(statement, query=written, reads=reads_of(parse_query(written)))
        case CreateView():
            apart = statement.nested != "inline" and not statement.columns
            return replace(statement, query=read(statement.query, tables, by_elements=apart))
        case Explain(name) if name.lower().lstrip("( ").startswith(("select", "with")):
            return replace(statement, name=read(name, tables))
        case _:
            return statement


def _query(statement: Query, tables: Mapping[str, TableDefinition]) -> Query:
    written = read(statement.text, tables)
    if written == statement.text:
        return statement
    return replace(statement, text=written, reads=reads_of(parse_query(written)))


def read(text: str, tables: Mapping[str, TableDefinition], *, by_elements: bool = False) -> str:
    """A query with joins in the place of EXPLODE, and arrays; as it is, if it names no collection.

    With `by_elements`, the columns of the query that are collections are queries of their own.
    """
    known = {name.lower(): table for name, table in tables.items()}
    if not any(name in text.lower() for name, each in known.items() if each.collections):
        return text
    tree = parse_query(text)
    selects = list(tree.find_all(exp.Select))
    changed = [_Select(each, known, number).rewrite() for number, each in enumerate(selects)]
    for each in selects:
        changed.append(Items(each, known).with_arrays(by_elements=by_elements and each is tree))
    return tree.sql(dialect=QUERIES) if any(changed) else text


_OWN = "#elements"
"""What the source of a join calls its dictionary."""


@dataclass(frozen=True, slots=True)
class _Element:
    """The elements of a dictionary, joined under an alias; `name` is what the query calls them."""

    dictionary: Dictionary
    alias: str
    table: str
    name: str
    source: exp.Select
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of INLINE, what the query calls the fields."""

    def value(self, name: str) -> exp.Expr:
        """A field as a value: a collection is an array, which the join has beside its label."""
        alias = _hidden(self.alias, name)
        inner = next((each for each in self.dictionary.inner if each.column == name), None)
        if inner is None:
            return _column(self.alias, alias)
        shown = f"{alias}#"
        self._add(shown, self._own(name))
        return _column(self.alias, shown)

    def _own(self, name: str) -> exp.Expr:
        """A field as a value, as the source of the join has it."""
        inner = next((each for each in self.dictionary.inner if each.column == name), None)
        if inner is None:
            return _column(_OWN, name)
        return array_of(inner, [_column(_OWN, each) for each in inner.above])

    def _add(self, name: str, value: exp.Expr) -> None:
        if name not in self.source.named_selects:
            self.source.select(exp.alias_(value, name, quoted=True), copy=False)

    def show(self, columns: Sequence[exp.Column]) -> None:
        """Give the join the columns that subqueries may name, as these call them.

        Whether one is meant, or a nearer column of that name, is known where they are bound.
        """
        named = [[part.name.lower() for part in each.parts] for each in columns]
        for name, of in self.columns.items():
            if any(parts[0] == name.lower() for parts in named):
                self._add(name, self._own(of))
        own = [parts for parts in named if parts[0] == self.name.lower()]
        if self.columns or not own:
            return
        fields = names(self.dictionary.fields)
        if not self.dictionary.is_record:
            self._add(self.name, self._own(fields[0]))
            return
        wanted = {self.field(parts[1]) if len(parts) > 1 else None for parts in own}
        self._add(self.name, self._record(n for n in fields if None in wanted or n in wanted))

    def field(self, name: str) -> str | None:
        """The spelling of the name of a field, None where there is none."""
        if name in names(self.dictionary.fields):
            return name
        lower = {each.lower(): each for each in names(self.dictionary.fields)}
        return lower.get(name.lower())

    @property
    def whole(self) -> exp.Expr:
        """The element as one value: the join has it, so it is NULL where there is no element."""
        fields = names(self.dictionary.fields)
        if not self.dictionary.is_record:
            return self.value(fields[0])
        shown = f"{self.alias}#"
        self._add(shown, self._record(fields))
        return _column(self.alias, shown)

    def _record(self, fields: Iterable[str]) -> exp.Expr:
        pairs = [part for each in fields for part in (exp.Literal.string(each), self._own(each))]
        return exp.Anonymous(this="named_struct", expressions=pairs)


class _Select:
    """One SELECT, whose explosions become joins one after the other."""

    def __init__(self, tree: exp.Select, known: Mapping[str, TableDefinition], number: int) -> None:
        self.tree, self.known, self.number = tree, known, number
        self.elements: list[_Element] = []
        self.items = {
            each.alias_or_name.lower(): each.name.lower()
            for each in _tables(tree)
            if not is_shadowed(each)
        }

    def rewrite(self) -> bool:
        """Whether there was something to rewrite."""
        self._from_select_list()
        for item in list(self.tree.args.get("joins") or []):
            joined = self._joined(item.this, item) if isinstance(item.this, exp.Lateral) else None
            if joined is not None:
                item.replace(joined)
        for lateral in list(self.tree.args.get("laterals") or []):
            if (joined := self._joined(lateral)) is not None:
                lateral.pop()
                self.tree.append("joins", joined)
        if not self.elements:
            return False
        self._expand_star()
        every = list(self.tree.find_all(exp.Column))
        here = [each for each in every if each.find_ancestor(exp.Select) is self.tree]
        for column in here:
            self._resolve(column)
        inside = [each for each in every if each.find_ancestor(exp.Select) is not self.tree]
        for element in self.elements:
            element.show(inside)
        return True

    def _expand_star(self) -> None:
        """`*` as the columns of each item, and the elements, in the order of FROM."""
        found: list[exp.Expr] = []
        for each in self.tree.expressions:
            if not isinstance(each, exp.Star):
                found.append(each)
                continue
            aliases = [item.alias_or_name for item in _tables(self.tree)]
            if any(each.args.values()) or not self._are_all_items(aliases):
                remedy = "name the columns, or write alias.*"
                problem = "SELECT * beside EXPLODE of a collection shows more than tables"
                raise UserError("Q020", problem, remedy=remedy)
            found += self._shown_of_items()
        self.tree.set("expressions", found)

    def _shown_of_items(self) -> Iterator[exp.Expr]:
        elements = {each.alias: each for each in self.elements}
        for item in _items(self.tree):
            element = elements.get(item.alias_or_name)
            if element is None:
                yield exp.Column(this=exp.Star(), table=_name(item.alias_or_name))
                continue
            for name, of in [*element.columns.items()] or [(element.name, "")]:
                value = element.value(of) if of else element.whole
                yield exp.alias_(value, name, quoted=True)

    def _are_all_items(self, aliases: list[str]) -> bool:
        """Whether FROM has these items and explosions of collections alone."""
        joins = self.tree.args.get("joins") or ()
        merged = any(each.args.get("using") or each.args.get("method") for each in joins)
        shown = len(aliases) + len(self.elements) == 1 + len(joins)
        return shown and not merged and not self.tree.args.get("laterals")

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

    def _joined(self, lateral: exp.Lateral, item: exp.Expr | None = None) -> exp.Join | None:
        """The join that an explosion means, in the place of an item; None of no collection."""
        call = generator_of(lateral.this)
        found = None if call is None else self._exploded(call)
        if call is None or found is None:
            return None
        dictionary, above = found
        if call.place:
            problem = f"{dictionary.relation} is a collection, whose elements have no places"
            raise UserError("Q020", problem, remedy="use EXPLODE")
        given = lateral.args.get("alias")
        columns = [each.name for each in given.columns] if given is not None else []
        alias = f"#{self.number}.{len(self.elements) + 1}"
        fields, source = names(dictionary.fields), _source(dictionary, alias)
        if call.inline:
            called = columns if len(columns) == len(fields) else fields
            own = {name.lower(): each for name, each in zip(called, fields, strict=True)}
            element = _Element(dictionary, alias, lateral.alias, "", source, own)
        else:
            name = columns[0] if columns else "col"
            element = _Element(dictionary, alias, lateral.alias, name, source)
        self.elements.append(element)
        outer = bool(lateral.args.get("outer")) or call.outer
        padded, condition = (outer, None) if item is None else _conditions(item, outer=outer)
        return _join(element, above, condition, outer=padded)

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
            part = _part_of(element, column)
            if part is not None:
                found = element.value(part) if part else element.whole
                if column.parent is self.tree and column.arg_key == "expressions":
                    found = exp.alias_(found, column.name, quoted=True)
                column.replace(found)
                return


def _items(tree: exp.Select) -> list[exp.Expr]:
    """What is in FROM and JOIN of a SELECT itself."""
    start = tree.args.get("from_")
    items = [start.this] if start is not None else []
    return [*items, *(each.this for each in tree.args.get("joins") or [])]


def _tables(tree: exp.Select) -> list[exp.Table]:
    return [each for each in _items(tree) if isinstance(each, exp.Table)]


def _part_of(element: _Element, column: exp.Column) -> str | None:
    """What a column is of an element: the name of a field, "" for the whole of it."""
    parts = [each.name.lower() for each in column.parts]
    if element.columns:
        own = parts[1:] if parts[0] == element.table.lower() and len(parts) > 1 else parts
        return element.columns.get(own[0]) if len(own) == 1 else None
    whole = [element.name.lower()]
    for prefix in (whole, [element.table.lower(), *whole]):
        if parts == prefix:
            return ""
        if parts[:-1] == prefix and element.dictionary.is_record:
            return element.field(column.name)
    return None


def _names_collection(element: _Element, inner: Dictionary, column: exp.Column) -> bool:
    """Whether a column is a collection inside an element, or the element where it is one."""
    return _part_of(element, column) == (inner.column if element.dictionary.is_record else "")


def _source(dictionary: Dictionary, alias: str) -> exp.Select:
    """The rows of a dictionary, under names that no other column has."""
    listed = (*names(dictionary.labels), *names(dictionary.fields))
    shown = (
        exp.alias_(_column(_OWN, n), _hidden(alias, n), quoted=True) for n in dict.fromkeys(listed)
    )
    table = exp.Table(this=_name(dictionary.relation), alias=exp.TableAlias(this=_name(_OWN)))
    return exp.select(*shown).from_(table)


def _join(
    element: _Element, above: list[exp.Expr], condition: exp.Expr | None, *, outer: bool
) -> exp.Join:
    """The rows of a dictionary by its labels."""
    dictionary, alias = element.dictionary, element.alias
    pairs = zip(names(dictionary.labels), above, strict=True)
    on: list[exp.Expr] = [
        exp.EQ(this=_column(alias, _hidden(alias, own)), expression=label.copy())
        for own, label in pairs
    ]
    on += [condition.copy()] if condition is not None else []
    item = exp.Subquery(this=element.source, alias=exp.TableAlias(this=_name(alias)))
    return exp.Join(this=item, side="LEFT" if outer else "", on=exp.and_(*on, copy=False))


def _conditions(item: exp.Expr, *, outer: bool) -> tuple[bool, exp.Expr | None]:
    """Whether JOIN LATERAL keeps rows without elements, and what else it joins by."""
    side, on = str(item.args.get("side") or "").upper(), item.args.get("on")
    if isinstance(on, exp.Boolean) and on.this:
        on = None
    if side not in ("", "LEFT") or item.args.get("method") or item.args.get("using"):
        remedy = "write JOIN LATERAL or LEFT JOIN LATERAL, with ON"
        raise UserError("Q020", "this kind of join with EXPLODE of a collection", remedy=remedy)
    if outer and on is not None:
        problem = "EXPLODE_OUTER of a collection in a join with a condition"
        raise UserError("Q020", problem, remedy="write the condition in WHERE")
    return outer or side == "LEFT", on


def _hidden(alias: str, name: str) -> str:
    return f"{alias}.{name}"
