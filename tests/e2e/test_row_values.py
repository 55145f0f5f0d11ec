"""Row values compare pair by pair, with NULLs by SQL's rules, in statements and in views."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev

PAIRS = [(i, j) for i in (None, 1, 2, 3) for j in (None, 10, 20)]


def equal(a, b):
    return None if a is None or b is None else a == b


def less(a, b):
    return None if a is None or b is None else a < b


def negated(x):
    return None if x is None else not x


def both(x, y):
    return False if x is False or y is False else None if x is None or y is None else True


def either(x, y):
    return negated(both(negated(x), negated(y)))


def rows_equal(left, right):
    return reduce(both, map(equal, left, right))


def rows_less(left, right, last=less):
    """PostgreSQL: the first pair that is unequal or has a NULL decides."""
    *before, (a, b) = zip(left, right, strict=True)
    for x, y in before:
        if x is None or y is None:
            return None
        if x != y:
            return x < y
    return last(a, b)


def at_most(a, b):
    return None if a is None or b is None else a <= b


MEANINGS = {
    "=": rows_equal,
    "<>": lambda a, b: negated(rows_equal(a, b)),
    "<": rows_less,
    "<=": lambda a, b: rows_less(a, b, at_most),
    ">": lambda a, b: rows_less(b, a),
    ">=": lambda a, b: rows_less(b, a, at_most),
    "<=>": lambda a, b: tuple(a) == tuple(b),
    "IS DISTINCT FROM": lambda a, b: tuple(a) != tuple(b),
}


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    with ev.open(tmp_path_factory.mktemp("rows") / "s", engine="duckdb") as db:
        yield db


def written(row):
    return f"({', '.join('CAST(NULL AS INT)' if each is None else str(each) for each in row)})"


values = st.sampled_from([None, 1, 2])


@given(
    st.integers(2, 4).flatmap(lambda n: st.tuples(*[st.lists(values, min_size=n, max_size=n)] * 2))
)
@settings(max_examples=30)
def test_a_comparison_of_rows_is_that_of_postgresql(db, rows):
    left, right = rows
    shown = ", ".join(
        f"{written(left)} {symbol} {written(right)} AS c{n}" for n, symbol in enumerate(MEANINGS)
    )
    [answers] = db.sql(f"SELECT {shown}").rows()
    assert list(answers) == [meaning(left, right) for meaning in MEANINGS.values()]


@given(st.lists(st.tuples(values, values), min_size=1, max_size=6), st.tuples(values, values))
@settings(max_examples=30)
def test_in_is_true_of_one_and_false_of_none(db, listed, row):
    inside = reduce(either, (rows_equal(row, each) for each in listed))
    shown = ", ".join(map(written, listed))
    found = db.sql(
        f"SELECT {written(row)} IN ({shown}) AS x, {written(row)} NOT IN ({shown}) AS y, "
        f"{written(row)} BETWEEN {written(listed[0])} AND {written(listed[-1])} AS z"
    ).rows()
    between = both(
        MEANINGS[">="](row, listed[0]),
        MEANINGS["<="](row, listed[-1]),
    )
    assert found == [(inside, negated(inside), between)]


CONDITIONS = {
    "(i, j) = (2, 20)": lambda r: rows_equal(r, (2, 20)),
    "(i, j) <> (2, 20)": lambda r: negated(rows_equal(r, (2, 20))),
    "(i, j) IN ((1, 10), (3, 20))": lambda r: r in ((1, 10), (3, 20)),
    "(i, j) NOT IN ((1, 10), (3, 20))": lambda r: negated(
        either(rows_equal(r, (1, 10)), rows_equal(r, (3, 20)))
    ),
    "(i, j) < (2, 20)": lambda r: rows_less(r, (2, 20)),
    "NOT (i, j) >= (2, 20)": lambda r: negated(rows_less((2, 20), r, at_most)),
    "(i, j) = (i, j)": lambda r: rows_equal(r, r),
    "(i, j) IS NULL": lambda r: r == (None, None),
    "(i, j) IS NOT NULL": lambda r: None not in r,
    "NOT (i, j) IS NULL": lambda r: r != (None, None),
    "NOT ((i, j) IS NOT NULL)": lambda r: None in r,
    "(i + 1, j) IS NOT NULL OR i > 2": lambda r: None not in r or r[0] == 3,
    "((i, j), i) = ((1, 10), 1)": lambda r: rows_equal((*r, r[0]), (1, 10, 1)),
}


def test_views_and_statements_say_the_same(tmp_path, open_db):
    with open_db(tmp_path / "s") as db:
        db.sql("CREATE TABLE t (i INT, j INT)")
        for n, condition in enumerate(CONDITIONS):
            db.sql(f"CREATE VIEW v{n} AS SELECT i, j FROM t WHERE {condition}")
        rows = [*PAIRS, (2, 20), (1, 10)]
        db.insert("t", rows)

        def compare():
            for n, (condition, meaning) in enumerate(CONDITIONS.items()):
                wanted = sorted((r for r in rows if meaning(r)), key=str)
                assert sorted(db.read(f"v{n}").rows(), key=str) == wanted, condition
                asked = db.sql(f"SELECT i, j FROM t WHERE {condition}").rows()
                assert sorted(asked, key=str) == wanted, condition
            assert db.audit().ok

        compare()
        assert db.sql("DELETE FROM t WHERE (i, j) = (2, 20)").changed == 2
        rows = [r for r in rows if r != (2, 20)]
        compare()
        assert (
            db.sql("UPDATE t SET (i, j) = (2, i) WHERE (i, j) IN ((1, 10), (3, NULL))").changed == 2
        )
        rows = [(2, 1) if r == (1, 10) else r for r in rows]
        compare()


def test_a_long_list_of_rows_is_read(db):
    listed = ", ".join(f"({n}, {n + 1})" for n in range(300))
    assert db.sql(f"SELECT (299, 300) IN ({listed}) AS x, (1, 1) IN ({listed}) AS y").rows() == [
        (True, False)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (1, 2) = (1, 2, 3) AS x",
        "SELECT (1, 2) IN ((1, 2), (1, 2, 3)) AS x",
        "SELECT (1, 2) < (1, 2, 3) AS x",
        "CREATE VIEW v AS SELECT (1, 2) = (1, 2, 3) AS x",
    ],
)
def test_rows_of_different_widths_are_refused(db, text):
    before = db.epoch
    with pytest.raises(ev.UserError, match="values stands beside one of"):
        db.sql(text)
    assert db.epoch == before


def test_a_statement_sets_rows_of_the_same_width(db):
    db.sql("CREATE TABLE w (a INT, b INT); INSERT INTO w VALUES (1, 2)")
    with pytest.raises(ev.UserError, match="values stands beside one of"):
        db.sql("UPDATE w SET (a, b) = (1, 2, 3)")
    assert db.sql("UPDATE w SET (a, b) = (b, a)").changed == 1
    assert db.read("w").rows() == [(2, 1)]


def test_in_another_dialect_a_row_is_not_null_where_it_says_so(db):
    asked = "SELECT (1, NULL) IS NOT NULL AS x"
    assert db.sql(asked, dialect="postgres").rows() == [(False,)]
    with pytest.raises(ev.UserError, match="IS NOT NULL") as refused:
        db.sql(asked, dialect="mysql")
    assert refused.value.span is not None
