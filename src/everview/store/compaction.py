"""How segments of a relation are added up early, in bounded memory.

Addition is associative, so any run of segments may be replaced by its sum. Condition of
correctness: the new segment has the sum of the run, whatever order and bounds its files have.
Those only decide how many equal rows meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from everview.store.bounds import as_scalar, tag_of
from everview.store.change_file import fits_change_file
from everview.store.compaction_policy import (
    FILE_MEMORY_BYTES,
    WHOLE,
    Policy,
    in_key_order,
    next_run,
)
from everview.store.manifest import DataFile, Kind, Manifest, Opaque, Relation, Run, Segment
from everview.store.segments import fresh_id
from everview.store.sort_order import in_order
from everview.store.sorted_merge import SortedFile, merge_sorted
from everview.store.store import Store

MEMORY_ROWS, MEMORY_BYTES = 1_000_000, 64 << 20
"""A run of no more rows, and bytes in its files, is added up at once; more go range by range."""
BATCH_ROWS, BATCH_BYTES = 65_536, 4 << 20
"""How much of a file is read at a time."""
CHUNK_ROWS = 262_144
"""About how many rows are consolidated at a time, where a run goes range by range."""

KEY_ROWS = 4_000_000
"""Rows of one key are consolidated together up to so many. Of more, equal ones may stay apart: the
sum is the same."""

Combine = Callable[[str, pa.Table], pa.Table]
"""Adds up equal rows of a relation: it alone knows the algebra."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A run, and the segment that has its sum; None where that is zero."""

    run: Run
    segment: Segment | None


def compact(
    store: Store,
    manifest: Manifest,
    names: Iterable[str],
    schemas: Mapping[str, pa.Schema],
    combine: Combine,
    *,
    created: str,
    policy: Policy = WHOLE,
    note: Opaque | None = None,
) -> Manifest:
    """The next epoch, with the same value in fewer segments; the caller commits it.

    Older epochs, and the feed, keep reading the old files, because their manifests name them.
    """
    chosen = tuple(names)
    runs = [run for name in chosen if (run := next_run(manifest.relations[name], policy))]
    folds = fold_all(store, runs, schemas, combine, manifest.epoch + 1)
    return replace_runs(manifest, folds, created, note or {"compacted": list(chosen)})


def replace_runs(manifest: Manifest, folds: Iterable[Fold], created: str, note: Opaque) -> Manifest:
    """The next epoch: each run that is still there replaced by its sum.

    What was added after a run stays; a run that is not there any more is not replaced.
    """
    following = manifest.advance(epoch=manifest.epoch + 1, created=created, note=note)
    relations = dict(following.relations)
    for fold in folds:
        name = fold.run.name
        if name in relations and (replaced := _replaced(relations[name], fold)):
            relations[name] = replaced
    return replace(following, relations=relations)


def is_there(manifest: Manifest, fold: Fold) -> bool:
    """Whether the run of a fold is still a part of its relation."""
    relation = manifest.relations.get(fold.run.name)
    return relation is not None and _place(relation, fold.run) is not None


def fold_all(
    store: Store,
    runs: Iterable[Run],
    schemas: Mapping[str, pa.Schema],
    combine: Combine,
    epoch: int,
    between: Callable[[], None] = lambda: None,
) -> list[Fold]:
    """Write the sums of runs for an epoch: bases and many rows as Parquet, few rows together.

    `between` is called again and again, and may raise to end it.
    """
    few: dict[str, tuple[pa.Table, Sequence[str]]] = {}
    made: dict[str, Segment] = {}
    every = list(runs)
    for run in every:
        between()
        chunks = _added_up(store, run, schemas[run.name], combine)
        if not run.is_base and _is_small(run):
            (rows,) = chunks
            if fits_change_file(rows):
                few[run.name] = rows, run.sort_by
                continue
            chunks = iter([rows])
        made[run.name] = _written(store, run, chunks, epoch, between)
    made |= store.write_changes(epoch, few)
    return [fold_of(run, made[run.name]) for run in every]


def fold_of(run: Run, new: Segment) -> Fold:
    """A run as the files of it that stay and new files for the others."""
    if not run.kept:
        return Fold(run, new if new.files else None)
    files = in_key_order((*run.kept, *new.files))
    return Fold(run, Segment(fresh_id(new.epoch), new.epoch, "base", files, run.sort_by))


def _replaced(relation: Relation, fold: Fold) -> Relation | None:
    place = _place(relation, fold.run)
    if place is None:
        return None
    before, after = relation.segments[:place], relation.segments[place + len(fold.run.segments) :]
    middle = () if fold.segment is None else (fold.segment,)
    return replace(relation, segments=before + middle + after)


def _place(relation: Relation, run: Run) -> int | None:
    """Where the segments of a run begin in a relation, None if it does not have them."""
    ids = tuple(each.id for each in relation.segments)
    if run.ids[0] not in ids:
        return None
    place = ids.index(run.ids[0])
    return place if ids[place : place + len(run.ids)] == run.ids else None


def _added_up(store: Store, run: Run, schema: pa.Schema, combine: Combine) -> Iterator[pa.Table]:
    """The rows of a run, consolidated and in order: all at once, or range by range.

    What has no key that files can be ordered by is added up at once.
    """
    tagged = run.sort_by and tag_of(schema.field(run.sort_by[0]).type) is not None
    if not tagged or _is_small(run):
        yield in_order(combine(run.name, _rows(store, run, schema)), run.sort_by)
        return
    key = run.sort_by[0]
    type_, size = schema.field(key).type, _batch_rows(run)
    files = [
        SortedFile(
            file.rows,
            None if file.has_null or file.low is None else as_scalar(file.low, type_),
            partial(store.batches, file, schema, size),
        )
        for file in sorted(in_key_order(run.files), key=_may_begin_with_null, reverse=True)
    ]
    for rows in _gathered(merge_sorted(files, key, KEY_ROWS), CHUNK_ROWS, FILE_MEMORY_BYTES):
        yield in_order(combine(run.name, rows), run.sort_by)


def _may_begin_with_null(file: DataFile) -> bool:
    return file.has_null or file.low is None


def _is_small(run: Run) -> bool:
    return run.rows <= MEMORY_ROWS and run.bytes <= MEMORY_BYTES


def _rows(store: Store, run: Run, schema: pa.Schema) -> pa.Table:
    """All rows of a run, from memory where they were written here lately."""
    first, *others = run.segments
    whole = [store.rows_of(each, schema) for each in others]
    if run.kept:
        kept = set(run.kept)
        taken = [file for file in first.files if file not in kept]
        return pa.concat_tables([store.read_files(taken, schema=schema), *whole])
    return pa.concat_tables([store.rows_of(first, schema), *whole])


def _written(
    store: Store, run: Run, chunks: Iterator[pa.Table], epoch: int, between: Callable[[], None]
) -> Segment:
    """Rows in order as files of bounded size, on disk."""

    def parts() -> Iterator[pa.Table]:
        for part in _gathered(chunks, run.file_rows, FILE_MEMORY_BYTES):
            between()
            yield from _split(part, run.file_rows)

    kind: Kind = "base" if run.is_base else "change"
    new = store.write_parts(run.name, epoch, parts(), run.sort_by, kind=kind, dense=run.is_base)
    store.sync(new)
    return new


def _gathered(chunks: Iterator[pa.Table], max_rows: int, max_bytes: int) -> Iterator[pa.Table]:
    """Chunks put together until they have so many rows or bytes."""
    held: list[pa.Table] = []
    rows = size = 0
    for chunk in chunks:
        held.append(chunk)
        rows, size = rows + chunk.num_rows, size + chunk.nbytes
        if rows >= max_rows or size >= max_bytes:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)


def _split(rows: pa.Table, most: int) -> Iterator[pa.Table]:
    """Rows in parts of about equal size: of more than 1.5 times as many as a file has, several."""
    count = max(1, round(rows.num_rows / most))
    size = -(-rows.num_rows // count)
    for start in range(0, rows.num_rows, max(1, size)):
        yield rows.slice(start, size)


def _batch_rows(run: Run) -> int:
    """How many rows are read at a time: fewer where rows are large."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * run.rows // max(1, run.bytes)))


def files_written(folds: Iterable[Fold]) -> tuple[DataFile, ...]:
    """The files that folds have added."""
    kept = {file for fold in folds for file in fold.run.kept}
    made = (fold.segment for fold in folds if fold.segment is not None)
    return tuple(file for segment in made for file in segment.files if file not in kept)
