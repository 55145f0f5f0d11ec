"""Small worlds for the tests of the store: tables of weighted rows, and epochs of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from everview.store.manifest import DataFile, Manifest, Relation, Segment
from everview.store.pruning import Probe
from everview.store.store import Store

together = False
"""Whether changes are written together with those of other relations."""
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string()), ("_w", pa.int64())])


def rows(*entries: tuple[int | None, str, int]) -> pa.Table:
    columns = zip(*entries, strict=True) if entries else ((), (), ())
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def add(store: Store, table: pa.Table, name: str = "orders") -> Manifest:
    """Commit one more epoch that adds `table` to a relation."""
    old = store.latest()
    segment = write(store, name, old.epoch + 1, table)
    new = old.advance(epoch=old.epoch + 1, created="t", changes={name: segment})
    store.commit(new)
    return new


def write(store: Store, name: str, epoch: int, table: pa.Table) -> Segment:
    """A change in a file of its own, or in one with what others change."""
    if not together:
        return store.write_segment(name, epoch, table, ("k",))
    others = {f"other{number}": (table.slice(number), ("k",)) for number in range(2)}
    return store.write_changes(epoch, others | {name: (table, ("k",))})[name]


def files_for(
    relation: Relation, key: str | None, keys: pa.Array | pa.ChunkedArray | None
) -> tuple[DataFile, ...]:
    """The files of `relation` that may hold rows whose column `key` is among `keys`.

    Only segments sorted by `key` first have bounds for it; the others keep all their files.
    """
    if keys is None or key is None:
        return relation.files
    probe = Probe(key, keys)
    return tuple(file for segment in relation.segments for file in probe.files_of(segment))


def read_segments(
    store: Store,
    relation: Relation,
    key: str | None = None,
    keys: pa.Array | None = None,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
) -> pa.Table:
    """The weighted rows of all segments, of files that may hold a key."""
    return store.read_files(
        files_for(relation, key, keys), key=key, keys=keys, columns=columns, schema=schema
    )


def value(store: Store, manifest: Manifest, name: str = "orders") -> dict[tuple[object, ...], int]:
    """The relation as a finite map without zeros."""
    relation = manifest.relations.get(name, Relation(name, ()))
    return added_up(read_segments(store, relation, schema=SCHEMA))


def added_up(table: pa.Table) -> dict[tuple[object, ...], int]:
    total: Counter[tuple[object, ...]] = Counter()
    for *row, weight in zip(*table.to_pydict().values(), strict=True):
        total[tuple(row)] += weight
    return {row: weight for row, weight in total.items() if weight}


def combine(_: str, table: pa.Table) -> pa.Table:
    """Add up equal rows, the slow and obvious way."""
    return rows(*((*row, weight) for row, weight in added_up(table).items()))  # type: ignore[misc]
