"""What an epoch is: the segments whose sum is the value of each relation.

A manifest is a value. Nothing here reads or writes a file; `advance` is the only step there is,
and it only adds: value(next) = value(this) + changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from everview.store.bounds import Bound
from everview.store.transaction_ids import NO_IDS, CommittedIds, TransactionId

FORMAT = 5
"""1: Parquet only. 2: small changes share a file. 3: tails have checksums. 4: deltas. 5: ids of
transactions, and former layouts of files."""

Kind: TypeAlias = Literal["change", "base"]
Opaque: TypeAlias = Mapping[str, object]
"""JSON that the store keeps for the pipeline and does not look into."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What lies behind the last page of a Parquet file: its indexes and its footer."""

    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True)
class DataFile:
    """An immutable Parquet file; `low` and `high` bound the first column it is sorted by.

    What has a `start` is a piece of a change file. A file that
    executors wrote has no checksum of all its bytes; a file of a format before 3 has no tail.
    `weight` is the sum of the weights of its rows, where that is known. `layout` is the number of
    the former layout that it was written in; without one it has the columns of its relation.
    """

    path: str
    rows: int
    bytes: int
    checksum: str | None
    low: Bound | None = None
    high: Bound | None = None
    has_null: bool = True
    start: int | None = None
    tail: Tail | None = None
    weight: int | None = None
    layout: int | None = None


def parquet_and_pieces(
    files: Iterable[DataFile],
) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    """Parquet files, and pieces of files that hold few rows of many relations."""
    every = tuple(files)
    parquet = tuple(file for file in every if file.start is None)
    return parquet, tuple(file for file in every if file.start is not None)


@dataclass(frozen=True, slots=True)
class Segment:
    """Weighted rows written together: a change, or a base that stands for all before it."""

    id: str
    epoch: int
    kind: Kind
    files: tuple[DataFile, ...]
    sort_by: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def rows(self) -> int:
        """How many weighted rows the segment holds."""
        if len(self.files) == 1:  # nearly always, and asked for often
            return self.files[0].rows
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """How much its files hold."""
        return sum(file.bytes for file in self.files)


def joined(parts: Sequence[Segment]) -> Segment:
    """Changes of one relation and epoch that were written apart, as one segment."""
    return replace(parts[0], files=tuple(file for part in parts for file in part.files))


@dataclass(frozen=True, slots=True)
class Relation:
    """A finite map from rows to weights: Σ segments.

    `feed` holds what this epoch changed, so that the feed of many epochs is read from their
    manifests and no manifest grows with history; `since` is the epoch that created the relation.
    """

    name: str
    segments: tuple[Segment, ...]
    feed: tuple[Segment, ...] = ()
    since: int = 0

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files of all segments."""
        return tuple(file for segment in self.segments for file in segment.files)

    @property
    def rows(self) -> int:
        """How many weighted rows are stored; equal rows of two segments count twice."""
        return sum(segment.rows for segment in self.segments)

    @property
    def is_base(self) -> bool:
        """Whether its value is a base, so that no row cancels another; or there are no rows."""
        kinds = [segment.kind for segment in self.segments]
        return kinds in ([], ["base"])

    @property
    def has_unit_weights(self) -> bool:
        """Whether each row has the weight 1, so that a reader need not look at weights.

        Condition: a segment that takes rows away is consolidated. Then the weights of a first and
        only segment are positive, and all are 1 where they add up to the number of rows.
        """
        every = all(file.weight == file.rows for file in self.files)
        return len(self.segments) <= 1 and every

    @property
    def weight(self) -> int | None:
        """How many rows the relation has, equal ones and those that cancel added up.

        None where a file does not tell the sum of its weights.
        """
        weights = [file.weight for file in self.files]
        known = [weight for weight in weights if weight is not None]
        return sum(known) if len(known) == len(weights) else None


@dataclass(frozen=True, slots=True)
class Run:
    """Adjacent segments of a relation, to be replaced by one with the same sum.

    The first of them is the base where `is_base`; then its files `kept` stay as they are.
    """

    name: str
    segments: tuple[Segment, ...]
    file_rows: int
    """How many rows a new file has at the most, more or less."""
    kept: tuple[DataFile, ...] = ()
    is_base: bool = False

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files whose rows are added up."""
        kept = set(self.kept)
        return tuple(file for each in self.segments for file in each.files if file not in kept)

    @property
    def rows(self) -> int:
        """How many rows are added up."""
        return sum(each.rows for each in self.segments) - sum(file.rows for file in self.kept)

    @property
    def bytes(self) -> int:
        """How much is read."""
        return sum(file.bytes for file in self.files)

    @property
    def sort_by(self) -> tuple[str, ...]:
        """What the rows are sorted by, as the newest segment is."""
        return self.segments[-1].sort_by

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the segments."""
        return tuple(each.id for each in self.segments)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything the store holds at one epoch."""

    epoch: int
    parent: int | None
    created: str
    catalog: Opaque = field(default_factory=dict)
    relations: Mapping[str, Relation] = field(default_factory=dict)
    note: Opaque = field(default_factory=dict)
    format: int = FORMAT
    ids: CommittedIds = NO_IDS

    def advance(
        self,
        *,
        epoch: int,
        created: str,
        changes: Mapping[str, Segment] | None = None,
        bases: Mapping[str, Segment] | None = None,
        dropped: Collection[str] = (),
        catalog: Opaque | None = None,
        note: Opaque | None = None,
    ) -> Manifest:
        """The next epoch: drop, then let bases replace values, then add changes.

        A relation in `bases` and in `changes` has the base as its value, and the change is only
        told to the feed. The base of a new relation is itself its first change.
        """
        assert epoch == self.epoch + 1, f"epoch {epoch} does not follow {self.epoch}"
        changes, bases = changes or {}, bases or {}
        kept = {
            name: replace(relation, feed=()) if relation.feed else relation
            for name, relation in self.relations.items()
            if name not in dropped
        }
        touched = {
            name: _next(kept.get(name), name, epoch, changes.get(name), bases.get(name))
            for name in sorted({*changes, *bases})
        }
        return Manifest(
            epoch=epoch,
            parent=self.epoch,
            created=created,
            catalog=self.catalog if catalog is None else catalog,
            relations=kept | touched,
            note={} if note is None else note,
            ids=self.ids,
        )

    def of_transaction(self, id_: TransactionId | None) -> Manifest:
        """The epoch with the id of the transaction that makes it, if it has one."""
        if id_ is None:
            return self
        return replace(self, ids=self.ids.after(id_, self.epoch, self.created))

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Every file this epoch needs, the change feed included, each once."""
        found = {
            (file.path, file.start): file
            for relation in self.relations.values()
            for segment in relation.segments + relation.feed
            for file in segment.files
        }
        return tuple(found.values())


def _next(
    old: Relation | None, name: str, epoch: int, change: Segment | None, base: Segment | None
) -> Relation:
    before = old.segments if old else ()
    fed = change or (base if old is None else None)
    return Relation(
        name=name,
        segments=_nonempty(base) if base else before + _nonempty(change),
        feed=_nonempty(fed),
        since=old.since if old else epoch,
    )


def _nonempty(segment: Segment | None) -> tuple[Segment, ...]:
    """The segment as a sum, with nothing where it adds nothing."""
    return (segment,) if segment and segment.files else ()
