"""A trigger program as Python: functions for one row and for batches, over a dict for each map.

The text is built from the program as data. Names in it are numbers with a letter, and constants are
handed over as values, so nothing that a user wrote is in it. A function first computes what it
adds, reading old values, and then adds it: what `statement_tree` has at the nodes of its tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, getcontext, setcontext
from itertools import repeat
from typing import Any, TypeAlias

from everview.lang.agca.evaluate import matches
from everview.lang.agca.syntax import (
    Atom,
    walk,
)
from everview.trigger_programs.columns import (
    DATES,
    EXACT,
    Columns,
    is_text,
    unscaled_decimal,
)
from everview.trigger_programs.common_products import CommonProducts
from everview.trigger_programs.program import Trigger, TriggerProgram
from everview.trigger_programs.statement_tree import (
    INDENT,
    NATIVE,
    Filter,
    Index,
    Node,
    Number,
    SharedNames,
    StatementTree,
)

Key: TypeAlias = Any
"""The key of an entry: a value for one variable, else a tuple."""
Event: TypeAlias = tuple[str, int]
"""A relation, and 1 for the insertion of a row or −1 for its deletion."""


@dataclass(frozen=True, slots=True)
class Batch:
    """How rows of an event are handed over in batches: which columns, filtered before."""

    columns: tuple[int, ...]
    filters: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of a program, by relation and sign: for one row, and for columns of many."""

    row: Mapping[Event, Callable[..., None]]
    batch: Mapping[Event, Callable[..., None]]


@dataclass(frozen=True, slots=True)
class Generated:
    """Python for a program: a function for each event, for one row and for a batch if it can be.

    Beside it are how batches are handed over, the constants, and the indexes that it reads.
    """

    rows: Mapping[Event, str]
    batches: Mapping[Event, str]
    filtered: Mapping[Event, Batch]
    constants: tuple[Any, ...]
    indexes: tuple[Index, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return "".join((*self.rows.values(), *self.batches.values()))

    def functions(
        self,
        program: TriggerProgram,
        maps: dict[str, dict[Key, Any]],
        indexes: dict[Index, dict[Key, dict[Key, None]]],
        checked: Callable[[str, Any], Any],
    ) -> Functions:
        """The functions over the maps and indexes that they change.

        `checked` gives a row of a relation as it should be, where it is not, or raises.
        """
        scope: dict[str, Any] = {"M": matches, "D": DATES, "E": unscaled_decimal}
        scope |= {"__builtins__": {}, "type": type, "int": int, "Decimal": Decimal}
        scope |= {"str": str, "bool": bool, "date": date, "reversed": reversed}
        scope |= {"BaseException": BaseException, "X": restoring(program, maps, indexes)}
        scope |= {"zip": zip, "B": checked, "range": range, "map": map, "L": list, "Z": repeat(0)}
        scope |= {"len": len, "G": getcontext, "S": setcontext, "C": EXACT}
        scope |= {"T": is_text, "tuple": tuple, "list": list}
        scope |= {f"m{at}": maps[each.name] for at, each in enumerate(program.maps)}
        scope |= {f"i{at}": indexes[each] for at, each in enumerate(self.indexes)}
        scope |= {f"c{at}": each for at, each in enumerate(self.constants)}
        names = list(dict.fromkeys(each.relation for each in program.triggers))
        scope |= {f"n{at}": each for at, each in enumerate(names)}
        return Functions(_Compiled(self.rows, scope), _Compiled(self.batches, scope))


class _Compiled(dict[Event, Callable[..., None]]):
    """Functions by relation and sign, each compiled when it is first asked for."""

    def __init__(self, texts: Mapping[Event, str], scope: dict[str, Any]) -> None:
        super().__init__()
        self._texts = texts
        self._scope = scope

    def __missing__(self, event: Event) -> Callable[..., None]:
        made: dict[str, Any] = {}
        exec(compile(self._texts[event], "<triggers>", "exec"), self._scope, made)
        [self[event]] = made.values()
        return self[event]


def restoring(
    program: TriggerProgram,
    maps: dict[str, dict[Key, Any]],
    indexes: dict[Index, dict[Key, dict[Key, None]]],
) -> Callable[[int, Key, Any], None]:
    """What gives an entry of a map its old value back, whatever was done to it."""
    names = [each.name for each in program.maps]

    def restore(number: int, key: Key, old: Any) -> None:
        name = names[number]
        if old:
            maps[name][key] = old
        else:
            maps[name].pop(key, None)
        for index, entries in indexes.items():
            if index.map != name:
                continue
            parts = key if isinstance(key, tuple) else (key,)
            held = [parts[at] for at in index.positions]
            part = held[0] if len(held) == 1 else tuple(held)
            if old:
                entries.setdefault(part, {})[key] = None
            elif part in entries:
                entries[part].pop(key, None)
                if not entries[part]:
                    del entries[part]

    return restore


def generate(program: TriggerProgram, columns: Columns | None = None) -> Generated:
    """The Python of a program; for batches too, where the types of columns are known."""
    numbers = {each.name: at for at, each in enumerate(program.maps)}
    arity = {each.name: len(each.keys) for each in program.maps}
    shared = SharedNames(numbers, arity, columns)
    relations = list(dict.fromkeys(each.relation for each in program.triggers))
    trees = [StatementTree(each, shared, typed=False) for each in program.triggers]
    batch_trees: dict[int, StatementTree] = {}
    if columns is not None:
        shared.integral = {each.name for each in program.maps if columns.is_integral(each.body)}
        for at, trigger in enumerate(program.triggers):
            if _reads_what_it_writes(trigger):
                continue
            batch_trees[at] = StatementTree(trigger, shared, typed=True)
    rows: dict[Event, str] = {}
    for at, tree in enumerate(trees):
        lines = _row_function(at, tree, shared, relations.index(tree.trigger.relation))
        rows[tree.event] = "\n".join(lines) + "\n"
    batches = {
        tree.event: "\n".join(_batch_function(at, tree, shared)) + "\n"
        for at, tree in batch_trees.items()
    }
    filtered = {tree.event: Batch(tree.columns, tree.filters) for tree in batch_trees.values()}
    return Generated(rows, batches, filtered, tuple(shared.constants), tuple(shared.indexes))


def _reads_what_it_writes(trigger: Trigger) -> bool:
    """Whether an event sees what the one before it did, so that they cannot be added up first."""
    read = {q.relation for s in trigger.statements for q in walk(s.body) if isinstance(q, Atom)}
    return bool(read & {each.map for each in trigger.statements})


# One row


def _row_function(at: int, tree: StatementTree, shared: SharedNames, relation: int) -> list[str]:
    """One row: what it adds is computed, then added; what fails while adding is taken back."""
    typed = shared.columns is not None
    width = len(tree.trigger.row)
    lines = [f"def f{at}(row):"]
    if typed:
        kind = "(type(row) is not tuple and type(row) is not list)"
        lines += [f"{INDENT}if {kind} or len(row) != {width}:"]
        lines += [f"{INDENT * 2}row = B(n{relation}, row)"]
    root, known = tree.root, set[int]()

    def loaded(wanted: Iterable[int]) -> list[str]:
        """Columns of the row, as they must be."""
        new = [each for each in wanted if each not in known]
        known.update(new)
        made = [f"{INDENT}r{each} = row[{each}]" for each in new]
        if typed and new and shared.columns is not None:
            name = tree.trigger.relation
            tests = (shared.columns.test(name, e, f"r{e}", shared.constant) for e in new)
            made.append(f"{INDENT}if not ({' and '.join(tests)}):")
            made.append(f"{INDENT * 2}row = B(n{relation}, row)")
            made += [f"{INDENT * 2}r{each} = row[{each}]" for each in new]
        return made

    # What all statements need first: a row without it is left at once.
    while not root.added and len(root.children) == 1:
        [child] = root.children.values()
        step = child.step
        if step is None or not step.opens or step.is_loop or step.computes:
            break
        *before, test = step.lines
        lines += loaded(int(each) for line in step.lines for each in _ROW.findall(line))
        lines += [f"{INDENT}{line}" for line in before]
        lines += [f"{INDENT}if not ({test[3:-1]}):", f"{INDENT * 2}return"]
        root = child
    lines += loaded(tree.columns)
    body = _changes(tree, shared, root)
    if not typed:
        return lines + body
    before_ = [f"{INDENT}b = G()", f"{INDENT}S(C)", f"{INDENT}try:"]
    return [
        *lines,
        *before_,
        *(f"{INDENT}{line}" for line in body),
        f"{INDENT}finally:",
        f"{INDENT * 2}S(b)",
    ]


_ROW = re.compile(r"\br(\d+)\b")


def _changes(tree: StatementTree, shared: SharedNames, root: Node) -> list[str]:
    """What a row adds: all of it computed, then added."""
    lines: list[str] = []
    # Loops are last, so that what fails is taken back in the reverse order: their entries first.
    nodes = sorted((n for n in root.walk() if n.added), key=lambda each: each.in_loop)
    numbers = {id(added): n for n, added in enumerate(a for node in nodes for a in node.added)}
    flags = {id(node): n for n, node in enumerate(nodes)}
    plain = [a for node in nodes if not node.in_loop for a in node.added]
    guarded = [node for node in nodes if not node.in_loop and node is not root]
    keys: dict[int, str] = {}
    if plain:
        lines.append(INDENT + "".join(f"o{numbers[id(a)]} = " for a in plain) + "None")
    if guarded:
        lines.append(INDENT + "".join(f"l{flags[id(n)]} = " for n in guarded) + "False")
    lines += [
        f"{INDENT}a{numbers[id(a)]} = []" for node in nodes if node.in_loop for a in node.added
    ]

    def computed(node: Node, depth: int, products: CommonProducts) -> list[str]:
        indent = INDENT * depth
        products, before, values = products.at(node, (a.value.text for a in node.added))
        made = [f"{indent}{line}" for line in before]
        known: dict[str, str] = {}
        for added, value in zip(node.added, values, strict=True):
            number = numbers[id(added)]
            if node.in_loop:
                made.append(f"{indent}a{number}.append(({added.key}, {value}))")
            else:
                made.append(f"{indent}d{number} = {value}")
                if added.key not in known:
                    known[added.key] = f"k{number}"
                    made.append(f"{indent}k{number} = {added.key}")
                keys[number] = known[added.key]
        if node.added and not node.in_loop and node is not root:
            made.append(f"{indent}l{flags[id(node)]} = True")
        for child in node.children.values():
            made += _entered(child, depth, products, computed)
        return made

    lines += computed(root, 1, CommonProducts())
    looped = any(each.in_loop for each in nodes)
    lines += [f"{INDENT}u = []"] * looped + [f"{INDENT}try:"]
    for node in nodes:
        depth = 2
        if node in guarded:
            lines.append(f"{INDENT * depth}if l{flags[id(node)]}:")
            depth += 1
        for added in node.added:
            number, map_ = numbers[id(added)], shared.numbers[added.map]
            if node.in_loop:
                lines += [
                    f"{INDENT * depth}for k, d in a{number}:",
                    f"{INDENT * (depth + 1)}o = m{map_}.get(k, 0)",
                    f"{INDENT * (depth + 1)}u.append(({map_}, k, o))",
                ]
                lines += _stored(added.map, ("k", "d", "o"), added.sign, shared, depth + 1)
            else:
                names = keys[number], f"d{number}", f"o{number}"
                lines.append(f"{INDENT * depth}{names[2]} = m{map_}.get({names[0]}, 0)")
                lines += _stored(added.map, names, added.sign, shared, depth)
    lines += [f"{INDENT * 2}pass"] * (not nodes) + [f"{INDENT}except BaseException:"]
    if looped:
        lines += [f"{INDENT * 2}for each in reversed(u):", f"{INDENT * 3}X(*each)"]
    for added in reversed(plain):
        number = numbers[id(added)]
        lines += [
            f"{INDENT * 2}if o{number} is not None:",
            f"{INDENT * 3}X({shared.numbers[added.map]}, {keys[number]}, o{number})",
        ]
    lines.append(f"{INDENT * 2}raise")
    return lines


def _entered(
    child: Node,
    depth: int,
    products: CommonProducts,
    computed: Callable[[Node, int, CommonProducts], list[str]],
) -> list[str]:
    """The lines of a step, and of what is under it."""
    step = child.step
    assert step is not None
    lines = [f"{INDENT * depth}{line}" for line in step.lines]
    return lines + computed(child, depth + step.opens + step.deeper, products)


def _stored(
    map_: str, names: tuple[str, str, str], sign: int, shared: SharedNames, depth: int
) -> list[str]:
    """Add a number to the entry of a map at a key, which has an old value, and keep its indexes."""
    indent, name = INDENT * depth, f"m{shared.numbers[map_]}"
    key, number, old = names
    mine = shared.indexes_of(map_, key)
    lines = [f"{indent}v = {old} {'+' if sign > 0 else '-'} {number}", f"{indent}if v:"]
    lines.append(f"{indent}{INDENT}{name}[{key}] = v")
    for at, part in mine:
        lines += [
            f"{indent}{INDENT}if not {old}:",
            f"{indent}{INDENT * 2}e = i{at}.get({part})",
            f"{indent}{INDENT * 2}if e is None:",
            f"{indent}{INDENT * 3}i{at}[{part}] = {{{key}: None}}",
            f"{indent}{INDENT * 2}else:",
            f"{indent}{INDENT * 3}e[{key}] = None",
        ]
    lines += [f"{indent}elif {old}:", f"{indent}{INDENT}del {name}[{key}]"]
    for at, part in mine:
        lines += [
            f"{indent}{INDENT}del i{at}[{part}][{key}]",
            f"{indent}{INDENT}if not i{at}[{part}]:",
            f"{indent}{INDENT * 2}del i{at}[{part}]",
        ]
    return lines


# Many rows


def _batch_function(at: int, tree: StatementTree, shared: SharedNames) -> list[str]:
    """Many rows: what they add is added up by key, and then added to the maps, with a log."""
    nodes = [each for each in tree.root.walk() if each.added]
    maps: dict[str, list[Number]] = {}
    for node in nodes:
        for added in node.added:
            maps.setdefault(added.map, []).append(added.value)
    scales: dict[str, int] = {}
    for name, values in maps.items():
        found = [each.scale for each in values]
        scales[name] = NATIVE if NATIVE in found else max(found)
    lines = [f"def b{at}(columns, u, n):"]
    for name in maps:
        number = shared.numbers[name]
        if shared.arity[name]:
            lines += [f"{INDENT}d{number} = {{}}", f"{INDENT}g{number} = d{number}.get"]
        else:
            lines.append(f"{INDENT}d{number} = 0")
    row = ", ".join(f"r{each}" for each in tree.columns)
    each_row = f"for {row}, in zip(*columns):" if row else "for _ in range(n):"
    lines.append(f"{INDENT}{each_row}")

    def computed(node: Node, depth: int, products: CommonProducts) -> list[str]:
        indent = INDENT * depth
        products, before, values = products.at(node, (a.value.text for a in node.added))
        made = [f"{indent}{line}" for line in before]
        keys: dict[str, str] = {}
        for added, text in zip(node.added, values, strict=True):
            number, scale = shared.numbers[added.map], scales[added.map]
            [value, _] = tree.aligned([replace(added.value, text=text), Number("0", scale)])
            sign = "+" if added.sign > 0 else "-"
            if not shared.arity[added.map]:
                made.append(f"{indent}d{number} {sign}= {value}")
                continue
            key = added.key
            if not key.isidentifier():
                if key not in keys:
                    keys[key] = f"k{len(keys)}"
                    made.append(f"{indent}{keys[key]} = {key}")
                key = keys[key]
            made.append(f"{indent}d{number}[{key}] = g{number}({key}, 0) {sign} {value}")
        for child in node.children.values():
            made += _entered(child, depth, products, computed)
        return made

    lines += computed(tree.root, 2, CommonProducts()) or [f"{INDENT * 2}pass"]
    for name in maps:
        number = shared.numbers[name]
        if not shared.arity[name]:
            lines.append(f"{INDENT}d{number} = {{(): d{number}}}")
        lines += [
            f"{INDENT}olds = L(map(m{number}.get, d{number}, Z))",
            f"{INDENT}u.append(({number}, d{number}, olds))",
            f"{INDENT}for (k, d), o in zip(d{number}.items(), olds):",
        ]
        indent = INDENT * 2
        if scales[name] > 0:
            lines.append(f"{indent}d = E(d, {scales[name]})")
        lines += _stored(name, ("k", "d", "o"), 1, shared, 2)
    return lines
