"""A collection of a table where SQL names it as a value: the array that is put together of it.

A table in FROM whose collections a query shows or computes with becomes a subquery of it that has
them as arrays. A view that shows a collection as a column of its own keeps it by elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Dictionary
from everview.expr.types import names

_ROW = "#row"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(text: str) -> exp.Identifier:
    """A name in quotes."""
    return exp.to_identifier(text, quoted=True)


def column(table: str, name: str) -> exp.Column:
    """A column of an item of FROM."""
    return exp.Column(this=quoted(name), table=quoted(table) if table else None)


def array_of(
    dictionary: Dictionary, label: Sequence[exp.Expr], version: exp.Expr | None = None
) -> exp.Array:
    """The array of the elements with a label, with those inside them."""
    alias = f"#{dictionary.path}"
    own = {each.column: each for each in dictionary.inner}
    parts = [
        array_of(own[name], [column(alias, each) for each in own[name].above], version)
        if name in own
        else column(alias, name)
        for name in names(dictionary.fields)
    ]
    named = zip(names(dictionary.fields), parts, strict=True)
    shown: list[exp.Expr]
    if dictionary.is_record and len(parts) == 1:
        shown = [exp.Anonymous(this="named_struct", expressions=[_text(n), p]) for n, p in named]
    else:
        shown = [exp.alias_(part, name, quoted=True) for name, part in named]
    pairs = zip(names(dictionary.labels), label, strict=True)
    same = (exp.EQ(this=column(alias, n), expression=each.copy()) for n, each in pairs)
    query = exp.select(*shown).from_(_table(dictionary.relation, alias, version))
    return exp.Array(expressions=[query.where(exp.and_(*same, copy=False), copy=False)])


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _table(name: str, alias: str, version: exp.Expr | None) -> exp.Table:
    table = exp.Table(this=quoted(name), alias=exp.TableAlias(this=quoted(alias)))
    if version is not None:
        table.set("version", version.copy())
    return table


def has_collections(tables: Mapping[str, TableDefinition], node: exp.Expr) -> bool:
    """Whether an item of FROM is a table with collections, and no name given by WITH."""
    table = tables.get(node.name.lower()) if isinstance(node, exp.Table) else None
    return table is not None and bool(table.collections) and not is_shadowed(node)


def is_shadowed(node: exp.Expr) -> bool:
    """Whether WITH gives the name to something else where a table is named."""
    inside: exp.Expr = node
    query = node.parent
    while query is not None:
        given = query if isinstance(query, exp.With) else query.args.get("with_")
        for each in given.expressions if given is not None and given is not inside else ():
            if each is inside and not (isinstance(query, exp.With) and query.recursive):
                break  # a name is known to what comes after it
            if each.alias.lower() == node.name.lower():
                return True
        inside, query = query, query.parent
    return False


class Items:
    """The tables with collections in the FROM clause of a SELECT."""

    def __init__(self, tree: exp.Select, known: Mapping[str, TableDefinition]) -> None:
        self.tree = tree
        self.tables = {
            node.alias_or_name.lower(): (node, known[node.name.lower()])
            for node in _own_tables(tree)
            if has_collections(known, node)
        }

    def with_arrays(self, *, by_elements: bool) -> bool:
        """Put arrays where the SELECT names collections; whether it names any.

        With `by_elements`, a column that is nothing but a collection becomes a query of its own.
        """
        if not self.tables:
            return False
        changed = False
        if by_elements and self._rows_are_those_of_items():
            self._expand_stars()
            changed = self._kept_by_elements()
        for alias, (node, table) in self.tables.items():
            named = self._named(alias, node, table)
            if named:
                node.replace(_with_arrays(node, table, named))
                changed = True
        return changed

    def _rows_are_those_of_items(self) -> bool:
        joins = self.tree.args.get("joins") or ()
        clauses = ("distinct", "limit", "offset", "group", "having", "qualify")
        padded = any(each.args.get("side") or each.args.get("method") for each in joins)
        return not padded and not any(self.tree.args.get(each) for each in clauses)

    def _expand_stars(self) -> None:
        """`*` over one table, and `alias.*`, as the columns that they stand for."""
        alone = len(self.tables) == 1 and not self.tree.args.get("joins")
        alone = alone and not self.tree.args.get("laterals")
        found: list[exp.Expr] = []
        for each in self.tree.expressions:
            alias = each.table.lower() if _is_star_of(each) else next(iter(self.tables))
            plain = isinstance(each, exp.Star) and alone and not any(each.args.values())
            if (plain or _is_star_of(each)) and alias in self.tables:
                node, table = self.tables[alias]
                found += [column(node.alias_or_name, name) for name in _declared(table)]
            else:
                found.append(each)
        self.tree.set("expressions", found)

    def _kept_by_elements(self) -> bool:
        """Each column of the list that is a collection as the query of its elements."""
        changed = False
        if any(mark in each.alias_or_name for each in self.tree.expressions for mark in ".@"):
            return False  # a column with a name like that of a label: all stay arrays
        for each in list(self.tree.expressions):
            inner = each.unalias()
            found = self._collection(inner) if isinstance(inner, exp.Column) else None
            if found is None:
                continue
            node, dictionary = found
            if not _PLAIN.fullmatch(each.alias_or_name) or not _has_plain_names(dictionary):
                continue
            label = [column(node.alias_or_name, name) for name in dictionary.above]
            array = array_of(dictionary, label, node.args.get("version"))
            name = each.alias_or_name
            each.replace(exp.alias_(array, name, quoted=True))
            changed = True
        return changed

    def _collection(self, node: exp.Column) -> tuple[exp.Expr, Dictionary] | None:
        """The collection that a column is."""
        for alias, (item, table) in self.tables.items():
            if len(node.parts) > 2 or (node.table and node.table.lower() != alias):
                continue
            for each in table.dictionaries:
                if each.column.lower() == node.name.lower():
                    return item, each
        return None

    def _named(self, alias: str, node: exp.Expr, table: TableDefinition) -> set[str]:
        """The collections of an item that the query names; all, where it takes all columns."""
        every = {each.column.lower(): each.column for each in table.dictionaries}
        given = node.args.get("alias")
        renamed = bool(node.args.get("pivots")) or (given is not None and bool(given.columns))
        stars = [each for each in self.tree.find_all(exp.Star) if _shows(each, alias, self.tree)]
        joins = self.tree.args.get("joins") or ()
        if renamed or stars or any(each.args.get("method") for each in joins):
            return {*every.values()}
        found = set()
        for each in self.tree.find_all(exp.Column):
            parts = [part.name.lower() for part in each.parts]
            own = parts[1:] if parts[0] == alias and len(parts) > 1 else parts
            if own[0] in every and not parts[0].startswith("#"):
                found.add(every[own[0]])
        return found


def _has_plain_names(dictionary: Dictionary) -> bool:
    """Whether all parts of elements have names that dictionaries of views may have."""
    return all(_PLAIN.fullmatch(name) for each in dictionary.walk() for name in names(each.fields))


def _is_star_of(node: exp.Expr) -> bool:
    """Whether a node is `alias.*`, with nothing left out."""
    star = node.this if isinstance(node, exp.Column) else None
    return isinstance(star, exp.Star) and not any(star.args.values())


def _shows(star: exp.Star, alias: str, tree: exp.Select) -> bool:
    """Whether a star of a SELECT itself stands for the columns of an item."""
    if isinstance(star.parent, exp.Count) or star.find_ancestor(exp.Select) is not tree:
        return False
    return not isinstance(star.parent, exp.Column) or star.parent.table.lower() == alias


def _own_tables(tree: exp.Select) -> Iterator[exp.Table]:
    """The tables in FROM of a SELECT itself, those in parentheses too."""
    start = tree.args.get("from_")
    for part in (start, *(tree.args.get("joins") or ())):
        for each in part.find_all(exp.Table) if part is not None else ():
            if each.find_ancestor(exp.Select) is tree:
                yield each


def _declared(table: TableDefinition) -> tuple[str, ...]:
    assert table.collections is not None
    return names(table.collections.columns)


def _with_arrays(node: exp.Expr, table: TableDefinition, wanted: set[str]) -> exp.Expr:
    """A table in FROM as a subquery that has some of its collections as arrays."""
    version = node.args.get("version")
    own = {each.column: each for each in table.dictionaries}
    shown: list[exp.Expr] = []
    for name in _declared(table):
        if name not in own:
            shown.append(exp.alias_(column(_ROW, name), name, quoted=True))
        elif name in wanted:
            label = [column(_ROW, each) for each in own[name].above]
            shown.append(exp.alias_(array_of(own[name], label, version), name, quoted=True))
    query = exp.select(*shown).from_(_table(table.name, _ROW, version))
    given = node.args.get("alias")
    alias = given.copy() if given is not None else exp.TableAlias(this=quoted(node.name))
    found = exp.Subquery(this=query, alias=alias)
    for each in ("joins", "pivots", "sample"):
        if node.args.get(each):
            found.set(each, [part.copy() for part in node.args[each]])
    return found
