"""When a relation has too many pieces, and how they are added up early.

Addition is associative, so any run of segments may be replaced by its sum. Only a suffix is
folded, as far back as its rows pay for: a big base is rewritten once the changes have grown to a
fixed part of it, not at every compaction, so each row is rewritten a logarithmic number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from everview.store.change_file import fits_change_file
from everview.store.manifest import Kind, Manifest, Opaque, Relation, Segment
from everview.store.store import Store


@dataclass(frozen=True, slots=True)
class Policy:
    """Compact beyond `changes` change segments, or `fraction` of the base in changed rows."""

    changes: int = 8
    fraction: float = 1.0
    least_rows: int = 100_000
    """Fewer changed rows than this never trigger by fraction: to read them costs less."""
    growth: float = 2.0
    """An older change is folded in when it has at most this many times the rows folded so far."""


DEFAULT = Policy()

WHOLE = Policy(changes=0, fraction=0.0, least_rows=0, growth=float("inf"))
"""Fold everything into one base."""


def compactable(relation: Relation, policy: Policy = DEFAULT) -> bool:
    """Whether folding would pay."""
    return fold_from(relation, policy) < len(relation.segments)


def fold_from(relation: Relation, policy: Policy) -> int:
    """Where the suffix to be folded begins; the number of segments when there is none."""
    sizes = [segment.rows for segment in relation.segments]
    bases = min(1, len(sizes))  # what a relation began with is its base, however it came
    enough = max(policy.least_rows, policy.fraction * sum(sizes[:bases]))
    if bases < len(sizes) and sum(sizes[bases:]) >= enough:
        return 0
    if len(sizes) - bases <= policy.changes:
        return len(sizes)
    first, folded = max(len(sizes) - 2, 0), sum(sizes[-2:])
    while first > bases and sizes[first - 1] <= policy.growth * folded:
        first -= 1
        folded += sizes[first]
    return first


def compact(
    store: Store,
    manifest: Manifest,
    names: Iterable[str],
    schemas: Mapping[str, pa.Schema],
    combine: Callable[[str, pa.Table], pa.Table],
    *,
    created: str,
    policy: Policy = WHOLE,
    note: Opaque | None = None,
) -> Manifest:
    """The next epoch, with the same value in fewer segments; the caller commits it.

    `combine` adds up equal rows: it alone knows the algebra. Older epochs, and the feed, keep
    reading the old files, because their manifests name them.
    """
    chosen = tuple(names)
    following = manifest.advance(
        epoch=manifest.epoch + 1, created=created, note=note or {"compacted": list(chosen)}
    )
    folds = [
        _fold(store, manifest.relations[name], schemas[name], combine, policy) for name in chosen
    ]
    folded = _written(store, following.epoch, [fold for fold in folds if fold is not None])
    relations = {
        name: replace(relation, segments=folded.get(name, relation.segments))
        for name, relation in following.relations.items()
    }
    return replace(following, relations=relations)


@dataclass(frozen=True, slots=True)
class _Fold:
    """A relation as some of its segments, and rows that stand for those after them."""

    name: str
    kept: tuple[Segment, ...]
    rows: pa.Table
    sort_by: tuple[str, ...]


def _fold(
    store: Store,
    relation: Relation,
    schema: pa.Schema,
    combine: Callable[[str, pa.Table], pa.Table],
    policy: Policy,
) -> _Fold | None:
    first = fold_from(relation, policy)
    suffix = relation.segments[first:]
    if not suffix:
        return None
    rows = pa.concat_tables([store.rows_of(each, schema) for each in suffix])
    added_up = combine(relation.name, rows)
    return _Fold(relation.name, relation.segments[:first], added_up, suffix[-1].sort_by)


def _written(store: Store, epoch: int, folds: Sequence[_Fold]) -> dict[str, tuple[Segment, ...]]:
    """What folds make of their relations: bases and many rows as Parquet, few rows together."""
    few = {fold.name: fold for fold in folds if fold.kept and fits_change_file(fold.rows)}
    made = store.write_changes(epoch, {n: (f.rows, f.sort_by) for n, f in few.items()})
    for fold in folds:
        if fold.name not in few:
            kind: Kind = "change" if fold.kept else "base"
            made[fold.name] = store.write_segment(
                fold.name, epoch, fold.rows, fold.sort_by, kind=kind, dense=not fold.kept
            )
    return {
        fold.name: fold.kept + ((made[fold.name],) if made[fold.name].files else ())
        for fold in folds
    }
