"""The modules of src, read as syntax trees: what each imports, and whose private names it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import everview

ROOT = Path(everview.__file__).parents[1]
PACKAGES = ("everview", "everview_fuzz")


@dataclass(frozen=True)
class Module:
    """A module of ours: its dotted name and its syntax tree."""

    name: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package that the module stands in."""
        return self.name.rpartition(".")[0]

    def imports(self) -> Iterator[tuple[str, str]]:
        """Every module of ours that is imported, with the name taken from it, or nothing."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((each.name, "") for each in node.names if _is_ours(each.name))
            elif isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
                for each in node.names:
                    inner = f"{node.module}.{each.name}"
                    yield (inner, "") if _is_module(inner) else (str(node.module), each.name)

    def private_imports(self) -> Iterator[str]:
        """What is imported under a name that begins with an underscore, from another package."""
        for module, name in self.imports():
            private = any(part.startswith("_") for part in (*module.split("."), name))
            if private and module.rpartition(".")[0] != self.package:
                yield f"{module}.{name}"

    def private_attributes(self) -> Iterator[str]:
        """What is used as `value._name` of a value that is not of a class of this module.

        A tree knows no types. So an attribute counts as one of this module's own if `value` is
        `self`, `cls` or `super()`, or if some class of this module has an attribute of that name
        and `value` is nothing that was imported.
        """
        imported = {
            each.asname or each.name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for each in node.names
        }
        own = set(self._own_attributes())
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Attribute) or not _is_private(node.attr):
                continue
            value = ast.unparse(node.value)
            if value in ("self", "cls", "super()"):
                continue
            if value in imported or node.attr not in own:
                yield ast.unparse(node)

    def _own_attributes(self) -> Iterator[str]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                for inner in ast.walk(node):
                    match inner:
                        case ast.FunctionDef(name=name):
                            yield name
                        case ast.AnnAssign(target=ast.Name(id=name)):
                            yield name
                        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                            yield name
                        case _:
                            pass


@cache
def modules() -> list[Module]:
    """Every module below src, in the order of its name."""
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return [Module(_name(path), ast.parse(path.read_text("utf-8"))) for path in sorted(found)]


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _is_ours(module: str) -> bool:
    return module.split(".")[0] in PACKAGES


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
