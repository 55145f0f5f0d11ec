"""A corpus of bad input: every one is refused in plain words, or right; nothing else changes.

Refused means a UserError with a code and a remedy, and none of the names that only we know. After
each the epoch is what it was, and the same handle goes on working.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import everview as ev
from e2e import bad_calls, bad_rows, bad_texts
from e2e.messages import internals
from everview.database.commit import install
from everview.database.ddl import CatalogChange

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

FEWER = 24
"""On Spark, where each statement takes longer, one in so many is tried."""


class Tried:
    """A database on which bad input is tried, one after another."""

    def __init__(self, open_db, folder: Path, setup: str) -> None:
        self.open, self.folder, self.setup = open_db, folder, setup
        self.found: list[str] = []
        self.counts: Counter[str] = Counter()
        self.fresh()

    def fresh(self) -> None:
        """Begin again with a store of its own."""
        if self.counts:
            self.db.close()
        self.db = self.open(self.folder / f"store{self.counts.total()}")
        self.db.sql(self.setup)
        self.declared = self.db.catalog

    def reset(self) -> None:
        """Have the declarations again that were there in the beginning."""
        if self.db.catalog is not self.declared:
            handle = self.db.handle
            handle.exclusively(lambda: install(handle, CatalogChange(self.declared)))

    def attempt(self, label: str, run, text: str = "") -> bool:
        """Whether it worked; whatever is wrong is remembered."""
        before = (self.db.epoch, self.db.catalog)
        try:
            run()
        except ev.UserError as problem:
            self.counts[problem.code] += 1
            self.found += [f"{label}: {each}" for each in internals(problem, text)]
            if (self.db.epoch, self.db.catalog) != before:
                self.found.append(f"{label}: refused, and something has changed")
                self.fresh()
            return False
        except BaseException as problem:  # whatever it is, it should have been a UserError
            self.counts["raw"] += 1
            self.found.append(f"{label}: {type(problem).__name__}: {str(problem)[:200]}")
            self.fresh()
            return False
        self.counts["right"] += 1
        return True

    def ends(self, least: int) -> None:
        """All is as it should be, and the handle works."""
        assert not self.found, "\n".join(self.found)
        assert self.counts.total() >= least
        assert self.db.audit().ok
        self.db.close()


@pytest.fixture
def one_in(engine):
    return FEWER if engine == "spark" else 1


def test_bad_arguments_are_refused(open_db, engine, tmp_path, monkeypatch, capsys, one_in):
    monkeypatch.chdir(tmp_path)
    tried = Tried(open_db, tmp_path, bad_calls.SETUP)
    for number, bad in enumerate(bad_calls.calls()):
        if number % one_in:
            continue
        world = bad_calls.World(tried.db, tmp_path, engine)
        before = tried.db.epoch
        worked = tried.attempt(bad.label, lambda bad=bad, world=world: bad.run(world), bad.given)
        if worked and not bad.may_work:
            tried.found.append(f"{bad.label}: accepted")
        if tried.db.epoch != before:
            tried.fresh()
    tried.ends(1300 // one_in)


def test_values_that_do_not_fit_are_refused(open_db, tmp_path, one_in):
    tried = Tried(open_db, tmp_path, bad_rows.SETUP)
    for number, (label, table, rows) in enumerate(bad_rows.values()):
        if number % one_in:
            continue
        with tried.db.transaction() as tx:
            if tried.attempt(label, lambda tx=tx, t=table, r=rows: tx.insert(t, r)) and number % 7:
                tx.rollback()
    for at, (type_, good) in enumerate(bad_rows.TYPES.items()):
        assert tried.attempt(type_, lambda at=at, good=good: tried.db.insert(f"r{at}", [(good,)]))
        tried.db.read(f"r{at}").rows()
    tried.ends(900 // one_in)


@pytest.mark.parametrize("call", ["insert", "delete", "upsert"])
def test_what_is_no_table_is_refused(open_db, tmp_path, call):
    setup = "CREATE TABLE t (k INT PRIMARY KEY, v INT, s STRING); INSERT INTO t VALUES (1, 2, 'a')"
    tried = Tried(open_db, tmp_path, setup)
    for label, make in bad_rows.STRUCTURES.items():
        if tried.attempt(label, lambda make=make: getattr(tried.db, call)("t", make())):
            tried.found.append(f"{label}: accepted")
    tried.ends(45)


def test_bad_queries_make_no_views(open_db, tmp_path, one_in):
    tried = Tried(open_db, tmp_path, bad_texts.SETUP)
    for query in bad_texts.mutations(bad_texts.QUERIES, 1, 48 // one_in):
        text = f"CREATE VIEW made AS {query}"
        if tried.attempt(query, lambda text=text: tried.db.sql(text), text):
            assert tried.db.audit("made").ok, query
            tried.reset()
    tried.ends(480 // one_in - 20)


def test_bad_statements_change_nothing(open_db, tmp_path, one_in):
    tried = Tried(open_db, tmp_path, bad_texts.SETUP)
    for text in bad_texts.mutations(bad_texts.STATEMENTS, 2, 48 // one_in):
        if tried.attempt(text, lambda text=text: tried.db.sql(text), text):
            tried.reset()
    tried.ends(320 // one_in - 20)


def test_bad_programs_change_nothing(open_db, tmp_path, one_in):
    tried = Tried(open_db, tmp_path, bad_texts.SETUP)
    for text in bad_texts.mutations(bad_texts.DATALOG, 3, 120 // one_in):
        if tried.attempt(text, lambda text=text: tried.db.datalog(text), text):
            tried.reset()
    tried.ends(200 // one_in - 20)


def test_bad_texts_in_agca_change_nothing(open_db, tmp_path, one_in):
    tried = Tried(open_db, tmp_path, bad_texts.SETUP)
    for text in bad_texts.mutations(bad_texts.AGCA, 4, 120 // one_in):
        if tried.attempt(text, lambda text=text: tried.db.agca(text), text):
            assert tried.db.audit().ok, text
            tried.reset()
    tried.ends(200 // one_in - 20)


@pytest.mark.parametrize("language", ["RELALG", "NESTED", "TRIGGERS"])
def test_bad_texts_of_other_languages_change_nothing(tmp_path, language):
    def opened(path):
        return ev.open(str(path), engine="duckdb")

    def declare(text):
        match language:
            case "RELALG":
                tried.db.relalg("made", text)
            case "NESTED":
                tried.db.nested(text, name="made")
            case _:
                ev.triggers(text).snapshot()

    tried = Tried(opened, tmp_path, bad_texts.SETUP)
    for text in bad_texts.mutations(getattr(bad_texts, language), 5, 120):
        if tried.attempt(text, lambda text=text: declare(text), text):
            tried.reset()
    tried.ends(180)


def test_what_is_nested_deep_is_answered_or_refused(tmp_path):
    def opened(path):
        return ev.open(str(path), engine="duckdb")

    tried = Tried(opened, tmp_path, bad_texts.SETUP)
    for text in bad_texts.DEEP:
        label = f"{text[:40]}… ({len(text)})"
        tried.attempt(label, lambda text=text: _rows(tried.db.sql(text)), text)
    tried.ends(35)


def _rows(result):
    return None if result is None else result.rows()
