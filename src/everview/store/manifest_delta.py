"""What one epoch changes of the manifest before it.

Laws: follow(m, difference(m, n)) = n for every next epoch n of m, and the size of a difference
depends on what the epoch changed, not on how many relations and files there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from everview.store.manifest import FORMAT, Manifest, Opaque, Relation, Segment
from everview.store.transaction_ids import SAME_IDS, IdsDelta, follow_ids, ids_difference


@dataclass(frozen=True, slots=True)
class RelationDelta:
    """The last segments of a relation removed, by their ids, and others added in their folder.

    `feed` is what the epoch changed. `since` is set where the epoch created the relation; a
    relation of that name before it is gone then.
    """

    removed: tuple[str, ...] = ()
    added: tuple[Segment, ...] = ()
    feed: tuple[Segment, ...] = ()
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """An epoch as what differs from the epoch before; `checkpoint` is an older one that is whole.

    `catalog` is None where it stays, and `note` lacks the objects at `same_notes`, paths of keys,
    which stay. Relations that are not named keep their segments and have an empty feed.
    """

    epoch: int
    checkpoint: int
    created: str
    catalog: Opaque | None = None
    dropped: tuple[str, ...] = ()
    relations: Mapping[str, RelationDelta] = field(default_factory=dict)
    note: Opaque = field(default_factory=dict)
    same_notes: tuple[tuple[str, ...], ...] = ()
    format: int = FORMAT
    ids: IdsDelta = SAME_IDS

    @property
    def paths(self) -> set[str]:
        """The files of the segments that the epoch adds; a base may keep some of one before it."""
        return {
            file.path
            for each in self.relations.values()
            for segment in each.added + each.feed
            for file in segment.files
        }


class Contradiction(Exception):  # noqa: N818  (a finding, which the log makes an error)
    """Why a delta cannot follow a manifest."""


def difference(before: Manifest, after: Manifest, checkpoint: int) -> Delta:
    """What turns a manifest into that of the next epoch."""
    relations = {
        name: change
        for name, relation in after.relations.items()
        if (change := _relation_difference(before.relations.get(name), relation)) is not None
    }
    unchanged = before.catalog is after.catalog or before.catalog == after.catalog
    note, same = _note_difference(before.note, after.note)
    return Delta(
        epoch=after.epoch,
        checkpoint=checkpoint,
        created=after.created,
        catalog=None if unchanged else after.catalog,
        dropped=tuple(sorted(before.relations.keys() - after.relations.keys())),
        relations=relations,
        note=note,
        same_notes=same,
        ids=ids_difference(before.ids, after.ids),
    )


def follow(before: Manifest, delta: Delta) -> Manifest:
    """The manifest of the next epoch; `Contradiction` if the delta is not one of this manifest."""
    if delta.epoch != before.epoch + 1:
        raise Contradiction(f"it is that of epoch {delta.epoch}")
    relations = {
        name: replace(relation, feed=()) if relation.feed else relation
        for name, relation in before.relations.items()
    }
    for name in delta.dropped:
        if relations.pop(name, None) is None:
            raise Contradiction(f"it drops {name!r}, which is not there")
    for name, change in delta.relations.items():
        relations[name] = _changed(relations.get(name), name, change)
    return Manifest(
        epoch=delta.epoch,
        parent=before.epoch,
        created=delta.created,
        catalog=before.catalog if delta.catalog is None else delta.catalog,
        relations=relations,
        note=_whole_note(before.note, delta),
        format=delta.format,
        ids=follow_ids(before.ids, delta.ids),
    )


def _relation_difference(old: Relation | None, new: Relation) -> RelationDelta | None:
    """None where nothing has to be said."""
    if old is None or old.since != new.since:
        return RelationDelta((), new.segments, new.feed, new.since)
    if old.segments is new.segments:
        return RelationDelta(feed=new.feed) if new.feed else None
    kept = 0
    for one, other in zip(old.segments, new.segments, strict=False):
        if one is not other and one != other:
            break
        kept += 1
    removed = tuple(segment.id for segment in old.segments[kept:])
    added = new.segments[kept:]
    return RelationDelta(removed, added, new.feed) if removed or added or new.feed else None


def _changed(old: Relation | None, name: str, change: RelationDelta) -> Relation:
    if change.since is not None:
        if change.removed:
            raise Contradiction(f"{name!r}: it removes segments of a new relation")
        return Relation(name, change.added, change.feed, change.since)
    if old is None:
        raise Contradiction(f"it changes {name!r}, which is not there")
    kept = len(old.segments) - len(change.removed)
    if kept < 0 or tuple(segment.id for segment in old.segments[kept:]) != change.removed:
        raise Contradiction(f"{name!r}: it removes a segment that is not there")
    segments = old.segments[:kept] + change.added if change.removed or change.added else None
    return replace(old, segments=old.segments if segments is None else segments, feed=change.feed)


NOTE_LEVELS = 2
"""How deep in a note an object that stays is looked for."""


def _note_difference(
    before: Opaque, after: Opaque, levels: int = NOTE_LEVELS
) -> tuple[Opaque, tuple[tuple[str, ...], ...]]:
    """A note without the objects that were in the one before, and the paths of these."""
    kept: dict[str, object] = {}
    same: list[tuple[str, ...]] = []
    for key, value in after.items():
        old = before.get(key)
        if not isinstance(value, dict) or not value or not isinstance(old, dict):
            kept[key] = value
        elif value is old or value == old:
            same.append((key,))
        elif levels > 1:
            kept[key], inner = _note_difference(old, value, levels - 1)
            same += ((key, *path) for path in inner)
        else:
            kept[key] = value
    return kept, tuple(same)


def _whole_note(before: Opaque, delta: Delta) -> Opaque:
    note: dict[str, object] = dict(delta.note)
    for path in delta.same_notes:
        source, target = before, note
        for key in path[:-1]:
            inner, outer = source.get(key), target.get(key)
            if not isinstance(inner, dict) or not isinstance(outer, dict):
                raise Contradiction(f"the note before has no {'/'.join(path)!r}")
            source, target[key] = inner, dict(outer)
            target = target[key]  # type: ignore[assignment]
        if not path or path[-1] not in source or path[-1] in target:
            raise Contradiction(f"the note before has no {'/'.join(path)!r}")
        target[path[-1]] = source[path[-1]]
    return note
