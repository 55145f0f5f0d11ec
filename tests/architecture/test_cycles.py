"""No import cycles, even for types alone; and the folders of SQL depend in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import everview

SOURCE = Path(everview.__file__).parent
PACKAGES = (SOURCE, SOURCE.parent / "everview_fuzz")

SQL_LAYERS = ("recompute", "lower", "bind", "parse")
"""The folders of lang/sql from the top down: each imports only from those below it."""


def test_no_module_imports_itself_through_others():
    graph = _imports()
    assert {name.partition(".")[0] for name in graph} == {"everview", "everview_fuzz"}
    assert _cycle(graph) == []


def test_the_folders_of_sql_depend_in_one_direction():
    upwards = [
        (name, imported)
        for name, imports in _imports().items()
        for imported in imports
        if (above := _layer(name)) is not None
        and (below := _layer(imported)) is not None
        and SQL_LAYERS.index(below) < SQL_LAYERS.index(above)
    ]
    assert upwards == []


def test_dialects_and_the_allowlist_need_only_what_parses_and_binds():
    folders = {
        (_folder(name), _folder(imported))
        for name, imports in _imports().items()
        for imported in imports
        if _folder(name) in ("dialects", "allowlist") and _folder(imported) is not None
    }
    apart = {(a, b) for a, b in folders if a != b}
    assert {b for _, b in apart} <= {"parse", "bind"}


def test_a_cycle_is_found_if_it_is_for_types_alone():
    one = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from everview import two\n"
    graph = {
        "everview.one": _imported(one, {"everview.two"}),
        "everview.two": _imported("import everview.one", {"everview.one"}),
    }
    assert set(_cycle(graph)) == {"everview.one", "everview.two"}


def _imports() -> dict[str, set[str]]:
    """The modules of the packages that each module imports, at any depth of its text."""
    files = {_module(path): path for package in PACKAGES for path in package.rglob("*.py")}
    return {
        name: _imported(path.read_text(encoding="utf-8"), files) - {name}
        for name, path in files.items()
    }


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(text: str, modules: Iterable[str]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str() as module, level=0):
                # `from package import module` means the module, any other name its own module.
                full = {f"{module}.{alias.name}" for alias in node.names}
                inner = full & {*modules}
                names |= inner | ({module} if inner != full else set())
    return names & {*modules}


def _cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of one cycle, none where there is no cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _folder(module: str) -> str | None:
    parts = module.removeprefix("everview.lang.sql.").split(".")
    is_inside = module.startswith("everview.lang.sql.") and len(parts) > 1
    return parts[0] if is_inside else None


def _layer(module: str) -> str | None:
    folder = _folder(module)
    return folder if folder in SQL_LAYERS else None
