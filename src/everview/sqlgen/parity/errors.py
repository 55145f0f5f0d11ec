"""The verdict of the parity table about what may not run on DuckDB."""

from __future__ import annotations


class NotAtParity(Exception):  # noqa: N818 - a verdict about a construct, not a failure
    """A construct not shown to give Spark's answer on DuckDB: its step runs on Spark."""

    def __init__(self, construct: str, why: str = "") -> None:
        verdict = f"{construct} is not shown equal on DuckDB"
        super().__init__(f"{verdict}: {why}" if why else verdict)
        self.construct = construct
        self.why = why
