"""The sqlglot dialect of whole queries: clauses of Spark that sqlglot reads differently."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from everview.expr.dialect import Spark4
from everview.lang.sql.parse.row_values import IS_NOT

_CHANGES = {TokenType.INSERT: 2, TokenType.DELETE: 2, TokenType.UPDATE: 1}
"""The statements that may change a collection, and how many words are before its name."""
NOT_ENFORCED = "not enforced"
"""The mark of a CHECK that is not enforced."""


class SparkQueries(Spark4):
    """The dialect of scalars, with the words of an ASOF join in Spark's order."""

    class Tokenizer(Spark4.Tokenizer):
        """Knows the word before the condition of an ASOF join."""

        KEYWORDS: ClassVar[dict[str, Any]] = {
            **Spark4.Tokenizer.KEYWORDS,
            "MATCH_CONDITION": TokenType.MATCH_CONDITION,
        }

    class Parser(Spark4.Parser):
        """Reads LEFT before ASOF; MATCH_CONDITION and ALL are names wherever they can be one."""

        ID_VAR_TOKENS: ClassVar[set[Any]] = {
            *Spark4.Parser.ID_VAR_TOKENS,
            TokenType.MATCH_CONDITION,
        }

        def _parse_placeholder(self) -> Any:
            """A parameter, which knows its place in the text: values are given in its order."""
            first = self._curr
            found = super()._parse_placeholder()
            if isinstance(found, exp.Placeholder) and first is not None:
                found.meta.update(start=first.start, end=self._prev.end)
            return found

        def _parse_is(self, this: Any) -> Any:
            """IS; of a row it is remembered that NOT stands after it."""
            found = super()._parse_is(this)
            if isinstance(this, exp.Tuple) and isinstance(found, exp.Not):
                found.meta[IS_NOT] = True
            return found

        def _parse_join_parts(self) -> Any:
            """The words before JOIN; sqlglot looks for ASOF before the side only."""
            start = self._index
            side = self._prev if self._match_set((TokenType.LEFT, TokenType.INNER)) else None
            self._match(TokenType.OUTER)
            if side is not None and self._match(TokenType.ASOF):
                return self._prev, side if side.token_type is TokenType.LEFT else None, None
            self._retreat(start)
            return super()._parse_join_parts()

        def _parse_check_constraint(self) -> Any:
            """CHECK (…), which may be NOT ENFORCED."""
            found = super()._parse_check_constraint()
            if found is not None and self._match_text_seq("NOT", "ENFORCED"):
                found.meta[NOT_ENFORCED] = True
            return found

        def _parse_alter_table_add(self) -> Any:
            """What ALTER TABLE adds; a CHECK without a name is a constraint too."""
            if not self._match_text_seq("CHECK", "(", advance=False):
                return super()._parse_alter_table_add()
            return [exp.AddConstraint(expressions=[self._parse_constraint()])]

        def _parse_table_parts(self, *args: Any, **kwargs: Any) -> Any:
            """A name; of a collection that a statement changes, OF says in which row it is."""
            first = next(iter(self._tokens), None)
            changes = first is not None and _CHANGES.get(first.token_type) == self._index
            found = super()._parse_table_parts(*args, **kwargs)
            if changes and self._match_text_seq("OF"):
                name = ".".join(part.name for part in found.parts)
                found = exp.Table(this=exp.to_identifier(name, quoted=True))
                found.set("of", self._parse_csv(self._parse_assignment))
            return found

        def _parse_delete(self) -> Any:
            """DELETE; of elements of a collection these may follow, in VALUES."""
            found = super()._parse_delete()
            if self._match(TokenType.VALUES, advance=False):
                found.set("elements", self._parse_derived_table_values())
            return found

        def _parse_transaction(self) -> Any:
            """BEGIN, which may have options in WITH (name = value, …)."""
            tree = super()._parse_transaction()
            if self._match(TokenType.WITH):
                tree.set("options", self._parse_wrapped_csv(self._parse_assignment))
            return tree

        def _parse_group(self, skip_group_by_token: bool = False) -> Any:
            """GROUP BY, whose first key may call WINDOW, or be a column with the name ALL."""
            place = self._index + (0 if skip_group_by_token else 1)
            tokens: list[Token] = list(self._tokens)  # type: ignore[has-type]
            kinds = [token.token_type for token in tokens[place : place + 2]]
            if kinds == [TokenType.WINDOW, TokenType.L_PAREN] or kinds[:1] == [TokenType.ALL]:
                word = tokens[place]
                spot = (word.line, word.col, word.start, word.end)
                tokens[place] = Token(TokenType.VAR, word.text, *spot, word.comments)
                self._tokens = tokens
                self._advance(0)
            return super()._parse_group(skip_group_by_token)

    class Generator(Spark4.Generator):
        """Prints what the parser reads."""

        def join_sql(self, expression: exp.Join) -> str:
            """A join; in an ASOF join the side comes first."""
            written = str(super().join_sql(expression))
            if expression.method != "ASOF":
                return written
            return written.replace("ASOF LEFT JOIN", "LEFT ASOF JOIN", 1)

        def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
            """A name, and OF after that of a collection."""
            written = str(super().table_sql(expression, sep))
            if not expression.args.get("of"):
                return written
            return f"{written} OF {self.expressions(expression, key='of', flat=True)}"

        def delete_sql(self, expression: exp.Delete) -> str:
            """DELETE, and the elements that go."""
            written = str(super().delete_sql(expression))
            elements = self.sql(expression, "elements")
            return f"{written} {elements}" if elements else written


QUERIES = SparkQueries
"""The dialect of every text that holds a query."""
