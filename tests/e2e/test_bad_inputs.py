"""Bad input is refused in words of the language, and nothing has changed; what is good is not."""

from __future__ import annotations

import pytest

import everview as ev
from cases import check_each, sampled
from e2e.bad_inputs import ASKED, SETUP, STATEMENTS, VIEWS, told


@pytest.fixture(scope="module")
def db(open_db, tmp_path_factory):
    opened = open_db(tmp_path_factory.mktemp("bad") / "store")
    opened.sql(SETUP)
    yield opened
    opened.close()


def refusal(db, text: str) -> ev.UserError:
    """The error of a statement that leaves everything as it was."""
    before = (db.epoch, db.catalog.to_json())
    with pytest.raises(ev.UserError) as caught:
        db.sql(text)
    assert (db.epoch, db.catalog.to_json()) == before
    error = caught.value
    assert error.span is not None, error.render()
    assert error.remedy, error.render()
    assert "sqlglot" not in error.render() or "dialect" in error.render()
    return error


def is_refused(db, text: str, code: str, problem: str) -> None:
    error = refusal(db, text)
    assert error.code == code, error.render()
    assert problem in error.problem, error.render()


def test_a_bad_query_makes_no_view(db):
    cases = [(f"CREATE VIEW w AS {query}", *said) for query, said in told(VIEWS).items()]
    check_each(sampled(cases, db.engine.name), lambda case: is_refused(db, *case))


def test_a_bad_statement_changes_nothing(db):
    cases = [(text, *said) for text, said in told(STATEMENTS).items()]
    check_each(sampled(cases, db.engine.name), lambda case: is_refused(db, *case))


def test_a_statement_that_asks_something_bad_changes_nothing(db):
    """Spark is asked, so none is left out there."""

    def check(case: tuple[str, tuple[str, str]]) -> None:
        text, expected = case
        error = refusal(db, text)
        if error.code != "Q010":
            assert error.code == expected[0], error.render()
            assert expected[1] in error.problem, error.render()
        else:
            assert db.engine.name == "spark"

    check_each(told(ASKED).items(), check)


@pytest.mark.parametrize("star", ["SET *", "*"])
def test_merge_takes_all_columns_by_their_names(open_db, tmp_path, star):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE a (k INT PRIMARY KEY, v INT); CREATE TABLE b (v INT, k INT)")
        db.sql("INSERT INTO a VALUES (1, 10), (2, 20); INSERT INTO b VALUES (11, 1), (33, 3)")
        db.sql(
            "MERGE INTO a USING b ON a.k = b.k"
            f" WHEN MATCHED THEN UPDATE {star} WHEN NOT MATCHED THEN INSERT *"
        )
        assert sorted(db.read("a").rows()) == [(1, 11), (2, 20), (3, 33)]
