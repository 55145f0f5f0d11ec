"""Which queries have a shape in which plain Spark is known to contradict SQL."""

from __future__ import annotations


def fault_in(query: str) -> str:
    """The name of the fault that a query may show, empty where there is none."""
    return ""
