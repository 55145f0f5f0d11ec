"""Relations of an epoch under other names or in former layouts; no file is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from everview.store.manifest import DataFile, Manifest, Segment
from everview.store.segments import fresh_id


@dataclass(frozen=True, slots=True)
class Relaid:
    """What happens to the files of a relation whose columns are altered.

    They are of the former layout `layout` now. `became` says what a column is called now, None if
    it is gone; the others keep their names. Bounds are dropped where the type of what the files are
    sorted by is another one.
    """

    layout: int
    became: Mapping[str, str | None]
    retyped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AlteredFiles:
    """What an ALTER does to stored relations.

    Those that are `relaid` have other columns than their files, and those `moved` another name, by
    the old one.
    """

    relaid: Mapping[str, Relaid] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)

    def follow(self, manifest: Manifest) -> Manifest:
        """The manifest with relations relaid, and then those in `moved` under their new names.

        Segments that are relaid get new ids, so that nothing in memory or in the background is
        taken for them.
        """
        relations = dict(manifest.relations)
        for name, each in self.relaid.items():
            old = relations[name].segments
            relations[name] = replace(
                relations[name],
                segments=tuple(_relaid(segment, each, manifest.epoch) for segment in old),
            )
        taken = {new: replace(relations[old], name=new) for old, new in self.moved.items()}
        kept = {name: each for name, each in relations.items() if name not in self.moved}
        return replace(manifest, relations=kept | taken)


def _relaid(segment: Segment, how: Relaid, epoch: int) -> Segment:
    sort_by = _followed(segment.sort_by, how.became)
    bounded = bool(sort_by) and sort_by[0] not in how.retyped
    files = tuple(_in_layout(file, how.layout, bounded=bounded) for file in segment.files)
    return replace(segment, id=fresh_id(epoch + 1), files=files, sort_by=sort_by)


def _followed(columns: Iterable[str], became: Mapping[str, str | None]) -> tuple[str, ...]:
    """An order by columns, up to the first that is gone."""
    found: list[str] = []
    for column in columns:
        name = became.get(column, column)
        if name is None:
            break
        found.append(name)
    return tuple(found)


def _in_layout(file: DataFile, layout: int, *, bounded: bool) -> DataFile:
    stamped = replace(file, layout=layout) if file.layout is None else file
    return stamped if bounded else replace(stamped, low=None, high=None, has_null=True)
