"""Random rule sets, what they mean in plain Python, and how they are written in two languages."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

Row = tuple[int | None, ...]
Relations = dict[str, set[Row]]
Term = str | int
Values = Mapping[str, int | None]

GIVEN = {"e": 2, "f": 2}
SIGNS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "!=": lambda a, b: a != b,
}
COLUMNS = "ab"


@dataclass(frozen=True)
class Atom:
    """A relation with a variable or a constant at each place; `_` is any value."""

    relation: str
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Comparison:
    """A comparison of a variable with another, or with a constant."""

    left: str
    sign: str
    right: Term


@dataclass(frozen=True)
class Rule:
    """The head holds when every atom of the body does, no denied one and every test."""

    head: Atom
    body: tuple[Atom, ...]
    denied: tuple[Atom, ...] = ()
    tests: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class RuleSet:
    """Derived relations in strata, each with its rules; a bag counts the ways to derive a row."""

    strata: tuple[tuple[str, ...], ...]
    rules: dict[str, tuple[Rule, ...]]
    bag: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The derived relations."""
        return tuple(self.rules)

    def reached(self, name: str) -> set[str]:
        """All relations that one depends on, itself if it is recursive."""
        found: dict[str, None] = {}
        waiting = [name]
        while waiting:
            rules = self.rules.get(waiting.pop(), ())
            read = {atom.relation for rule in rules for atom in (*rule.body, *rule.denied)}
            waiting += read - {*found}
            found |= dict.fromkeys(read)
        return {*found}

    def circle(self, name: str) -> set[str]:
        """The relations that depend on one that depends on them."""
        return {each for each in self.names if each in self.reached(name) & self.reaching(name)}

    def reaching(self, name: str) -> set[str]:
        """The relations that depend on one."""
        return {each for each in self.names if name in self.reached(each)}

    @property
    def kinds(self) -> set[str]:
        """What is recursive about the rules, and whether a derived relation is denied."""
        found = set[str]()
        for name in self.names:
            circle = self.circle(name)
            inside = [sum(a.relation in circle for a in rule.body) for rule in self.rules[name]]
            found |= {"linear"} if 1 in inside else set()
            found |= {"non-linear"} if max(inside) > 1 else set()
            found |= {"mutual"} if len(circle) > 1 else set()
            denied = (atom.relation for rule in self.rules[name] for atom in rule.denied)
            if self.circle(name):
                found |= {"negation" for each in denied if each in self.names}
        return found


# What rules mean


def meaning(made: RuleSet, given: Relations) -> Relations:
    """All relations: in each stratum everything that rules derive, until nothing is new."""
    found = {**given, **{name: set[Row]() for name in made.names}}
    for stratum in made.strata:
        rules = [rule for name in stratum for rule in made.rules[name]]
        while True:
            derived = [(rule.head.relation, row) for rule in rules for row in heads(rule, found)]
            if all(row in found[name] for name, row in derived):
                break
            for name, row in derived:
                found[name].add(row)
    return found


def ways(made: RuleSet, given: Mapping[str, Counter[Row]]) -> Counter[Row]:
    """The rows of a bag: what the rules derive of the rows that the level before derived."""
    [name] = made.names
    first, *others = made.rules[name]
    rows = {each: list(bag.elements()) for each, bag in given.items()}
    level = found = Counter(heads(first, rows))
    while level:
        rows[name] = list(level.elements())
        level = Counter(row for rule in others for row in heads(rule, rows))
        found = found + level
    return found


def heads(rule: Rule, found: Mapping[str, Iterable[Row]]) -> Iterator[Row]:
    """The rows a rule derives, as often as there are ways to."""
    for values in _ways(rule.body, {}, found):
        denied = any(
            True for atom in rule.denied for row in found[atom.relation] if _met(atom, row, values)
        )
        if not denied and all(_holds(test, values) for test in rule.tests):
            yield tuple(_value(term, values) for term in rule.head.terms)


def _ways(
    body: tuple[Atom, ...], values: Values, found: Mapping[str, Iterable[Row]]
) -> Iterator[Values]:
    if not body:
        yield values
        return
    for row in found[body[0].relation]:
        if (more := _met(body[0], row, values)) is not None:
            yield from _ways(body[1:], more, found)


def _met(atom: Atom, row: Row, values: Values) -> dict[str, int | None] | None:
    """The values with those of a row, or None where they differ; NULL equals nothing."""
    made = dict(values)
    for term, value in zip(atom.terms, row, strict=True):
        if term == "_":
            continue
        if isinstance(term, str) and term not in made:
            made[term] = value
        elif value is None or _value(term, made) != value:
            return None
    return made


def _holds(test: Comparison, values: Values) -> bool:
    left, right = values[test.left], _value(test.right, values)
    return left is not None and right is not None and SIGNS[test.sign](left, right)


def _value(term: Term, values: Values) -> int | None:
    return values[term] if isinstance(term, str) else term


# How they are drawn


def drawn(rng: random.Random, mark: str, nodes: int) -> RuleSet:
    """Two or three derived relations in one or two strata, with one to three rules each."""
    names = [f"{letter}{mark}" for letter in "pqr"[: rng.choice((2, 3))]]
    arities = {name: rng.choice((1, 2, 2, 2)) for name in names}
    edge = rng.choice((0, 1, 1))
    strata = tuple(tuple(part) for part in (names[:edge], names[edge:]) if part)
    drawing = _Drawing(rng, {**GIVEN, **arities}, nodes)
    rules: dict[str, tuple[Rule, ...]] = {}
    below = [*GIVEN]
    for stratum in strata:
        for name in stratum:
            own = [(), *rng.choice([[stratum], [stratum], [stratum] * 2, [()]])]
            drew = [drawing.rule(name, [*below, *each], below, each) for each in own]
            rules[name] = tuple(dict.fromkeys(drew))
        below = [*below, *stratum, *stratum]
    return RuleSet(strata, rules)


def drawn_bag(rng: random.Random, mark: str, nodes: int) -> RuleSet:
    """One relation whose rows come in finitely many ways: every step goes further up."""
    name = f"w{mark}"
    drawing = _Drawing(rng, {**GIVEN, name: 2}, nodes)
    onward = Atom(name, ("x0", "x1")), Atom(rng.choice([*GIVEN]), ("x1", "x2"))
    back = Atom(rng.choice([*GIVEN]), ("x0", "x1")), Atom(name, ("x1", "x2"))
    head = Atom(name, ("x0", "x2"))
    steps = [
        Rule(head, onward, tests=(Comparison("x1", "<", "x2"),)),
        Rule(head, back, tests=(Comparison("x0", "<", "x1"),)),
    ]
    kept = rng.sample(steps, rng.choice((1, 1, 2)))
    if rng.random() < 0.5:
        denied = drawing.denied(rng.choice([*GIVEN]), ["x0", "x1", "x2"])
        kept[0] = replace(kept[0], denied=(denied,))
    start = Rule(Atom(name, ("x0", "x1")), (Atom(rng.choice([*GIVEN]), ("x0", "x1")),))
    return RuleSet(((name,),), {name: (start, *kept)}, bag=True)


@dataclass(frozen=True)
class _Drawing:
    rng: random.Random
    arities: Mapping[str, int]
    nodes: int

    def rule(
        self, name: str, readable: list[str], deniable: list[str], own: tuple[str, ...]
    ) -> Rule:
        """A safe rule: every variable of its head, of a test or denied has a value.

        Its first or last atom is of an `own` relation, if there are any.
        """
        rng = self.rng
        fresh = (f"x{number}" for number in count())
        body: list[Atom] = []
        bound: list[str] = []
        read = [rng.choice(readable) for _ in range(rng.choice((1, 2, 2, 2, 2, 3)))]
        if own:
            read[rng.choice((0, -1))] = rng.choice(own)
        for relation in read:
            body.append(self._atom(relation, bound, fresh))
            bound += dict.fromkeys(
                t for t in body[-1].terms if isinstance(t, str) and t not in bound
            )
        arity = self.arities[name]
        ends = [bound[0], bound[-1]][:arity] if rng.random() < 0.6 else []
        head = ends or [rng.choice(bound) for _ in range(arity)]
        made = Rule(Atom(name, tuple(head)), tuple(body))
        if rng.random() < 0.05:
            made = replace(made, head=Atom(name, (*head[1:], rng.randrange(self.nodes))))
        if rng.random() < 0.35:
            made = replace(made, denied=(self.denied(rng.choice(deniable), bound),))
        if rng.random() < 0.25:
            right = rng.choice([*bound, rng.randrange(self.nodes)])
            sign = rng.choice([*SIGNS])
            made = replace(made, tests=(Comparison(rng.choice(bound), sign, right),))
        return made

    def _atom(self, relation: str, bound: list[str], fresh: Iterator[str]) -> Atom:
        rng = self.rng
        terms: list[Term] = [next(fresh) for _ in range(self.arities[relation])]
        if bound and rng.random() < 0.95:
            at = 0 if rng.random() < 0.8 else len(terms) - 1
            terms[at] = bound[-1] if rng.random() < 0.7 else rng.choice(bound)
        for at in range(len(terms)):
            if rng.random() < 0.04:
                terms[at] = rng.choice([*bound, rng.randrange(self.nodes)])
        if all(isinstance(term, int) for term in terms):
            terms[0] = next(fresh)
        return Atom(relation, tuple(terms))

    def denied(self, relation: str, bound: list[str]) -> Atom:
        """An atom of values that are there already, or of any value."""
        rng = self.rng
        terms: list[Term] = [rng.choice(bound) for _ in range(self.arities[relation])]
        if len(terms) > 1 and rng.random() < 0.4:
            terms[rng.randrange(len(terms))] = rng.choice(("_", rng.randrange(self.nodes)))
        return Atom(relation, tuple(terms))


# How they are written


def datalog(made: RuleSet, arities: Mapping[str, int] = GIVEN) -> str:
    """The rules in Datalog; what is given is read from tables of those names."""
    given = [f"{_declared(name, arity)} .input {name}" for name, arity in arities.items()]
    derived = [_declared(name, len(rules[0].head.terms)) for name, rules in made.rules.items()]
    rules = [_clause(rule) for name in made.names for rule in made.rules[name]]
    return "\n".join([*given, *derived, f".output {', '.join(made.names)}", *rules])


def _declared(name: str, arity: int) -> str:
    return f".decl {name}({', '.join(f'{column}: number' for column in COLUMNS[:arity])})"


def _clause(rule: Rule) -> str:
    body = [
        *map(_written, rule.body),
        *(f"!{_written(atom)}" for atom in rule.denied),
        *(f"{test.left} {test.sign} {test.right}" for test in rule.tests),
    ]
    return f"{_written(rule.head)} :- {', '.join(body)}."


def _written(atom: Atom) -> str:
    return f"{atom.relation}({', '.join(map(str, atom.terms))})"


def sql(made: RuleSet, name: str, rng: random.Random) -> str:
    """One relation as a query; what is denied in any of the ways that SQL has."""
    order = sorted(made.names, key=lambda each: len(made.reached(each) | {each}))
    union = " UNION ALL " if made.bag else " UNION "
    parts = [_defined(each, made.rules[each], union, rng) for each in order]
    return f"WITH RECURSIVE {', '.join(parts)} SELECT * FROM {name}"


def _defined(name: str, rules: tuple[Rule, ...], union: str, rng: random.Random) -> str:
    columns = ", ".join(COLUMNS[: len(rules[0].head.terms)])
    if len(rules) == 1:
        return f"{name}({columns}) AS (SELECT DISTINCT {_select(rules[0], rng)})"
    terms = union.join(f"SELECT {_select(rule, rng)}" for rule in rules)
    return f"{name}({columns}) AS ({terms})"


def _select(rule: Rule, rng: random.Random) -> str:
    places: dict[str, str] = {}
    tables, where = [], []
    for number, atom in enumerate(rule.body):
        tables.append(f"{atom.relation} AS t{number}")
        where += _equal(atom, f"t{number}", places)
    where += (f"{places[t.left]} {t.sign} {_place(t.right, places)}" for t in rule.tests)
    joined = " CROSS JOIN ".join(tables)
    for number, atom in enumerate(rule.denied):
        other = f"{atom.relation} AS d{number}"
        equal = " AND ".join(_equal(atom, f"d{number}", dict(places)))
        if rng.random() < 0.5:
            joined += f" LEFT ANTI JOIN {other} ON {equal}"
        else:
            where.append(f"NOT EXISTS (SELECT 1 FROM {other} WHERE {equal})")
    outputs = ", ".join(
        f"{_place(term, places)} AS {column}"
        for term, column in zip(rule.head.terms, COLUMNS, strict=False)
    )
    return f"{outputs} FROM {joined}" + (f" WHERE {' AND '.join(where)}" if where else "")


def _equal(atom: Atom, alias: str, places: dict[str, str]) -> list[str]:
    """What makes a row of `alias` meet an atom; variables met first get their places."""
    found = []
    for term, column in zip(atom.terms, COLUMNS, strict=False):
        place = f"{alias}.{column}"
        if term == "_":
            continue
        if isinstance(term, str) and term not in places:
            places[term] = place
        else:
            found.append(f"{place} = {_place(term, places)}")
    return found


def _place(term: Term, places: Mapping[str, str]) -> str:
    return places[term] if isinstance(term, str) else str(term)
