"""How a manifest is written as JSON, with a checksum that makes damage visible.

It is `{"format":2,"checksum":"…","body":{…}}`, the last line of its file; rows that the epoch adds
may lie before it. The checksum covers the format and the bytes of the body, so checking needs no
second encoding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Generic, TypeAlias, TypeVar

from everview.store import errors
from everview.store.bounds import Bound
from everview.store.manifest import FORMAT, DataFile, Manifest, Opaque, Relation, Segment, Tail

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

_HEAD = re.compile(rb'\{"format":(\d{1,9}),"checksum":"([0-9a-f]{32})","body":')
_TAIL = b"}\n"
_json = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
MANY = 10_000
"""Of so many segments it is remembered how they are written."""


def encode(manifest: Manifest) -> bytes:
    """The manifest as bytes; equal manifests have equal bytes."""
    body = _manifest(manifest).encode()
    checksum = _checksum(manifest.format, body)
    head = f'{{"format":{manifest.format},"checksum":"{checksum}","body":'
    return head.encode() + body + _TAIL


def following(encoded: bytes) -> bytes:
    """An encoded manifest as what follows other content of a file."""
    return b"\n" + encoded


def decode(raw: bytes, path: str) -> Manifest:
    """The manifest in `raw`: decode(encode(m)) = m; `path` is named in errors."""
    head = _HEAD.match(raw)
    if head is None or not raw.endswith(_TAIL):
        raise _unreadable(raw, path)
    format_, body = int(head[1]), raw[head.end() : -len(_TAIL)]
    if _checksum(format_, body) != head[2].decode():
        raise errors.damaged_manifest(path, "its checksum does not match its content")
    if format_ > FORMAT:
        raise errors.newer_format(path, format_, FORMAT)
    try:
        return _read_manifest(_loads(body), format_)
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


@dataclass(slots=True)
class _Known(Generic[T]):
    """How parts of the manifest before are written, by name: most are the very same now."""

    write: Callable[[T], str]
    parts: dict[str, tuple[T, str]] = field(default_factory=dict)

    def written(self, name: str, part: T) -> str:
        known = self.parts.get(name)
        if known is None or known[0] is not part:
            known = self.parts[name] = part, self.write(part)
        return known[1]


def _manifest(manifest: Manifest) -> str:
    """Names ascend, as in all JSON here."""
    named = sorted(manifest.relations.items())
    relations = ",".join(f"{_json(name)}:{_relations.written(name, each)}" for name, each in named)
    return (
        f'{{"catalog":{_catalog.written("", manifest.catalog)},"created":{_json(manifest.created)}'
        f',"epoch":{manifest.epoch},"note":{_json(manifest.note)}'
        f',"parent":{_json(manifest.parent)},"relations":{{{relations}}}}}'
    )


def _relation(relation: Relation) -> str:
    feed, segments = (",".join(map(_segment, each)) for each in (relation.feed, relation.segments))
    return f'{{"feed":[{feed}],"segments":[{segments}],"since":{relation.since}}}'


_catalog, _relations = _Known[Opaque](_json), _Known(_relation)


@lru_cache(maxsize=MANY)
def _segment(segment: Segment) -> str:
    """Most segments of a manifest are those of the one before it."""
    return _json(
        {
            "id": segment.id,
            "epoch": segment.epoch,
            "kind": segment.kind,
            "sort_by": segment.sort_by,
            "files": [_file(file) for file in segment.files],
        }
    )


def _file(file: DataFile) -> Json:
    tail = {} if file.tail is None else {"tail": [file.tail.bytes, file.tail.checksum]}
    where = {} if file.start is None else {"start": file.start}
    where |= {} if file.weight is None else {"weight": file.weight}
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


def _read_manifest(raw: object, format_: int) -> Manifest:
    told = _a(dict, raw)
    return Manifest(
        epoch=_a(int, told["epoch"]),
        parent=_or_none(int, told["parent"]),
        created=_a(str, told["created"]),
        catalog=_a(dict, told["catalog"]),
        relations={
            name: _read_relation(name, _a(dict, each))
            for name, each in _a(dict, told["relations"]).items()
        },
        note=_a(dict, told["note"]),
        format=format_,
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
