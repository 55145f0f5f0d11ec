"""Nodes with parameters: what a query declares of each subquery that reads the query around it.

It is a map M[x][y] of domains-and-arities: for values of its input variables x it has rows of its
output variables y, and it is computed for all values that the inputs have outside at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.plan.nodes import Plan


@dataclass(frozen=True, slots=True)
class CorrelatedNode:
    """A subquery with inputs: its text, what it reads of the query around it, and what it gives.

    `domain` is the plan of the values of its inputs, once each, with a column for each of them.
    """

    text: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    domain: Plan
