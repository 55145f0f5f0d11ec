"""Changes of tables with collections: of whole rows, and of one collection inside a row.

A change is computed from the elements that it names alone: a dictionary is looked up by label where
a collection goes whole, and by the digest of an element where one element goes. What is to go is
looked up before anything changes, so no row is deleted that is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.arguments import did_you_mean, named, shown
from everview.database import queries
from everview.database import rows as given
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Dictionary
from everview.database.collections.query import rebuilt
from everview.database.collections.shred import Shredding, digests, value_text
from everview.database.referential_actions import Seen, must_keep_keys
from everview.database.rows_by_key import (
    last_of_each_key,
    must_all_be_there,
    places_among,
    with_keys,
)
from everview.errors import Span, UserError
from everview.expr.types import WEIGHT, Schema, names
from everview.runtime.arrow_types import arrow_type
from everview.runtime.protocol import Engine, Part, Snapshot, TooLarge, in_memory, row_count
from everview.runtime.results import Result

Canonical = str
"""A row or element as text: equal ones have equal texts, whatever the order of their elements."""

_LABELS_PER_EPOCH = 32
"""Bits of a label that count the labels of one epoch; those above are the epoch's number."""


@dataclass(frozen=True, slots=True)
class RelationChange:
    """Weighted rows of a relation, and whether rows go."""

    relation: str
    rows: pa.Table
    removes: bool


Changes = list[RelationChange]


@dataclass(slots=True)
class Labels:
    """Gives labels that no collection has had: the next epoch's number, and a count."""

    epoch: int
    count: int = 0

    def fresh(self, many: int) -> pa.Array:
        """So many labels."""
        first = ((self.epoch + 1) << _LABELS_PER_EPOCH) + self.count
        self.count += many
        return pa.array(range(first, first + many), pa.int64())


def must_have_collections(table: TableDefinition) -> None:
    """Refuse a table whose arrays are part of its rows."""
    if not table.collections:
        raise UserError(
            "C009",
            f"{table.name} has no collections that could be changed by themselves",
            remedy="declare its columns as BAG<…>, or the table WITH (nested = 'shredded')",
        )


def must_be_whole(table: TableDefinition, *, minimal: bool) -> None:
    """Refuse a change that may say too much, of rows with collections."""
    if minimal:
        raise UserError(
            "C009",
            f"{table.name} has collections, and a change of it says what goes and what comes",
            remedy="leave minimal out",
        )


@dataclass(frozen=True, slots=True)
class Inner:
    """A collection inside a row: its dictionary, and the label as a table of one row."""

    dictionary: Dictionary
    label: pa.Table
    place: str


@dataclass(frozen=True, slots=True)
class DeepChanges:
    """Computes changes over what a transaction sees: what is stored, and what is pending."""

    engine: Engine
    snapshot: Snapshot
    catalog: Catalog
    pending: Mapping[str, Sequence[Part]]
    labels: Labels

    # Whole rows

    def inserted(self, table: TableDefinition, rows: Any) -> Changes:
        """Rows that come."""
        return self._shredded(table, self.taken(table, rows))

    def deleted(self, table: TableDefinition, rows: Any) -> Changes:
        """Rows that go, given whole."""
        plain = self.taken(table, rows)
        keys = plain.select(list(table.key))
        flat, removed = self._removed(table, keys)
        there = self._canonical_rows(table, flat)
        for row in plain.drop_columns([WEIGHT]).to_pylist():
            text = _canonical_row(table, row)
            if text not in there:
                raise _no_row(table.name, f"{table.name} does not have the row", row)
            there.remove(text)
        return removed

    def deleted_keys(self, table: TableDefinition, keys: Any) -> Changes:
        """Rows that go, given by their keys."""
        wanted = given.keys(_no_frame(keys, table.name), table.name, _key(table))
        flat, removed = self._removed(table, wanted)
        must_all_be_there(wanted, flat, table)
        return removed

    def upserted(self, table: TableDefinition, rows: Any) -> Changes:
        """Rows that come in the place of those with their keys."""
        fresh = last_of_each_key(self.taken(table, rows), table.key)
        _, removed = self._removed(table, fresh.select(list(table.key)))
        return [*removed, *self._shredded(table, fresh)]

    def updated_rows(self, table: TableDefinition, values: pa.Table, tx: Seen) -> Changes:
        """Rows that get other values, as in `replaced`; a key that no row has is refused."""
        must_all_be_there(values, self.there(table, values), table)
        return self.replaced(table, values, tx)

    def replaced(
        self, table: TableDefinition, values: pa.Table, tx: Seen, span: Span | None = None
    ) -> Changes:
        """Rows that get other values: each key with new values for some columns or collections.

        A collection that gets none stays as it is, since its row keeps its key.
        """
        keys = values.select(list(table.key))
        plain = [n for n in names(table.columns) if n in values.column_names and n not in table.key]
        changes: Changes = []
        if plain:
            old = self._rows(table.name, table.columns, table.key, keys)
            places, fresh = places_among(values, old, table.key), old
            for name in plain:
                at = fresh.schema.get_field_index(name)
                given_ = values[name].take(places).cast(fresh.schema.field(name).type)
                fresh = fresh.set_column(at, fresh.schema.field(name), given_)
            must_keep_keys(plain, table, [_negative(old), fresh], tx, span)
            changes += [RelationChange(table.name, _negative(old), True)]
            changes += [RelationChange(table.name, fresh, False)]
        shredding = Shredding(self.labels.fresh)
        for each in table.dictionaries:
            if each.column in values.column_names:
                changes += self._emptied(each, keys)
                labels = [_one(values[name].combine_chunks()) for name in each.above]
                lists = _one(values[each.column].combine_chunks())
                shredding.collections(each, lists, labels)
        added = (RelationChange(name, rows, False) for name, rows in shredding.rows.items())
        return [*changes, *added]

    def there(self, table: TableDefinition, rows: pa.Table) -> pa.Table:
        """Those of some rows whose keys the table has."""
        key = list(table.key)
        flat = self._rows(table.name, table.columns, table.key, rows.select(key))
        return with_keys(rows, flat, key)

    def given_once(self, table: TableDefinition, rows: pa.Table) -> pa.Table:
        """Rows, each key once; different rows with one key are refused."""
        found: dict[str, tuple[Canonical, int]] = {}
        for at, row in enumerate(rows.to_pylist()):
            key, text = _canonical(row, table.key), _canonical_row(table, row)
            if found.setdefault(key, (text, at))[0] != text:
                shown_key = {name: row[name] for name in table.key}
                raise UserError(
                    "T006",
                    f"INSERT … ON CONFLICT gives different rows of {table.name} with one key, "
                    f"for instance {shown_key}",
                    remedy="give each key once: the rows of a statement have no order",
                )
        return rows.take(pa.array([at for _, at in found.values()], pa.int64()))

    def taken(self, table: TableDefinition, rows: Any) -> pa.Table:
        """Rows of the columns that the table is declared with, with their weights."""
        assert table.collections is not None
        if isinstance(rows, Path):
            rows = given.files(rows, table.collections.columns)
        absent = given.Absent({each.column: [] for each in table.dictionaries})
        declared = table.collections.columns
        return given.weighted(_no_frame(rows, table.name), table.name, declared, 1, absent)

    def _shredded(self, table: TableDefinition, rows: pa.Table) -> Changes:
        shredding = Shredding(self.labels.fresh)
        shredding.table(rows, table)
        return [RelationChange(name, each, False) for name, each in shredding.rows.items()]

    def _removed(self, table: TableDefinition, keys: pa.Table) -> tuple[pa.Table, Changes]:
        """The rows with some keys, and minus them with all that is inside them."""
        key = list(table.key)
        flat = self._rows(table.name, table.columns, table.key, keys.select(key))
        removed = [RelationChange(table.name, _negative(flat), True)]
        for each in table.dictionaries:
            removed += self._emptied(each, flat.select(key))
        return flat, removed

    def _emptied(self, dictionary: Dictionary, labels: pa.Table) -> Changes:
        """Minus the elements with some labels, and all that is inside them."""
        rows = self._labelled(dictionary, labels)
        removed = [RelationChange(dictionary.relation, _negative(rows), True)]
        return [*removed, *self._emptied_inside(dictionary, rows)]

    def _emptied_inside(self, dictionary: Dictionary, rows: pa.Table) -> Changes:
        below = (self._emptied(each, rows.select(each.above)) for each in dictionary.inner)
        return list(chain.from_iterable(below)) if rows.num_rows else []

    # One collection

    def updated(
        self, table: TableDefinition, key: Any, path: Any, insert: Any, delete: Any
    ) -> Changes:
        """Elements that go from the collection at a path in the row with a key, and that come."""
        inner = self.inner(table, key, path)
        return [*self.elements_removed(inner, delete), *self.elements_added(inner, insert)]

    def inner(self, table: TableDefinition, key: Any, path: Any) -> Inner:
        """The collection at a path: names of collections, with an element between two of them."""
        steps = [path] if isinstance(path, str) else path
        if not isinstance(steps, Sequence) or len(steps) % 2 == 0:
            raise UserError(
                "X002",
                f"a path is the name of a collection, and not {shown(path)}",
                remedy="between two names give the element: ['showtimes', ('Rex', …), 'seats']",
            )
        dictionary = _named(steps[0], table.dictionaries, table.name)
        wanted = given.keys([key], table.name, _key(table))
        there = self._rows(table.name, table.columns, table.key, wanted.select(list(table.key)))
        must_all_be_there(wanted, there, table)
        label = there.select(list(dictionary.above))
        place = f"{dictionary.relation} of {_shown_key(there.select(list(table.key)))}"
        for at in range(1, len(steps), 2):
            below = _named(steps[at + 1], dictionary.inner, dictionary.relation)
            row = self._the_element(Inner(dictionary, label, place), steps[at])
            dictionary, label = below, row.select(list(below.above))
            place = f"{place}, {shown(steps[at])}, {below.column}"
        return Inner(dictionary, label, place)

    def elements_added(self, inner: Inner, elements: Any) -> Changes:
        """Elements that come."""
        into = inner.dictionary
        absent = given.Absent({each.column: [] for each in into.inner})
        rows = _elements(elements, into, into.fields, absent)
        if not rows.num_rows:
            return []
        shredding = Shredding(self.labels.fresh)
        shredding.elements(into, _as_array(into, rows), _repeated(inner.label, rows.num_rows))
        return [RelationChange(name, each, False) for name, each in shredding.rows.items()]

    def elements_removed(self, inner: Inner, elements: Any) -> Changes:
        """Elements that go, each given whole; each must be there as often as it goes.

        One whose collections are all left out is known by its other parts.
        """
        into = inner.dictionary
        if isinstance(elements, list | tuple) and into.is_record:
            elements = [_by_name(each, names(into.plain)) for each in elements]
        wanted = _elements(elements, into, into.fields)
        return self.rows_removed(inner, self._found(inner, wanted)) if wanted.num_rows else []

    def _found(self, inner: Inner, wanted: pa.Table) -> pa.Table:
        """A row of a collection for each of the elements wanted, and no row for two of them."""
        into = inner.dictionary
        there = _one_by_one(self._looked_up(inner, wanted))
        plain, collections = names(into.plain), tuple(each.column for each in into.inner)
        by_plain: dict[Canonical, list[int]] = {}
        for position, text in enumerate(_canonical_parts(there, plain)):
            by_plain.setdefault(text, []).append(position)
        given_whole = any(wanted[name].null_count < len(wanted) for name in collections)
        texts = self._canonical_elements(into, there) if given_whole else []
        found: list[int] = []
        for element in wanted.drop_columns([WEIGHT]).to_pylist():
            places = by_plain.get(_canonical(element, plain), [])
            if any(element[name] is not None for name in collections):
                text = _canonical_element(into, element)
                place = next((each for each in places if texts[each] == text), None)
            elif len(places) > 1 and collections:
                raise _ambiguous(inner, element)
            else:
                place = places[0] if places else None
            if place is None:
                raise _no_row(into.relation, f"{inner.place} does not have the element", element)
            found.append(place)
            places.remove(place)
        return there.take(pa.array(found, pa.int64()))

    def elements_of(self, inner: Inner) -> pa.Table:
        """All elements of a collection, as rows of its dictionary."""
        return self._labelled(inner.dictionary, _relabelled(inner.label, inner.dictionary))

    def rows_removed(self, inner: Inner, rows: pa.Table) -> Changes:
        """Minus some rows of a dictionary, and all that is inside them."""
        removed = RelationChange(inner.dictionary.relation, _negative(rows), True)
        return [removed, *self._emptied_inside(inner.dictionary, rows)]

    def rows_changed(self, inner: Inner, rows: pa.Table, plain: Sequence[Sequence[Any]]) -> Changes:
        """Some rows of a dictionary with other plain parts; their inner collections stay theirs."""
        into, fresh = inner.dictionary, rows
        if not rows.num_rows:
            return []
        for at, column in enumerate(into.plain):
            type_ = arrow_type(column.type)
            values = pa.array([each[at] for each in plain], type_)
            fresh = fresh.set_column(fresh.schema.get_field_index(column.name), column.name, values)
        parts = (*names(into.labels), *names(into.plain))
        known = digests([_one(fresh[name]) for name in parts])
        fresh = fresh.set_column(fresh.schema.get_field_index(into.digest), into.digest, known)
        fresh = fresh.cast(rows.schema)
        gone = RelationChange(into.relation, _negative(rows), True)
        return [gone, RelationChange(into.relation, fresh, False)]

    def _the_element(self, inner: Inner, element: Any) -> pa.Table:
        """The row of the one element that has the parts given."""
        into = inner.dictionary
        plain = names(into.plain)
        if into.is_record and len(plain) == 1 and not isinstance(element, Mapping | list | tuple):
            element = {plain[0]: element}
        if into.is_record:
            element = _by_name(element, plain)
        if isinstance(element, Mapping) and into.is_record:
            lower = {str(name).lower() for name in element}
            some = tuple(each for each in into.plain if each.name.lower() in lower)
            if 0 < len(some) == len(lower) < len(plain):
                return self._the_element_by(inner, some, element)
        return self._found(inner, _elements([element], into, into.fields))

    def _the_element_by(self, inner: Inner, parts: Schema, element: Any) -> pa.Table:
        """The row of the one element that has some parts: all of the collection is looked at."""
        (text,) = _canonical_parts(_elements([element], inner.dictionary, parts), names(parts))
        rows = _one_by_one(self.elements_of(inner))
        hits = [at for at, each in enumerate(_canonical_parts(rows, names(parts))) if each == text]
        if not hits:
            relation = inner.dictionary.relation
            raise _no_row(relation, f"{inner.place} does not have the element", element)
        if len(hits) > 1:
            raise _ambiguous(inner, element)
        return rows.take(pa.array(hits, pa.int64()))

    def _looked_up(self, inner: Inner, elements: pa.Table) -> pa.Table:
        """The rows of a collection with the plain parts of some elements, by their digests."""
        into = inner.dictionary
        labels = _repeated(inner.label, elements.num_rows)
        plain = [elements[name].combine_chunks() for name in names(into.plain)]
        wanted = digests([*labels, *map(_one, plain)])
        keys = pa.table({into.digest: wanted})
        state = self.catalog.lookup_state(into.relation)
        rows = self._rows(into.relation, into.columns, (into.digest,), keys, state)
        own = _relabelled(inner.label, into).to_pylist()[0]
        kept = [row == own for row in rows.select(list(names(into.labels))).to_pylist()]
        return rows.filter(pa.array(kept, pa.bool_()))

    # Reading

    def read(self, table: TableDefinition, pending: Mapping[str, Sequence[Part]]) -> Result:
        """The rows of a table with its collections, after pending changes."""
        plan = rebuilt(table)
        listed = {name: list(parts) for name, parts in pending.items()}
        return queries.read_plan(self.engine, plan, self.snapshot, listed)

    def _labelled(self, dictionary: Dictionary, labels: pa.Table) -> pa.Table:
        relabelled = _relabelled(labels, dictionary)
        by = names(dictionary.labels)
        return self._rows(dictionary.relation, dictionary.columns, by, relabelled)

    def _rows(
        self,
        relation: str,
        schema: Schema,
        by: Sequence[str],
        keys: pa.Table,
        stored_in: str | None = None,
    ) -> pa.Table:
        """The weighted rows of a relation with some keys, looked up by the first column of them."""
        first, columns = keys.column(0), [*names(schema), WEIGHT]
        found = keys.rename_columns(list(by))
        try:
            stored = self.engine.lookup(stored_in or relation, by[:1], found, self.snapshot)
        except TooLarge:
            stored = self._by_executors(stored_in or relation, by, keys)
        pending = in_memory(self.pending.get(relation, ()))
        assert pending is not None, "rows of tables with collections are taken in memory"
        rows = pa.concat_tables([each.select(columns) for each in (stored, *pending)])
        rows = rows.filter(pc.is_in(rows[by[0]], value_set=_one(first.combine_chunks())))
        if len(by) > 1:
            rows = with_keys(rows, found, by)
        return self.engine.local.consolidate(rows, self.snapshot.stored[relation])

    def _by_executors(self, relation: str, by: Sequence[str], keys: pa.Table) -> pa.Table:
        """The rows with some keys, of a relation of which many more begin as these do."""
        wanted = keys.rename_columns(list(by))
        found = self.engine.frames.removal(relation, by, wanted, self.snapshot, [])
        rows = in_memory([found])
        if rows is None:
            raise UserError(
                "E018",
                f"{relation}: the collections that change have {row_count(found)} rows",
                remedy="change fewer of them in one transaction, or fewer elements of each",
            )
        return _negative(rows[0])

    def _canonical_rows(self, table: TableDefinition, flat: pa.Table) -> list[Canonical]:
        parts = [_canonical_parts(flat, names(table.columns))]
        for each in table.dictionaries:
            parts.append(self._bags(each, flat.select(list(each.above))))
        return ["|".join(each) for each in zip(*parts, strict=True)]

    def _canonical_elements(self, dictionary: Dictionary, rows: pa.Table) -> list[Canonical]:
        parts = [_canonical_parts(rows, names(dictionary.plain))]
        for each in dictionary.inner:
            parts.append(self._bags(each, rows.select(list(each.above))))
        return ["|".join(each) for each in zip(*parts, strict=True)]

    def _bags(self, dictionary: Dictionary, labels: pa.Table) -> list[Canonical]:
        """The collection under each label."""
        there = _one_by_one(self._labelled(dictionary, labels)) if labels.num_rows else None
        bags: dict[tuple[Any, ...], list[Canonical]] = {}
        if there is not None:
            own = there.select(list(names(dictionary.labels))).to_pylist()
            texts = self._canonical_elements(dictionary, there)
            for label, text in zip(own, texts, strict=True):
                bags.setdefault(tuple(label.values()), []).append(text)
        wanted = (tuple(each.values()) for each in labels.to_pylist())
        return [_bag(bags.get(each, [])) for each in wanted]


def _by_name(element: Any, parts: Sequence[str]) -> Any:
    """An element that is given by the parts of it that are no collections, with their names."""
    is_tuple = isinstance(element, list | tuple) and len(element) == len(parts)
    return dict(zip(parts, element, strict=True)) if is_tuple else element


def _canonical_row(table: TableDefinition, row: Mapping[str, Any]) -> Canonical:
    bags = (_canonical_bag(each, row[each.column]) for each in table.dictionaries)
    return "|".join((_canonical(row, names(table.columns)), *bags))


def _canonical_element(dictionary: Dictionary, element: Any) -> Canonical:
    row = element if isinstance(element, Mapping) else {dictionary.fields[0].name: element}
    bags = (_canonical_bag(each, row[each.column]) for each in dictionary.inner)
    return "|".join((_canonical(row, names(dictionary.plain)), *bags))


def _canonical_bag(dictionary: Dictionary, elements: Any) -> Canonical:
    if elements is None or (dictionary.is_record and None in elements):
        raise UserError(
            "T012",
            f"a collection {dictionary.path} of {dictionary.table}, or an element of it, is NULL",
            remedy="give [] for a collection without elements",
        )
    if not dictionary.is_record:
        elements = [{dictionary.fields[0].name: each} for each in elements]
    return _bag(_canonical_element(dictionary, each) for each in elements)


def _bag(elements: Iterable[Canonical]) -> Canonical:
    return f"{{{';'.join(sorted(elements))}}}"


def _canonical_parts(rows: pa.Table, columns: Sequence[str]) -> list[Canonical]:
    plain = rows.select(list(columns)).to_pylist() if columns else [{}] * rows.num_rows
    return [_canonical(each, columns) for each in plain]


def _canonical(row: Mapping[str, Any], columns: Sequence[str]) -> Canonical:
    return value_text([row[name] for name in columns])


def _named(name: Any, known: Sequence[Dictionary], place: str) -> Dictionary:
    found = {each.column.lower(): each for each in known}
    if isinstance(name, str) and name.lower() in found:
        return found[name.lower()]
    columns = tuple(each.column for each in known)
    if isinstance(name, str) and name.partition(".")[0].lower() in found:
        first, *rest = name.split(".")
        way = ", element, ".join(map(repr, (first, *rest)))
        raise UserError(
            "N008",
            f"{named(name)} says in which collection of {place}, and not in which elements",
            remedy=f"give a list with the element between two names: [{way}]",
        )
    near = did_you_mean(name, columns) if isinstance(name, str) else ""
    raise UserError(
        "N008",
        f"{place} has no collection {named(name) if isinstance(name, str) else shown(name)}",
        remedy=f"{near}there are: {', '.join(columns) or 'none'}",
    )


def _no_row(relation: str, problem: str, row: object) -> UserError:
    remedy = f"read {relation} to see what there is; nothing has changed"
    return UserError("T011", f"{problem} {shown(row)}", remedy=remedy)


def _ambiguous(inner: Inner, element: object) -> UserError:
    several = f"{inner.place} has several elements {shown(element)}"
    remedy = "name more of its parts, or delete it whole and insert it again"
    return UserError("T017", several, remedy=remedy)


def _shown_key(key: pa.Table) -> str:
    values = [*key.to_pylist()[0].values()]
    return shown(values[0] if len(values) == 1 else tuple(values))


def _key(table: TableDefinition) -> Schema:
    known = {column.name: column for column in table.columns}
    return tuple(known[name] for name in table.key)


def _no_frame(rows: Any, table: str) -> Any:
    if given.is_frame(rows):
        raise UserError(
            "E012",
            f"{table} has collections, which are shredded by the driver: it takes no DataFrame",
            remedy="hand over df.toArrow(), in parts if it is large",
        )
    return rows


def _elements(
    elements: Any, into: Dictionary, parts: Schema, absent: given.Absent = given.NOTHING
) -> pa.Table:
    """Elements as rows of their parts, of exactly their types."""
    if not into.is_record and isinstance(elements, pa.Array | pa.ChunkedArray):
        elements = pa.table({into.fields[0].name: elements})
    plain = isinstance(elements, Sequence) and not isinstance(elements, str | bytes)
    if not into.is_record and plain:
        elements = [(each,) for each in elements]
    return given.weighted(_no_frame(elements, into.relation), into.relation, parts, 1, absent)


def _as_array(into: Dictionary, rows: pa.Table) -> pa.Array:
    columns = [_one(rows[name].combine_chunks()) for name in names(into.fields)]
    if not into.is_record:
        return columns[0]
    return pa.StructArray.from_arrays(columns, list(names(into.fields)))


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)


def _relabelled(labels: pa.Table, dictionary: Dictionary) -> pa.Table:
    """Labels as the relation above has them, with the names that the dictionary has for them."""
    return labels.rename_columns(list(names(dictionary.labels)))


def _repeated(label: pa.Table, many: int) -> list[pa.Array]:
    return [pa.repeat(_one(column)[0], many) for column in label.columns]


def _one_by_one(rows: pa.Table) -> pa.Table:
    """Rows of weight 1, each as often as its weight says."""
    weights = rows[WEIGHT].to_pylist()
    places = [at for at, weight in enumerate(weights) for _ in range(weight)]
    ones = pa.repeat(pa.scalar(1, pa.int64()), len(places))
    return (
        rows.take(pa.array(places, pa.int64())).drop_columns([WEIGHT]).append_column(WEIGHT, ones)
    )


def _negative(rows: pa.Table) -> pa.Table:
    place = rows.schema.get_field_index(WEIGHT)
    return rows.set_column(place, WEIGHT, pc.negate(rows[WEIGHT]))
