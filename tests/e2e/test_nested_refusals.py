"""What a nested view cannot say is refused when it is declared, with place and remedy."""

# Tables are called as the paper calls them.
# ruff: noqa: N803

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import everview as ev
from e2e.messages import internals
from everview.database.database import Database
from everview.errors import UserError
from everview_fuzz.nested.comprehensions import defined


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with ev.open(str(tmp_path_factory.mktemp("refused") / "store"), engine="duckdb") as opened:
        opened.sql("CREATE TABLE A (a BIGINT, b STRING, `odd one` INT, m MAP<STRING,INT>)")
        opened.insert("A", [(1, "x", 2, {"k": 1})])
        yield opened


FUNCTIONS = {
    "no such component": ("N003", "[a.nothing for a in A]"),
    "no such name": ("N004", "[a.a for a in B]"),
    "no such function": ("N004", "[nothing(a.a) for a in A]"),
    "not a collection": ("N003", "1"),
    "iterating a number": ("N003", "[x for a in A for x in a.a]"),
    "ill-typed arithmetic": ("N003", "[a.b - 1 for a in A]"),
    "ill-typed condition": ("N003", "[a.a for a in A if a.a]"),
    "ill-typed union": ("N003", "[a.a for a in A] + [a.b for a in A]"),
    "ill-typed choice": ("N003", "[a.a if a.a > 1 else a.b for a in A]"),
    "ill-typed comparison": ("N003", "[a.a for a in A if a.a == a.b]"),
    "tuple plus number": ("N003", "[(a.a, 1) + 1 for a in A]"),
    "comparing bags": ("N002", "[a.a for a in A if [b.a for b in A] == []]"),
    "ordering bags": ("N002", "[a.a for a in A if [b.a for b in A] < [1]]"),
    "testing a bag": ("N002", "[a.a for a in A if [b.a for b in A if b.a == a.a]]"),
    "not of a bag": ("N002", "[a.a for a in A if not [b.a for b in A]]"),
    "sum of texts": ("N003", "[sum(b.b for b in A) for a in A]"),
    "least tuple": ("N003", "[min((b.a, b.b) for b in A) for a in A]"),
    "set comprehension": ("N010", "{a.a for a in A}"),
    "set": ("N010", "set(a.a for a in A)"),
    "dict comprehension": ("N010", "{a.a: a.b for a in A}"),
    "lambda": ("N010", "[(lambda x: x)(a.a) for a in A]"),
    "sort key": ("N010", "sorted(A, key=lambda a: a.a)"),
    "slice": ("N010", "[a.a for a in A][:3]"),
    "negative index": ("N010", "[(a.a, 1)[-1] for a in A]"),
    "method that changes": ("N010", "[a.b.append(1) for a in A]"),
    "star": ("N010", "[len(*a) for a in A]"),
    "double star": ("N010", "[dict(**a) for a in A]"),
    "bytes": ("N010", "[b'x' for a in A]"),
    "infinity": ("N010", "[1e999 for a in A]"),
    "huge number": ("N010", f"[{10**40} for a in A]"),
    "walrus": ("N010", "[(y := a.a) for a in A]"),
    "power": ("N010", "[a.a ** 2 for a in A]"),
    "identity": ("N010", "[a.a for a in A if a.a is 1]"),
    "format": ("N010", "[f'{a.b:>4}' for a in A]"),
    "import": ("N010", "[__import__('os').getcwd() for a in A]"),
    "open": ("N010", "[open(a.b) for a in A]"),
    "eval": ("N010", "eval('A')"),
    "function as a value": ("N010", "[len for a in A]"),
    "none alone": ("N005", "[None for a in A]"),
    "empty alone": ("N005", "[(a.a, []) for a in A]"),
    "nothing at all": ("N005", "[]"),
    "tuple of nothing": ("N005", "[() for a in A]"),
    "odd name": ("N006", "[a for a in A]"),
    "name of the weight": ("N006", "[dict(_w=a.a) for a in A]"),
    "name of the epoch": ("N006", "[(a.a, [dict(_Epoch=b.a) for b in A]) for a in A]"),
    "no name": ("N010", "[{'': a.a} for a in A]"),
    "half a character": ("N010", "[(a.a, '\\ud800') for a in A]"),
    "part of a class": ("N010", "[str.maketrans for a in A]"),
    "list by place": ("N003", "[a.a for a in A][0]"),
    "long sum": ("N010", f"[{' + '.join(['a.a'] * 500)} for a in A]"),
    "many conditions": ("N010", f"[{' + '.join(['(a.a if a.b else 1)'] * 300)} for a in A]"),
    "deep choices": (
        "N010",
        f"[{' '.join(f'{n} if a.a == {n} else' for n in range(299))} 0 for a in A]",
    ),
    "many constants": ("N010", f"[a.a for a in A if a.a in {[*range(6000)]}]"),
    "equal names": ("N006", "[dict(x=a.a, X=a.b) for a in A]"),
    "names twice": ("N010", "[{'x': a.a, 'x': a.b} for a in A]"),
    "computed name": ("N010", "[{a.b: 1} for a in A]"),
    "comparing maps": ("N003", "[a.a for a in A if a.m == a.m]"),
    "too many names": ("N010", "[x for x, y, z in [(a.a, a.b) for a in A]]"),
    "target that changes": ("N010", "[1 for A.x in A]"),
    "f-string of a bag": ("N002", "[f'{[b.a for b in A]}' for a in A]"),
    "star in a tuple": ("N010", "[(*a,) for a in A]"),
    "modulo of fractions": ("N003", "[a.a % 1.5 for a in A]"),
}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("case", FUNCTIONS)
def test_a_function_is_refused_with_its_place(db: Database, case: str) -> None:
    code, body = FUNCTIONS[case]
    text = f"def query(A):\n    x = 1\n    return {body}\n"
    before = db.catalog.to_json()
    with pytest.raises(UserError) as refused:
        db.nested(defined(text), name="v")
    assert refused.value.code == code, refused.value
    assert refused.value.remedy
    assert refused.value.span is not None
    for word in ("union sng", "Γ", "Comp", "Starred", "Stmt", "concat", "positive NRC"):
        assert word not in f"{refused.value.problem} {refused.value.remedy}"
    if code in ("N010", "N004", "N002", "N003") and case != "not a collection":
        assert "<comprehension" in refused.value.problem
        assert ":3: " in refused.value.problem
    assert internals(refused.value, text) == []
    assert db.catalog.to_json() == before


@dataclass
class Doubled:
    x: int

    def __post_init__(self) -> None:
        self.x *= 2


@dataclass(init=False)
class Own:
    x: int

    def __init__(self, x: int) -> None:
        self.x = x + 1


@dataclass
class Inherited(Own):
    y: int = 1


class Later(NamedTuple("Later", [("x", int)])):  # type: ignore[misc]
    def __new__(cls, x: int) -> Later:
        return super().__new__(cls, x + 1)  # type: ignore[no-any-return]


@dataclass
class Made:
    x: int
    y: list[int] = field(default_factory=list)


def decorated(function: Any) -> Any:
    return wraps(function)(lambda *given: function(*given) + 1)


@decorated
def plain(x: int) -> int:
    return x


HELPED = {
    "Doubled(a.a)": "computes its components",
    "Own(a.a)": "computes its components",
    "Later(a.a)": "computes its components",
    "Made(a.a)": "the default of y of Made is computed",
    "Inherited(1, 2, 3)": "too many positional",
    "plain(a.a)": "is decorated",
    "helper()": "missing a required argument: 'x'",
    "helper(1, 2)": "too many positional",
    "helper(1, x=2)": "multiple values for argument 'x'",
    "helper(1, w=2)": "unexpected keyword argument 'w'",
    "several(1, 2)": "any number of them",
    "odd(1)": "no value of the database",
    "a.a ** 2": r"\*\* has no meaning",
    "a.a & 1": "& has no meaning",
    "~a.a": "~ has no meaning",
    "a.a << 1": "<< has no meaning",
    "A @ A": "@ has no meaning",
}
"""What makes records and calls helpers in a way that the source does not tell, and why."""


@pytest.mark.parametrize("body", HELPED)
def test_a_call_that_is_not_what_is_written_is_refused(db: Database, body: str) -> None:
    def helper(x: Any, *, y: int = 1) -> Any:
        return x

    def several(x: Any, *more: Any) -> Any:
        return x

    def odd(x: Any, y: object = object) -> Any:
        return x

    around = {"helper": helper, "several": several, "odd": odd, **globals()}
    with pytest.raises(UserError, match=HELPED[body]) as refused:
        db.nested(defined(f"def query(A):\n    return [{body} for a in A]\n", **around), name="v")
    assert refused.value.code == "N010"
    assert refused.value.remedy


STATEMENTS = {
    "loop": "for a in A:\n        pass\n    return A",
    "while": "while True:\n        pass",
    "mutation": "x = []\n    x.append(1)\n    return x",
    "augmented": "x = [1]\n    x += [2]\n    return x",
    "assigned twice": "x = [1]\n    x = [2]\n    return x",
    "parameter assigned": "A = [1]\n    return A",
    "if": "if True:\n        return A\n    return A",
    "no return": "x = 1",
    "return nothing": "return",
    "after return": "return A\n    x = 1",
    "global": "global x\n    return A",
    "import": "import os\n    return A",
    "raise": "raise ValueError",
    "with": "with open('x') as f:\n        return A",
    "delete": "del A",
    "recursion": "return [query(A) for a in A]",
    "inner recursion": "def f(x):\n        return f(x)\n    return [f(a.a) for a in A]",
    "written out twice, and again": "x = [1]\n    "
    + "\n    ".join(f"x{n} = x{n - 1} + x{n - 1}" for n in range(1, 30)).replace("x0", "x")
    + "\n    return x29",
    "wrong arguments": "def f(x):\n        return x\n    return [f() for a in A]",
}


@pytest.mark.parametrize("case", STATEMENTS)
def test_a_statement_is_refused_with_its_place(db: Database, case: str) -> None:
    text = f"def query(A):\n    {STATEMENTS[case]}\n"
    with pytest.raises(UserError) as refused:
        db.nested(defined(text), name="v")
    assert refused.value.code == "N010", refused.value
    assert refused.value.span is not None
    assert internals(refused.value, text) == []
    assert refused.value.remedy
    assert re.match(r"<comprehension \d+>:[1-9]\d?: ", refused.value.problem)
    for word in ("While", "AugAssign", "ImportFrom", "Global", "ClassDef"):
        assert word not in refused.value.problem


async def waiting(A: Any) -> Any:
    return [a async for a in A]


def test_an_async_function_is_refused_with_its_place(db: Database) -> None:
    with pytest.raises(UserError) as refused:
        db.nested(waiting)
    assert "test_nested_refusals.py:" in refused.value.problem
    assert "async" in refused.value.problem
    assert refused.value.span is not None


TEXTS = {
    "": "N001",
    "for m in": "N001",
    "for in in M union sng(1)": "N001",
    "sng(1": "N001",
    "sng(1) sng(2)": "N001",
    "nothing(1)": "N001",
    "sng('x": "N001",
    "sng(date('x'))": "N001",
    "sng(decimal('nan'))": "N001",
    "sng(1e999)": "N001",
    f"sng({'9' * 50})": "N001",
    "sng((a: 1, a: 2))": "N001",
    "(" * 200 + "1" + ")" * 200: "N001",
    "distinct(A)": "N002",
    "empty(A)": "N002",
    "for a in A where member(a) union sng(1)": "N002",
    "for a in A where A union sng(1)": "N002",
    "for a in Nowhere union sng(1)": "N004",
    "flatten(A)": "N003",
    "for a in A union a": "N003",
    "⊖(for a in A union sng(a.a))": "N007",
    "let X := 1 in sng(2)": "N003",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_refused_with_its_place(db: Database, text: str) -> None:
    with pytest.raises(UserError) as refused:
        db.nested(text, name="v")
    assert refused.value.code == TEXTS[text], refused.value
    assert refused.value.span is not None


class _Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, rows: Any) -> Any:
        return rows


def test_arguments_are_checked(db: Database, tmp_path: Path) -> None:
    def good(A: Any) -> Any:
        return [a.a for a in A]

    def with_default(A: Any = 1) -> Any:
        return [a.a for a in A]

    constant, unhashable = ([1],), _Unhashable()

    def calls_a_constant(A: Any) -> Any:
        return constant(A)  # type: ignore[operator]

    def calls_an_object(A: Any) -> Any:
        return unhashable(A)

    for query, options in (
        (3, {}),
        (calls_a_constant, {}),
        (calls_an_object, {}),
        (len, {}),
        (lambda A: A, {}),
        (with_default, {}),
        (good, {"name": 3}),
        (good, {"tables": 3}),
        (good, {"tables": {"A": "nowhere"}}),
        (good, {"name": "_w"}),
        (good, {"name": "A"}),
        ("sng(1)", {}),
    ):
        with pytest.raises(UserError):
            db.nested(query, **options)  # type: ignore[arg-type]
    assert not db.catalog.views
    with pytest.raises(UserError, match="X002"):
        db.read("A", nested=1)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="N008"):
        db.changes("A", path="b")
