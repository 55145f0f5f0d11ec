"""Words that mean the same as others which sqlglot reads: the tokens of a statement, respelled."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from everview.lang.sql.parse.collections import without_bags


def respelled(tokens: list[Token]) -> list[Token]:
    """START TRANSACTION as BEGIN, COMMENT … IS NULL as no text, STORED left out, BAG as ARRAY."""
    words = [token.text.upper() for token in tokens]
    if words[:2] == ["START", "TRANSACTION"]:
        return [_instead(tokens[0], TokenType.BEGIN, "BEGIN"), *tokens[1:]]
    if words[:2] == ["COMMENT", "ON"] and words[-2:] == ["IS", "NULL"]:
        return [*tokens[:-1], _instead(tokens[-1], TokenType.STRING, "")]
    if words[:2] in (["CREATE", "TABLE"], ["ALTER", "TABLE"]) and "GENERATED" in words:
        tokens = _without_stored(tokens)
    return without_bags(tokens)


def _instead(old: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, old.line, old.col, old.start, old.end, old.comments)


def _without_stored(tokens: list[Token]) -> list[Token]:
    """GENERATED ALWAYS AS (…) STORED without its last word: every such column is stored."""
    kept: list[Token] = []
    depth, opened = 0, -1
    for at, token in enumerate(tokens):
        if opened >= 0 and depth == opened and token.text.upper() == "STORED":
            opened = -1
            continue
        if token.token_type is TokenType.L_PAREN:
            if [each.text.upper() for each in tokens[max(at - 3, 0) : at]] == _GENERATED:
                opened = depth
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        elif depth == opened:
            opened = -1
        kept.append(token)
    return kept


_GENERATED = ["GENERATED", "ALWAYS", "AS"]
