"""Validation of a manifest that may come from anybody.

Its checksum shows damage, not malice. So nothing that it says is used before it is checked: a path
that leaves the store, rows that count twice, numbers out of range.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from everview.store.bounds import TAGS, Bound, decode
from everview.store.manifest import DataFile, Manifest, Relation, Segment
from everview.store.transaction_ids import CommittedIds

MAX_NUMBER = 1 << 62
"""The largest number that a manifest may hold."""
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.=-]*"
_PARQUET_PATH = re.compile(rf"segments/{_NAME}(/{_NAME})?/{_NAME}\.parquet")
_CHANGE_FILE_PATH = re.compile(rf"changes/{_NAME}\.arrow")


def manifest_problem(manifest: Manifest, epoch: int) -> str | None:
    """Why a manifest cannot be that of an epoch, None if it can."""
    return next(_problems(manifest, epoch), None)


def _problems(manifest: Manifest, epoch: int) -> Iterator[str]:
    if manifest.epoch != epoch:
        yield f"it is that of epoch {manifest.epoch}"
    if manifest.parent != (epoch - 1 if epoch else None):
        yield f"it follows epoch {manifest.parent}"
    for name, relation in manifest.relations.items():
        for problem in _in_relation(relation, epoch):
            yield f"{name!r}: {problem}"
    yield from _in_ids(manifest.ids, epoch)
    yield from _named_twice(manifest)
    yield from _overlapping(manifest.files)


def _in_ids(ids: CommittedIds, epoch: int) -> Iterator[str]:
    entries = [*((at, number) for number, at in ids.writers.values()), *ids.recent.values()]
    for committed, number in entries:
        if not 0 <= committed <= epoch:
            yield f"a transaction was committed in epoch {committed}"
        if not 0 <= number <= MAX_NUMBER:
            yield f"a transaction has the number or time {number}"


def _in_relation(relation: Relation, epoch: int) -> Iterator[str]:
    if not 0 <= relation.since <= epoch:
        yield f"it began at epoch {relation.since}"
    for segment in (*relation.segments, *relation.feed):
        if not 0 <= segment.epoch <= epoch:
            yield f"a segment is of epoch {segment.epoch}"
        for file in segment.files:
            if problem := _file_problem(file):
                yield problem


def _file_problem(file: DataFile) -> str | None:
    """Why a file cannot be one of ours."""
    shape = _PARQUET_PATH if file.start is None else _CHANGE_FILE_PATH
    if not shape.fullmatch(file.path):
        return f"no file of a store is called {file.path!r}"
    tail = () if file.tail is None else (file.tail.bytes,)
    for number in (file.rows, file.bytes, file.start or 0, file.layout or 0, *tail):
        if not 0 <= number <= MAX_NUMBER:
            return f"{file.path} has {number} bytes or rows"
    if any(number > file.bytes for number in tail):
        return f"{file.path} is shorter than a part of it"
    if file.checksum is None and not tail:
        return f"{file.path} has no checksum"
    if not all(map(_is_bound, (file.low, file.high))):
        return f"{file.path} has a bound that is none"
    return None


def _is_bound(bound: Bound | None) -> bool:
    """Whether a bound has a value that its tag can have."""
    if bound is None:
        return True
    tag, value = bound
    try:
        return isinstance(decode(bound), TAGS[tag]) and isinstance(value, int | str)
    except (KeyError, ArithmeticError, ValueError, TypeError):
        return False


def _named_twice(manifest: Manifest) -> Iterator[str]:
    """A file belongs to one segment of one relation, which may also be what its feed tells."""
    owners: dict[tuple[str, int | None], tuple[str, Segment]] = {}
    for name, relation in manifest.relations.items():
        for listed in (relation.segments, relation.feed):
            places = [(f.path, f.start) for segment in listed for f in segment.files]
            if len(places) > len(set(places)):
                yield f"{name!r}: a file is named twice"
            for segment in listed:
                for file in segment.files:
                    owner = owners.setdefault((file.path, file.start), (name, segment))
                    if owner[0] != name or owner[1].files != segment.files:
                        yield f"{file.path} is named twice"


def _overlapping(files: Iterable[DataFile]) -> Iterator[str]:
    """Pieces of a file lie beside each other."""
    pieces = sorted((f.path, f.start, f.bytes) for f in files if f.start is not None)
    for (path, start, size), (other, begin, _) in pairwise(pieces):
        if path == other and begin < start + size:
            yield f"pieces of {path} overlap"
