"""The prompt on a terminal: history, completion and statements of several lines."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from everview.expr.types import Schema
from everview.lang.sql.parse.functions import PARSED_FUNCTIONS

QUIT, HELP = ("\\q", "quit", "exit"), ("\\h", "\\?", "help")
HELP_TEXT = """\
Statements end with a semicolon and may have several lines.

  SELECT … FROM t                    also t VERSION AS OF 5
  CREATE TABLE | VIEW | FUNCTION     DROP TABLE | VIEW | FUNCTION
  INSERT, UPDATE, DELETE, MERGE      BEGIN, COMMIT, ROLLBACK
  COPY INTO t FROM 'path'            COPY (SELECT …) TO 'path'
  EXPLAIN v                          how the view v is kept fresh

  Tab         complete a table, view, column or keyword
  ↑ ↓ Ctrl-R  earlier statements
  Ctrl-C      cancel the statement that runs, or clear what is typed
  Ctrl-D, \\q  quit
"""
_WORDS = """\
ALL AND AS ASC BEGIN BETWEEN BY CASE CAST COMMIT COPY CREATE CROSS DELETE DESC DISTINCT DROP ELSE
END EXCEPT EXISTS EXPLAIN FALSE FROM FULL FUNCTION GROUP HAVING IN INNER INSERT INTERSECT INTO IS
JOIN LEFT LIKE LIMIT MATCHED MATERIALIZED MERGE NOT NULL NULLS OFFSET ON OR ORDER OVER PARTITION
PRIMARY KEY QUALIFY RECURSIVE RIGHT ROLLBACK SELECT SET TABLE THEN TIMESTAMP TO TRUE UNION UPDATE
USING VALUES VERSION VIEW WHEN WHERE WITH"""
KEYWORDS = tuple(_WORDS.split())
_BEFORE_RELATIONS = ("from", "join", "into", "update", "table", "view", "explain", "copy", "using")
_WORD = re.compile(r"[\w`.]+")

Schemas = Callable[[], Mapping[str, Schema]]


class StatementCompleter(Completer):
    """Completes the word before the cursor: names of what is declared now, and words of SQL."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """What the word may become: after FROM and the like a relation, after a dot a column."""
        word = document.get_word_before_cursor(pattern=_WORD)
        if not word and event.text_inserted:
            return
        schemas = self._schemas()
        relation, dot, begun = word.rpartition(".")
        before = document.text_before_cursor[: -len(word) or None].split()
        if dot:
            names = [column.name for column in _columns_of(relation, document.text, schemas)]
            options = [(name, "column") for name in names]
        elif before and before[-1].lower().strip("(") in _BEFORE_RELATIONS:
            options = [(name, "relation") for name in schemas]
        else:
            columns = {column.name: "column" for schema in schemas.values() for column in schema}
            words = {**dict.fromkeys(KEYWORDS, "keyword"), **dict.fromkeys(schemas, "relation")}
            functions = dict.fromkeys(PARSED_FUNCTIONS, "function") if begun else {}
            options = list({**functions, **words, **columns}.items())
        for name, kind in sorted(options, key=lambda each: (each[1] != "column", each[0].lower())):
            if name.lower().startswith(begun.lower().lstrip("`")):
                yield Completion(_written(name), -len(begun), name, display_meta=kind)


def _columns_of(name: str, text: str, schemas: Mapping[str, Schema]) -> Schema:
    """The columns of a relation, named itself or by an alias in the text."""
    plain = name.strip("`").lower()
    words = text.replace(",", " ").replace("(", " ").replace(")", " ").replace(";", " ").split()
    known = {each.lower(): schema for each, schema in schemas.items()}
    for relation, alias in zip(words, [*words[1:], ""], strict=True):
        follows = words[words.index(relation) + 2 :][:1] if alias.lower() == "as" else [alias]
        if follows and follows[0].lower() == plain and relation.strip("`").lower() in known:
            return known[relation.strip("`").lower()]
    return known.get(plain, ())


def _written(name: str) -> str:
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"


class Shell:
    """Asks for statements on a terminal."""

    def __init__(self, schemas: Schemas, **options: Any) -> None:
        self._session: PromptSession[str] = PromptSession(
            "everview> ",
            history=_history(),
            completer=StatementCompleter(schemas),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            multiline=True,
            prompt_continuation="     ...> ",
            key_bindings=_bindings(),
            enable_history_search=True,
            **options,
        )

    def texts(self) -> Iterator[str]:
        """The texts that are typed, each whole, until there are no more."""
        while True:
            try:
                text = self._session.prompt()
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            word = text.strip().rstrip(";").strip().lower()
            if word in QUIT:
                return
            if word in HELP:
                click.echo(HELP_TEXT)
            elif word:
                yield text


def is_whole(text: str) -> bool:
    """Whether Enter runs a text: it ends with a semicolon, is a word for the shell, or empty.

    >>> is_whole("SELECT 1;"), is_whole("SELECT 1"), is_whole("help"), is_whole(" ")
    (True, False, True, True)
    """
    word = text.strip()
    return not word or word.endswith(";") or word.lower() in (*QUIT, *HELP)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def _history() -> History:
    """What was typed before, in a file that only its owner can read, where one can be written."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = folder / "everview" / "history"
    with suppress(OSError, RuntimeError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        path.open("ab").close()
        return FileHistory(str(path))
    return InMemoryHistory()
