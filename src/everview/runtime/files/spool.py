"""Many batches as one table: beyond a few of them in a file that is mapped, not in memory."""

from __future__ import annotations

from collections.abc import Iterable
from tempfile import NamedTemporaryFile

import pyarrow as pa

SPOOL_BYTES = 64 << 20
"""How much is held before the rest goes to a file, which nobody else sees."""


def spooled(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """The rows of all tables, in order; the operating system holds of them what fits."""
    held: list[pa.Table] = []
    given = iter(tables)
    for table in given:
        held.append(table)
        if sum(each.nbytes for each in held) > SPOOL_BYTES:
            break
    else:
        return pa.concat_tables(held) if held else schema.empty_table()
    with NamedTemporaryFile() as file:  # its name goes at the end, its bytes stay while mapped
        with pa.ipc.new_file(file, schema) as writer:
            for table in held:
                writer.write_table(table)
            del held
            for table in given:
                writer.write_table(table)
        file.flush()
        with pa.memory_map(file.name) as mapped:
            return pa.ipc.open_file(mapped).read_all()
