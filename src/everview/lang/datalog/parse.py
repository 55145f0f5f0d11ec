"""Datalog text to declarations and rules: each rule with one head and one conjunction."""

from __future__ import annotations

from itertools import product

from everview.errors import Span, UserError
from everview.lang.datalog.syntax import (
    Atom,
    Attribute,
    Body,
    Comparison,
    DatalogProgram,
    Declaration,
    Directive,
    Literal,
    Rule,
    TypeDeclaration,
    negated,
)
from everview.lang.datalog.terms import OPERATORS, Terms, unescaped

_QUALIFIERS = ("inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete")
_ROLES = ("input", "output", "printsize")
_COMPARED = ("=", "!=", "<", "<=", ">", ">=")
_TESTS = ("match", "contains")
_REFUSED = {
    ".comp": ("a component", "write its relations and rules out"),
    ".init": ("a component", "write its relations and rules out"),
    ".override": ("a component", "write its relations and rules out"),
    ".functor": ("a functor of the user's", "write it with those there are"),
    ".lattice": ("a lattice", "use an aggregate"),
    ".include": ("including a file", "put the texts into one"),
    ".once": ("including a file", "put the texts into one"),
    ".limitsize": ("a limit on a relation", "write a condition that bounds it"),
}

Choices = tuple[Body, ...]


def parse_program(text: str) -> DatalogProgram:
    """The declarations, directives and rules of a text."""
    return _Parser(text).program()


class _Parser(Terms):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.types: list[TypeDeclaration] = []
        self.declarations: list[Declaration] = []
        self.directives: list[Directive] = []
        self.rules: list[Rule] = []

    def program(self) -> DatalogProgram:
        while self.next.kind != "end":
            if self.next.kind == "directive":
                self._directive()
            else:
                self._rule()
        found = (self.types, self.declarations, self.directives, self.rules)
        return DatalogProgram(self.text, *map(tuple, found))  # type: ignore[arg-type]

    # Directives

    def _directive(self) -> None:
        token = self.take()
        match token.text:
            case ".decl":
                self._declaration(token.span)
            case ".type":
                self._type(token.span)
            case ".number_type" | ".symbol_type":
                parent = token.text[1:].removesuffix("_type")
                name = self.name("a type").text
                self.types.append(TypeDeclaration(name, (parent,), (), self.since(token.span)))
            case ".input" | ".output" | ".printsize":
                self._role(token.text[1:], token.span)
            case ".pragma":
                while self.next.kind == "string":
                    self.take()
            case ".plan":
                while not self._at_statement():
                    self.take()
            case _:
                what, remedy = _REFUSED[token.text]
                raise self.refused(what, token.span, remedy)

    def _at_statement(self) -> bool:
        """Whether the next token begins a directive or a rule, after a plan of evaluation."""
        return self.next.kind in ("end", "directive", "name")

    def _declaration(self, start: Span) -> None:
        names = self._names()
        self.expect("(")
        attributes: list[Attribute] = []
        while not self.takes(")"):
            if attributes:
                self.expect(",")
            name = self.name("an attribute")
            self.expect(":")
            type_ = self._qualified("a type")
            attributes.append(Attribute(name.text, type_, self.since(name.span)))
        qualifiers = self._qualifiers(names)
        for name_ in names:
            made = Declaration(name_, tuple(attributes), qualifiers, self.since(start))
            self.declarations.append(made)

    def _qualifiers(self, names: tuple[str, ...]) -> tuple[str, ...]:
        found: list[str] = []
        while True:
            token = self.next
            if token.text in _ROLES:
                self.take()
                self.directives += [Directive(token.text, each, {}, token.span) for each in names]
            elif token.text in (*_QUALIFIERS, "eqrel"):
                found.append(self.take().text)
            elif token.text == "choice":
                remedy = "use min or max: which row is chosen must be defined"
                raise self.refused("choice-domain", token.span, remedy)
            else:
                return tuple(found)

    def _names(self) -> tuple[str, ...]:
        found = [self._qualified("a relation")]
        while self.takes(","):
            found.append(self._qualified("a relation"))
        return tuple(found)

    def _qualified(self, what: str) -> str:
        name = self.name(what)
        if self.next.text == "." and self.tokens[self.at + 1].kind == "name":
            touching = self.next.span.start == name.span.stop
            if touching and self.tokens[self.at + 1].span.start == self.next.span.stop:
                raise self.refused("a component", name.span, "write its relations and rules out")
        return name.text

    def _type(self, start: Span) -> None:
        name = self._qualified("a type")
        parents: list[str] = []
        constructors: list[str] = []
        if self.takes("<:"):
            parents.append(self._qualified("a type"))
        elif self.takes("="):
            if self.next.text == "[":
                raise self.refused(
                    "a record", self.since(start), "give every field a column of its own"
                )
            self._alternatives(parents, constructors)
        else:
            parents.append("symbol")
        made = TypeDeclaration(name, tuple(parents), tuple(constructors), self.since(start))
        self.types.append(made)

    def _alternatives(self, parents: list[str], constructors: list[str]) -> None:
        """The types of a union, or the constructors of a type."""
        while True:
            name = self._qualified("a type")
            if self.next.text == "{":
                while not self.takes("}"):
                    self.take()
                constructors.append(name)
            else:
                parents.append(name)
            if not self.takes("|"):
                return

    def _role(self, kind: str, start: Span) -> None:
        names = self._names()
        parameters: dict[str, str] = {}
        if self.takes("("):
            while not self.takes(")"):
                if parameters:
                    self.expect(",")
                key = self.name("a parameter").text
                self.expect("=")
                value = self.take()
                whole = unescaped(value.text) if value.kind == "string" else value.text
                parameters[key] = whole
        self.directives += [Directive(kind, name, parameters, self.since(start)) for name in names]

    # Rules

    def _rule(self) -> None:
        start = self.next.span
        heads = [self._atom()]
        while self.takes(","):
            heads.append(self._atom())
        if self.next.text == "<=":
            remedy = "use an aggregate: min or max"
            raise self.refused("subsumption", self.next.span, remedy)
        bodies: Choices = ((),)
        if self.takes(":-"):
            bodies = self._choice()
        self.expect(".")
        span = self.since(start)
        self.rules += [Rule(head, body, span) for head in heads for body in bodies]

    def _atom(self) -> Atom:
        start = self.next.span
        name = self._qualified("a relation")
        return Atom(name, self.arguments(), self.since(start))

    def _choice(self) -> Choices:
        """Conjunctions separated by semicolons, as the conjunctions there are."""
        found = [*self._conjunction()]
        while self.takes(";"):
            found += self._conjunction()
        return tuple(found)

    def _conjunction(self) -> Choices:
        parts = [self._literal()]
        while self.takes(","):
            parts.append(self._literal())
        return _all_of(parts)

    def _literal(self) -> Choices:
        if self.takes("!"):
            return _none_of(self._literal())
        following = self.tokens[min(self.at + 1, len(self.tokens) - 1)].text
        if self.next.text in ("true", "false") and following != "(":
            return ((),) if self.take().text == "true" else ()
        if self.next.text == "(" and (group := self._group()) is not None:
            return group
        if self.next.kind == "name" and following == "(":
            if self.next.text in _TESTS:
                return ((self._test(),),)
            if self._is_atom():
                return ((self._atom(),),)
        return ((self._comparison(),),)

    def _is_atom(self) -> bool:
        """Whether a name with arguments is a relation and not the left side of a comparison."""
        back = self.at
        try:
            self.take()
            self.arguments()
            return self.next.text not in (*_COMPARED, *OPERATORS)
        except UserError:
            return True
        finally:
            self.at = back

    def _group(self) -> Choices | None:
        """A choice in parentheses; None when they belong to a term."""
        back = self.at
        try:
            self.take()
            found = self._choice()
            self.expect(")")
            if self.next.text in (",", ";", ".", ")", "}"):
                return found
        except UserError as problem:
            if problem.code != "D001":
                raise
        self.at = back
        return None

    def _test(self) -> Literal:
        token = self.take()
        arguments = self.arguments()
        if len(arguments) != 2:
            raise UserError(
                "D004",
                f"{token.text} takes 2 arguments, not {len(arguments)}",
                span=self.since(token.span),
                remedy="give as many as it takes",
            )
        return Comparison(token.text, arguments[0], arguments[1], self.since(token.span))

    def _comparison(self) -> Literal:
        start = self.next.span
        left = self.term()
        if self.next.text not in _COMPARED:
            raise self.unexpected("a comparison")
        operator = self.take().text
        return Comparison(operator, left, self.term(), self.since(start))

    def body(self) -> Choices:
        """What an aggregate ranges over: one literal, or a choice in braces."""
        if not self.takes("{"):
            return ((self._atom(),),)
        found = self._choice()
        self.expect("}")
        return found


def _all_of(parts: list[Choices]) -> Choices:
    """Every way to choose a conjunction of each part."""
    return tuple(sum(chosen, start=()) for chosen in product(*parts))


def _none_of(choices: Choices) -> Choices:
    """Every way in which no conjunction holds: of each, some literal does not."""
    each: list[Choices] = [tuple((negated(literal),) for literal in body) for body in choices]
    return _all_of(each) if each else ((),)
