"""Stratification: the order in which relations are derived, mutually recursive ones together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from everview.errors import UserError
from everview.lang.datalog.syntax import Aggregate, Atom, Literal, Negation, Rule, Term, parts

Rules = Mapping[str, Iterable[Rule]]


def strata(rules: Rules) -> tuple[tuple[tuple[str, ...], ...], frozenset[str]]:
    """The strata in order, and the relations that are recursive.

    A relation must not depend on a negation or an aggregate of itself: an error names the cycle.
    """
    reads = {name: tuple(dict.fromkeys(_reads(name, rules))) for name in rules}
    order = _components(reads)
    recursive = frozenset(
        name for part in order for name in part if len(part) > 1 or name in reads[name]
    )
    for part in order:
        for name in part:
            for rule in rules[name]:
                _check_rule(rule, part, reads)
    return order, recursive


def _reads(name: str, rules: Rules) -> Iterator[str]:
    for rule in rules[name]:
        for literal in rule.body:
            for each in parts(literal):
                if isinstance(each, Atom) and each.relation in rules:
                    yield each.relation


def _components(reads: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The strongly connected components, each after those it reads (Tarjan, without recursion)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[tuple[str, ...]] = []
    place = {name: at for at, name in enumerate(reads)}
    for root in reads:
        work = [] if root in number else [(root, iter(reads[root]))]
        while work:
            name, others = work[-1]
            if name not in number:
                number[name] = lowest[name] = len(number)
                path.append(name)
            other = next((each for each in others if each not in number), None)
            if other is not None:
                work.append((other, iter(reads[other])))
                continue
            work.pop()
            near = (min(lowest[n], number[n]) for n in reads[name] if n in path)
            lowest[name] = min((lowest[name], *near))
            if lowest[name] == number[name]:
                at = path.index(name)
                found.append(tuple(sorted(path[at:], key=place.__getitem__)))
                del path[at:]
    return tuple(found)


def _check_rule(rule: Rule, part: tuple[str, ...], reads: Mapping[str, tuple[str, ...]]) -> None:
    for literal in rule.body:
        for atom, how in _needs_earlier(literal):
            if atom.relation in part:
                cycle = _path(atom.relation, rule.head.relation, reads)
                shown = " → ".join((*reversed(cycle), cycle[-1]))
                raise UserError(
                    "D007",
                    f"{rule.head.relation} depends on {how} of itself: {shown}",
                    span=atom.span,
                    remedy="derive what is negated or aggregated without what depends on it",
                )


def _needs_earlier(node: Literal | Term) -> Iterator[tuple[Atom, str]]:
    """The atoms that must be in an earlier stratum than a literal, and why."""
    if isinstance(node, Negation):
        yield node.atom, "the negation"
    for each in parts(node):
        if isinstance(each, Aggregate):
            for inner in parts(each):
                if isinstance(inner, Atom):
                    yield inner, f"the {each.function}"


def _path(start: str, end: str, reads: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The shortest path from a relation to another one that it depends on."""
    ways = [[start]]
    seen = {start}
    for way in ways:
        if way[-1] == end:
            return way
        for each in reads[way[-1]]:
            if each not in seen:
                seen.add(each)
                ways.append([*way, each])
    return [start]
