"""How the manifest of an epoch is written as JSON, with a checksum that makes damage visible.

It is `{"format":5,"checksum":"…","body":{…}}`, the last line of its file. A body with a
"checkpoint" is a delta, any other a whole manifest. The checksum covers the format and the bytes of
the body, so checking needs no second encoding. Before format 4 every manifest was whole, and rows
that the epoch added may lie before it in the file.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar

from everview.store import errors
from everview.store.bounds import Bound
from everview.store.manifest import FORMAT, DataFile, Manifest, Relation, Segment, Tail
from everview.store.manifest_delta import Delta, RelationDelta
from everview.store.transaction_ids import CommittedIds, IdsDelta

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

_HEAD = re.compile(rb'\{"format":(\d{1,9}),"checksum":"([0-9a-f]{32})","body":')
_END = b"}\n"
_json = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def encode(document: Manifest | Delta) -> bytes:
    """The document as bytes; equal documents have equal bytes."""
    body = _delta(document) if isinstance(document, Delta) else _manifest(document)
    return sealed(_json(body).encode(), document.format)


def sealed(body: bytes, format_: int = FORMAT) -> bytes:
    """A body with its format and its checksum."""
    checksum = _checksum(format_, body)
    return f'{{"format":{format_},"checksum":"{checksum}","body":'.encode() + body + _END


def decode(raw: bytes, path: str) -> Manifest | Delta:
    """The document in `raw`: decode(encode(d)) = d; `path` is named in errors."""
    head = _HEAD.match(raw)
    if head is None or not raw.endswith(_END):
        raise _unreadable(raw, path)
    format_, body = int(head[1]), raw[head.end() : -len(_END)]
    if _checksum(format_, body) != head[2].decode():
        raise errors.damaged_manifest(path, "its checksum does not match its content")
    if format_ > FORMAT:
        raise errors.newer_format(path, format_, FORMAT)
    try:
        read = _a(dict, _loads(body))
        return _read_delta(read, format_) if "checkpoint" in read else _read_manifest(read, format_)
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise errors.damaged_manifest(path, f"{type(problem).__name__} {problem}") from problem


def _unreadable(raw: bytes, path: str) -> Exception:
    """A later format may have another layout; it still says its number at the top."""
    try:
        format_ = _loads(raw)["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return errors.damaged_manifest(path, "it is not a whole manifest")
    if isinstance(format_, int) and format_ > FORMAT:
        return errors.newer_format(path, format_, FORMAT)
    return errors.damaged_manifest(path, "it does not begin and end like a manifest")


def _checksum(format_: int, body: bytes) -> str:
    return blake2b(b"%d\n" % format_ + body, digest_size=16).hexdigest()


def _manifest(manifest: Manifest) -> Json:
    return {
        "epoch": manifest.epoch,
        "parent": manifest.parent,
        "created": manifest.created,
        "catalog": manifest.catalog,
        "note": manifest.note,
        "relations": {name: _relation(each) for name, each in manifest.relations.items()},
        **_ids(manifest.ids),
    }


def _relation(relation: Relation) -> Json:
    return {
        "segments": [_segment(segment) for segment in relation.segments],
        "feed": [_segment(segment) for segment in relation.feed],
        "since": relation.since,
    }


def _delta(delta: Delta) -> Json:
    """What is empty is left out."""
    body = {
        "epoch": delta.epoch,
        "checkpoint": delta.checkpoint,
        "created": delta.created,
        "note": delta.note,
        "relations": {name: _relation_delta(each) for name, each in delta.relations.items()},
    }
    optional = {
        "catalog": delta.catalog,
        "dropped": delta.dropped or None,
        "same_notes": delta.same_notes or None,
        "forgotten": delta.ids.forgotten or None,
    }
    return body | {k: value for k, value in optional.items() if value is not None} | _ids(delta.ids)


def _ids(ids: CommittedIds | IdsDelta) -> Json:
    """What is empty is left out."""
    both = {"writers": ids.writers, "ids": ids.recent}
    return {key: dict(each) for key, each in both.items() if each}


def _relation_delta(change: RelationDelta) -> Json:
    """A segment of the feed that is also added is written once, and named by its id."""
    ids = {segment.id: segment for segment in change.added}
    body: Json = {}
    if change.removed:
        body["removed"] = change.removed
    if change.added:
        body["added"] = [_segment(segment) for segment in change.added]
    if change.feed:
        body["feed"] = [
            each.id if ids.get(each.id) == each else _segment(each) for each in change.feed
        ]
    if change.since is not None:
        body["since"] = change.since
    return body


def _segment(segment: Segment) -> Json:
    return {
        "id": segment.id,
        "epoch": segment.epoch,
        "kind": segment.kind,
        "sort_by": segment.sort_by,
        "files": [_file(file) for file in segment.files],
    }


def _file(file: DataFile) -> Json:
    tail = {} if file.tail is None else {"tail": [file.tail.bytes, file.tail.checksum]}
    where = {} if file.start is None else {"start": file.start}
    where |= {} if file.weight is None else {"weight": file.weight}
    where |= {} if file.layout is None else {"layout": file.layout}
    return (
        where
        | tail
        | {
            "path": file.path,
            "rows": file.rows,
            "bytes": file.bytes,
            "checksum": file.checksum,
            "low": file.low,
            "high": file.high,
            "has_null": file.has_null,
        }
    )


def _loads(raw: bytes) -> Any:
    """JSON without numbers that JSON does not have."""
    return json.loads(raw, parse_constant=_no_number)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _a(kind: type[T], raw: object) -> T:
    """A value that must be of a type; true and false are no numbers."""
    if type(raw) is not kind:
        raise ValueError(f"{raw!r:.40} is not of type {kind.__name__}")
    return raw


def _or_none(kind: type[T], raw: object) -> T | None:
    return None if raw is None else _a(kind, raw)


def _each(kind: type[T], raw: object) -> tuple[T, ...]:
    return tuple(_a(kind, each) for each in _a(list, raw))


def _read_manifest(raw: Json, format_: int) -> Manifest:
    return Manifest(
        epoch=_a(int, raw["epoch"]),
        parent=_or_none(int, raw["parent"]),
        created=_a(str, raw["created"]),
        catalog=_a(dict, raw["catalog"]),
        relations={
            name: _read_relation(name, _a(dict, each))
            for name, each in _a(dict, raw["relations"]).items()
        },
        note=_a(dict, raw["note"]),
        format=format_,
        ids=CommittedIds(_read_ids(raw, "writers"), _read_ids(raw, "ids")),
    )


def _read_ids(raw: Json, key: str) -> dict[str, tuple[int, int]]:
    """Numbers with epochs by writer, or epochs with times by id; none before format 5."""
    pairs = {name: _each(int, each) for name, each in _a(dict, raw.get(key, {})).items()}
    return {name: (first, second) for name, (first, second) in pairs.items()}


def _read_delta(raw: Json, format_: int) -> Delta:
    return Delta(
        epoch=_a(int, raw["epoch"]),
        checkpoint=_a(int, raw["checkpoint"]),
        created=_a(str, raw["created"]),
        catalog=_or_none(dict, raw.get("catalog")),
        dropped=_each(str, raw.get("dropped", [])),
        relations={
            name: _read_relation_delta(_a(dict, each))
            for name, each in _a(dict, raw["relations"]).items()
        },
        note=_a(dict, raw["note"]),
        same_notes=tuple(_each(str, path) for path in _each(list, raw.get("same_notes", []))),
        format=format_,
        ids=IdsDelta(
            _read_ids(raw, "writers"),
            _read_ids(raw, "ids"),
            _each(str, raw.get("forgotten", [])),
        ),
    )


def _read_relation_delta(raw: Json) -> RelationDelta:
    added = tuple(map(_read_segment, _each(dict, raw.get("added", []))))
    ids = {segment.id: segment for segment in added}
    return RelationDelta(
        removed=_each(str, raw.get("removed", [])),
        added=added,
        feed=tuple(
            ids[each] if isinstance(each, str) else _read_segment(_a(dict, each))
            for each in _a(list, raw.get("feed", []))
        ),
        since=_or_none(int, raw.get("since")),
    )


def _read_relation(name: str, raw: Json) -> Relation:
    return Relation(
        name=name,
        segments=tuple(map(_read_segment, _each(dict, raw["segments"]))),
        feed=tuple(map(_read_segment, _each(dict, raw["feed"]))),
        since=_a(int, raw["since"]),
    )


def _read_segment(raw: Json) -> Segment:
    kind = raw["kind"]
    if kind not in ("change", "base"):
        raise ValueError(f"{kind!r:.40} is no kind of segment")
    return Segment(
        id=_a(str, raw["id"]),
        epoch=_a(int, raw["epoch"]),
        kind=kind,
        files=tuple(map(_read_file, _each(dict, raw["files"]))),
        sort_by=_each(str, raw["sort_by"]),
    )


def _read_file(raw: Json) -> DataFile:
    return DataFile(
        path=_a(str, raw["path"]),
        rows=_a(int, raw["rows"]),
        bytes=_a(int, raw["bytes"]),
        checksum=_or_none(str, raw["checksum"]),
        low=_read_bound(raw["low"]),
        high=_read_bound(raw["high"]),
        has_null=_a(bool, raw["has_null"]),
        start=_or_none(int, raw.get("start")),
        tail=_read_tail(raw.get("tail")),
        weight=_or_none(int, raw.get("weight")),
        layout=_or_none(int, raw.get("layout")),
    )


def _read_bound(raw: object) -> Bound | None:
    if raw is None:
        return None
    tag, value = _a(list, raw)
    return _a(str, tag), _a(int, value) if type(value) is int else _a(str, value)


def _read_tail(raw: object) -> Tail | None:
    if raw is None:
        return None
    size, check = _a(list, raw)
    return Tail(_a(int, size), _a(str, check))
