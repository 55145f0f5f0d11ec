"""Common subexpressions of generated code: a product that several values begin with has a name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from everview.trigger_programs.statement_tree import Node


@dataclass(frozen=True, slots=True)
class CommonProducts:
    """The products that are computed at a node of a tree of statements, by their texts.

    They are computed once, and read below the node. The names of a function have other `numbers`.
    """

    known: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def at(self, node: Node, texts: Iterable[str]) -> tuple[CommonProducts, list[str], list[str]]:
        """What is known below a node, the lines that compute it, and the texts of its values.

        A product has a name where it is computed, if the values of the node and of those below
        begin with it more than once.
        """
        below = CommonProducts(dict(self.known), self.numbers)
        every = (added.value.text for each in node.walk() for added in each.added)
        often = Counter(text for each in every for text in map(ast.unparse, _products(each)))
        lines, values = list[str](), list[str]()
        for text in texts:
            for product in reversed(list(_products(text))):
                own = ast.unparse(product)
                if own not in below.known and often[own] > 1:
                    name = f"p{next(self.numbers)}"
                    lines.append(f"{name} = {below.value(own)}")
                    below.known[own] = name
            values.append(below.value(text))
        return below, lines, values

    def value(self, text: str) -> str:
        """A value that begins with the name of the longest product that is known."""
        after: list[ast.expr] = []
        for product in _products(text):
            name = self.known.get(ast.unparse(product))
            if name is not None:
                found: ast.expr = ast.Name(name)
                for factor in reversed(after):
                    found = ast.BinOp(found, ast.Mult(), factor)
                return ast.unparse(found)
            after.append(product.right)
        return text


def _products(text: str) -> Iterator[ast.BinOp]:
    """The products that a text begins with, the whole of it first: of a * b * c, also a * b."""
    node = ast.parse(text, mode="eval").body
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield node
        node = node.left
