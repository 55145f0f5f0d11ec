"""A nested view in FROM: its collections as arrays, or read element by element by a generator.

The columns of the relations of a view tell how they belong together: the label of the collection
`v.x` is in the columns of `v` and of `v.x` that begin with `x@`. An array is built where a query
names it. What a query only explodes is joined from its dictionary, and what it does not name is not
read at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.expr import scalar
from everview.expr.types import Type, fields_of
from everview.lang.sql.lower.collections import (
    SIGN,
    collected,
    element_of_columns,
    with_arrays,
)
from everview.lang.sql.lower.outer_joins import occurring_in, padded_with_nulls
from everview.plan.build import add, columns_of, distinct, identity, join, map_, negate, project
from everview.plan.nodes import Output, Plan, Source
from everview.plan.traverse import schema_of


@dataclass(frozen=True, slots=True)
class NestedRelation:
    """A relation of a nested view: its own label if it is a dictionary, and its fields.

    `below` are the dictionaries of the fields that are collections, `labels` the columns here that
    lead to them.
    """

    source: Source
    label: tuple[str, ...]
    fields: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    below: Mapping[str, NestedRelation]

    def rows(self, wanted: Collection[str] | None = None) -> Plan:
        """The label and the fields, with collections as arrays: all, or those that are wanted.

        The labels of other collections stand in their place.
        """
        plan: Plan = self.source
        shown = list(self.label)
        for name in self.fields:
            if name not in self.below:
                shown.append(name)
            elif wanted is None or name in wanted:
                plan = self._with_array(plan, name)
                shown.append(name)
            else:
                shown += self.labels[name]
        return project(plan, tuple(shown))

    def fields_with(self, wanted: Collection[str] | None = None) -> Plan:
        """The fields alone, of which the collections that are wanted are arrays."""
        every = self.below if wanted is None else wanted
        shown = (name for name in self.fields if name not in self.below or name in every)
        return project(self.rows(wanted), tuple(shown))

    def _with_array(self, plan: Plan, name: str) -> Plan:
        inner, keys = self.below[name], self.labels[name]
        rows = inner.rows()
        type_, element = inner.element(rows)
        support = distinct(project(self.source, keys))
        arrays = collected(rows, support, keys, Output(name, type_, element))
        return with_arrays(plan, arrays, tuple((key, key) for key in keys), name)

    def element(self, rows: Plan) -> tuple[Type, str]:
        """The type of its elements, and the scalar that makes one of its rows."""
        columns = {column.name: column for column in schema_of(rows)}
        return element_of_columns(tuple(columns[name] for name in self.fields), self.fields)


def nested_relation(
    relations: Mapping[str, Source], view: str, path: str = ""
) -> NestedRelation | None:
    """The relation at a path of a view, by the columns that are stored; None for a flat view."""
    source = relations.get(f"{view}.{path}".lower() if path else view.lower())
    if source is None:
        return None
    label, fields, labels = [], dict[str, None](), dict[str, list[str]]()
    for column in source.schema:
        stem, sign, _ = column.name.partition(SIGN)
        if sign and path and stem == path:
            label.append(column.name)
        elif sign and f"{view}.{stem}".lower() in relations:
            name = stem.removeprefix(f"{path}.")
            labels.setdefault(name, []).append(column.name)
            fields[name] = None
        else:
            fields[column.name] = None
    if not labels and not path:
        return None
    below = {}
    for name in labels:
        inner = nested_relation(relations, view, f"{path}.{name}" if path else name)
        assert inner is not None
        below[name] = inner
    leads = {name: tuple(each) for name, each in labels.items()}
    return NestedRelation(source, tuple(label), tuple(fields), leads, below)


def collections_named(nested: NestedRelation, node: exp.Expr) -> tuple[set[str], set[str]]:
    """The collections of an item of FROM that its query names, and those it only explodes."""
    select = node.find_ancestor(exp.Select)
    every = {*nested.below}
    if select is None or _takes_all(select, node):
        return every, set()
    named: set[str] = set()
    exploded: set[str] = set()
    lowered = {name.lower(): name for name in every}
    for each in select.find_all(exp.Identifier):
        if (name := lowered.get(each.name.lower())) is not None and not _is_alias(each):
            (exploded if _is_exploded(each, select) else named).add(name)
    return named, exploded - named


def _takes_all(select: exp.Select, node: exp.Expr) -> bool:
    """Whether a query takes all columns of an item, or may pad them."""
    joins = select.args.get("joins") or ()
    padded = any(each.args.get("side") or each.args.get("method") for each in joins)
    alias = node.args.get("alias")
    renamed = bool(node.args.get("pivots")) or (alias is not None and bool(alias.columns))
    inner = any(each.args.get("side") for each in node.find_all(exp.Join))
    stars = [each for each in select.find_all(exp.Star) if not isinstance(each.parent, exp.Count)]
    of_item = (
        not isinstance(each.parent, exp.Column)
        or each.parent.table.lower() == node.alias_or_name.lower()
        for each in stars
    )
    return padded or renamed or inner or any(of_item)


def _is_alias(node: exp.Identifier) -> bool:
    return isinstance(node.parent, exp.Alias | exp.TableAlias)


def _is_exploded(node: exp.Identifier, select: exp.Select) -> bool:
    """Whether a name stands for the array of a LATERAL generator of a query, without places."""
    column = node.parent
    if not isinstance(column, exp.Column) or column.this is not node or len(column.parts) > 2:
        return False
    call = column.parent
    plain = isinstance(call, exp.Explode | exp.Inline) and not isinstance(call, exp.Posexplode)
    if not plain or call is None or call.this is not column:
        return False
    return isinstance(call.parent, exp.Lateral) and call.find_ancestor(exp.Select) is select


def elements(
    plan: Plan, item: NestedRelation, column: str, number: int, *, apart: bool, outer: bool
) -> tuple[Plan, tuple[Output, ...]]:
    """The rows for each element of a collection, and the columns of the element.

    The collection is the plan column that it would have; the plan has those of its label.
    """
    alias, _, name = column.rpartition(".")
    below, leads = item.below[name], (f"{alias}.{each}" for each in item.labels[name])
    rows = below.rows()
    marks = {name: f"label {number} {name}" for name in below.label}
    label = (replace(o, name=marks[o.name]) for o in identity(schema_of(rows)) if o.name in marks)
    columns = _element_columns(rows, below, apart=apart)
    own = tuple(replace(o, name=f"element {number} {o.name}") for o in columns)
    pairs = tuple((ours, marks[name]) for ours, name in zip(leads, marks, strict=True))
    found = join(plan, map_(rows, (*label, *own)), pairs, nulls=True)
    found = project(found, (*columns_of(plan), *(o.name for o in own)))
    if outer:
        alone = add(plan, negate(occurring_in(plan, found)))
        found = add(found, padded_with_nulls(alone, found))
    outputs = (
        replace(o, scalar=scalar.column(mine.name)) for o, mine in zip(columns, own, strict=True)
    )
    return found, tuple(outputs)


def _element_columns(rows: Plan, below: NestedRelation, *, apart: bool) -> tuple[Output, ...]:
    type_, element = below.element(rows)
    if not apart:
        return (Output("col", type_, element),)
    if len(below.fields) > 1:
        own = {output.name: output for output in identity(schema_of(rows))}
        return tuple(own[name] for name in below.fields)
    return tuple(
        Output(name, inner, scalar.canonical(f"({element}).{scalar.column(name)}"))
        for name, inner in fields_of(type_)
    )
