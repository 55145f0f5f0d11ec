"""Layouts: where the columns of a relation are in files that were written before it was altered.

A file keeps the columns that its relation had when it was written, and nobody rewrites it. So a
schema to be read says in the metadata of each field what former layouts, by number, call the
column, and which value its rows have where they lack it. A file without a number has the columns of
the schema itself.

Executors run this module too. It is sent to them by value, so it imports nothing of ours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

_FORMER, _FILL = b"everview:former", b"everview:fill"


def with_former(
    field: pa.Field, former: Sequence[str | None], fill: bytes | None = None
) -> pa.Field:
    """A field that knows its name in each former layout, None where it has none.

    `fill` is the value of rows that lack it, as `packed_value` gives it; without one it is NULL.
    """
    known = {_FORMER: json.dumps(list(former)).encode()}
    return field.with_metadata(known | ({} if fill is None else {_FILL: fill}))


def name_in(field: pa.Field, layout: int | None) -> str | None:
    """What files of a layout call a column, None where they do not have it."""
    if layout is None:
        return str(field.name)
    former = json.loads((field.metadata or {})[_FORMER])
    if not 0 <= layout < len(former):
        raise pa.ArrowInvalid(f"its relation never had the layout {layout}")
    name: str | None = former[layout]
    return name


def names_in(schema: pa.Schema, layout: int | None) -> list[str]:
    """The columns of a schema that files of a layout have, by their names there."""
    found = [name_in(field, layout) for field in schema]
    return [name for name in found if name is not None]


def fitted(rows: pa.Table, schema: pa.Schema, layout: int | None) -> pa.Table:
    """Rows of a file as the columns of a schema: renamed, widened, and filled where they lack one.

    >>> field = with_former(pa.field("b", pa.int64()), ["a"])
    >>> fitted(pa.table({"a": pa.array([1], pa.int32())}), pa.schema([field]), 0).to_pydict()
    {'b': [1]}
    """
    plain = pa.schema([field.remove_metadata() for field in schema])
    if layout is None:
        return rows.select(plain.names).cast(plain)
    columns = []
    for field in schema:
        name = name_in(field, layout)
        if name is None:
            columns.append(pa.repeat(_fill(field), rows.num_rows))
        else:
            columns.append(rows[name].cast(field.type))
    return pa.table(columns, plain)


def packed_value(value: pa.Scalar) -> bytes:
    """A value with its type, as bytes."""
    sink = pa.BufferOutputStream()
    column = pa.table({"value": pa.repeat(value, 1)})
    with pa.ipc.new_stream(sink, column.schema) as writer:
        writer.write_table(column)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpacked_value(content: bytes) -> pa.Scalar:
    """The value that `packed_value` was given; ArrowInvalid for what it never gave."""
    values = pa.ipc.open_stream(content).read_all()["value"]
    values.validate(full=True)
    return values[0]


def _fill(field: pa.Field) -> pa.Scalar:
    content = (field.metadata or {}).get(_FILL)
    value = pa.scalar(None, field.type) if content is None else unpacked_value(content)
    return value if value.type == field.type else value.cast(field.type)
