"""Python comprehensions as NRC⁺: a function is compiled from its source and never run on data."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from inspect import Signature
from itertools import chain
from types import FunctionType
from typing import Any

from everview.errors import UserError
from everview.lang.nested.check import Checker
from everview.lang.nested.compilation import Compilation
from everview.lang.nested.primitives import PRIMITIVES
from everview.lang.nested.python_source import MISSING, Source, Unread, source_of, word_of
from everview.lang.nested.signatures import field_names, of_definition, of_record, takes_any
from everview.lang.nested.syntax import (
    Aggregate,
    Apply,
    Choice,
    Const,
    Empty,
    Expr,
    Field,
    Flatten,
    For,
    Record,
    Sng,
    Union,
)
from everview.lang.nested.types import Bag, Base, Product, Type, element_type, place


@dataclass(frozen=True, slots=True)
class Closure:
    """A function inside another one, and what names stand for where it is written."""

    tree: ast.FunctionDef
    scope: Scope


Bound = Expr | Closure
Scope = Mapping[str, Bound]
"""What the names of a function stand for: expressions, and functions that are written out."""

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "and",
    ast.Or: "or",
}
_METHODS = {
    **dict.fromkeys(("upper", "lower", "strip", "lstrip", "rstrip"), 0),
    **dict.fromkeys(("startswith", "endswith"), 1),
}
_FEW = 8
"""So many parts are put together one after the other."""
_STATEMENT = "write assignments of new names and one return; loops are comprehensions"
_ONLY_FUNCTIONS = (
    "sum, len, min, max, any, all, sorted, list, tuple, dict, abs, str, flatten, data classes, "
    "named tuples and functions written in the same way may be called"
)
_ONLY_CONSTANTS = "use tables as parameters; other names are constants or functions"


def compile_function(
    function: object, tables: Mapping[str, Expr], rows: Mapping[str, Type]
) -> Expr:
    """The query that a function means.

    `tables` are what its parameters stand for, over relations with rows of the types in `rows`.
    """
    source = source_of(function)
    compiling = Compilation(Checker(rows), {*rows})
    body = _Function(source, compiling, (source.tree.name,))
    found = body.result(source.tree, tables)
    compiling.type_of(found)
    return found


def parameters(function: object) -> tuple[str, ...]:
    """The names of the parameters of a function, each of which stands for a relation."""
    source = source_of(function)
    given = source.tree.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
        problem = "a parameter is a table or view, and has no default"
        raise source.refusal(source.tree, problem, "name every table as a plain parameter")
    return tuple(each.arg for each in (*given.posonlyargs, *given.args))


@dataclass(frozen=True, slots=True)
class _Function:
    """Compiles the body of one function; `calls` are the functions being written out."""

    source: Source
    compiling: Compilation
    calls: tuple[str, ...]

    def refuse(self, node: ast.AST, problem: str, remedy: str) -> UserError:
        return self.source.refusal(node, problem, remedy)

    def result(self, tree: ast.FunctionDef, scope: Scope) -> Expr:
        """What a function gives back, its statements read in order."""
        inner = dict(scope)
        for statement in tree.body:
            match statement:
                case ast.Return(value) if value is not None:
                    if statement is not tree.body[-1]:
                        raise self.refuse(statement, "there is more after return", _STATEMENT)
                    return self.expr(value, inner)
                case ast.Expr(ast.Constant(str())) | ast.Pass():
                    continue
                case ast.FunctionDef():
                    inner[statement.name] = Closure(statement, inner)
                case ast.Assign([ast.Name(name)], value):
                    self._assign(statement, name, value, inner)
                case ast.AnnAssign(ast.Name(name), _, value) if value is not None:
                    self._assign(statement, name, value, inner)
                case _:
                    problem = f"{word_of(statement)} changes or repeats something"
                    raise self.refuse(statement, problem, _STATEMENT)
        raise self.refuse(tree, f"{tree.name} gives nothing back", "end it with return")

    def _assign(self, node: ast.stmt, name: str, value: ast.expr, scope: dict[str, Bound]) -> None:
        if name in scope:
            problem = f"{name} is assigned again: a name stands for one value"
            raise self.refuse(node, problem, "use another name")
        scope[name] = self.expr(value, scope)

    def expr(self, node: ast.expr, scope: Scope) -> Expr:
        """The expression that a part of the source means."""
        with self.compiling.deeper(self.source, node):
            return self.compiling.placed(self._expr(node, scope), self.source, node)

    def test(self, node: ast.expr, scope: Scope) -> Expr:
        """The condition that a part of the source means, where None is as good as false."""
        if not isinstance(node, ast.BoolOp):
            return self.expr(node, scope)
        with self.compiling.deeper(self.source, node):
            tests = [self.test(each, scope) for each in node.values]
            found = _balanced(_OPERATORS[type(node.op)], tests)
            return self.compiling.placed(found, self.source, node)

    def _expr(self, node: ast.expr, scope: Scope) -> Expr:
        match node:
            case ast.Constant(value):
                return self._constant(node, value)
            case ast.Name(name):
                return self._name(node, name, scope)
            case ast.Attribute(value, name):
                return self._attribute(node, value, name, scope)
            case ast.Subscript(value, ast.Constant(str(name))):
                return Field(self.expr(value, scope), name)
            case ast.Subscript(value, ast.Constant(int(number))) if number >= 0:
                return Field(self.expr(value, scope), place(number))
            case ast.Tuple(items):
                parts = [self.expr(each, scope) for each in items]
                return Record(tuple((place(i), each) for i, each in enumerate(parts)))
            case ast.List([item]):
                return Sng(self.expr(item, scope))
            case ast.List(items):
                return _sum_of([self._single(each, scope) for each in items])
            case ast.Dict(keys, values):
                return self._dict(node, keys, values, scope)
            case ast.ListComp(item, generators) | ast.GeneratorExp(item, generators):
                return self._comprehension(item, generators, scope)
            case ast.BinOp(left, operator, right):
                return self._binary(node, left, operator, right, scope)
            case ast.BoolOp(operator, values):
                tests = [self.expr(each, scope) for each in values]
                return _logical(_OPERATORS[type(operator)], tests)
            case ast.UnaryOp(ast.Not(), operand):
                return Apply("not", (self.test(operand, scope),))
            case ast.UnaryOp(ast.USub(), operand):
                return _negative(self.expr(operand, scope))
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.expr(operand, scope)
            case ast.UnaryOp(operator):
                raise self.refuse(node, *_no_operator(operator))
            case ast.Compare(left, operators, others):
                return self._comparisons(node, left, operators, others, scope)
            case ast.IfExp(test, body, otherwise):
                holds = self.test(test, scope)
                return Choice(holds, self.expr(body, scope), self.expr(otherwise, scope))
            case ast.JoinedStr(parts):
                return self._joined(node, parts, scope)
            case ast.Call():
                return self._call(node, scope)
            case _:
                raise self.refuse(node, *_unsupported(node))

    def _constant(self, node: ast.AST, value: object) -> Const:
        if not is_constant(value):
            problem = f"{value!r:.40} is no value of the database"
            raise self.refuse(node, problem, "use None, a number, a text or a date")
        return Const(value)  # type: ignore[arg-type]

    def _name(self, node: ast.Name, name: str, scope: Scope) -> Expr:
        found = scope.get(name, self.source.static(node))
        if found is MISSING:
            raise self.source.refusal(node, f"nothing is called {name}", _ONLY_CONSTANTS, "N004")
        if isinstance(found, Unread):
            raise self._unread(node, found)
        if isinstance(found, type) and field_names(found) is None:
            remedy = "give what is needed of it a name outside the function"
            raise self.refuse(node, f"{name} is a class, and is not looked into", remedy)
        if isinstance(found, FunctionType | Closure | Source) or callable(found):
            raise self.refuse(node, f"{name} is a function, not a value", "call it")
        return found if _is_expr(found) else self._outside(node, found)

    def _unread(self, node: ast.AST, name: Unread) -> UserError:
        remedy = "write it as a constant or as a function, once, in the same file"
        return self.source.refusal(node, name.problem, remedy, "N004")

    def _outside(self, node: ast.AST, value: object) -> Expr:
        """A constant from around the function: a base value, or a collection of them."""
        if isinstance(value, list | tuple | set | frozenset):
            if isinstance(value, set | frozenset):
                value = sorted(value, key=repr)
            return _sum_of([Sng(self._constant(node, each)) for each in value])
        return self._constant(node, value)

    def _attribute(self, node: ast.Attribute, value: ast.expr, name: str, scope: Scope) -> Expr:
        inside = isinstance(value, ast.Name) and value.id in scope
        static = MISSING if inside else self.source.static(node)
        if isinstance(static, Unread):
            raise self._unread(node, static)
        if static is not MISSING:
            return self._outside(node, static)
        return Field(self.expr(value, scope), name)

    def _dict(
        self, node: ast.Dict, keys: list[ast.expr | None], values: list[ast.expr], scope: Scope
    ) -> Expr:
        names = [key.value if isinstance(key, ast.Constant) else None for key in keys]
        if not all(name and isinstance(name, str) for name in names) or len({*names}) < len(names):
            problem = "a record has constant names, each once"
            raise self.refuse(node, problem, "write {'name': …} or dict(name=…)")
        parts = [self.expr(each, scope) for each in values]
        return Record(tuple(zip(map(str, names), parts, strict=True)))

    # Comprehensions

    def _single(self, item: ast.expr, scope: Scope) -> Expr:
        """The collection of one element."""
        return self.compiling.placed(Sng(self.expr(item, scope)), self.source, item)

    def _comprehension(
        self, item: ast.expr, generators: list[ast.comprehension], scope: Scope
    ) -> Expr:
        if not generators:
            return self._single(item, scope)
        first, *rest = generators
        if first.is_async:
            raise self.refuse(first.target, "async for reads nothing here", "write for")
        source = self.expr(first.iter, scope)
        element = self.compiling.element_of(source)
        name = first.target.id if isinstance(first.target, ast.Name) else "x"
        variable = self.compiling.variable(name, element)
        inner = {**scope, **self._targets(first.target, variable, element)}
        tests = [self.test(each, inner) for each in first.ifs]
        where = _balanced("and", tests) if tests else None
        return For(variable.name, source, where, self._comprehension(item, rest, inner))

    def _targets(self, target: ast.expr, value: Expr, type_: Type) -> dict[str, Bound]:
        """What the names of a target stand for; a tuple is taken apart."""
        match target:
            case ast.Name(name):
                return {name: value}
            case ast.Tuple(items) | ast.List(items):
                fields = type_.fields if isinstance(type_, Product) else ()
                if len(fields) != len(items):
                    problem = f"{len(items)} names stand for {len(fields)} components"
                    raise self.refuse(target, problem, "name each component, or the whole")
                found: dict[str, Bound] = {}
                for item, (name, inner) in zip(items, fields, strict=True):
                    found |= self._targets(item, Field(value, name), inner)
                return found
            case _:
                raise self.refuse(target, "for changes something here", "name a variable")

    # Operators

    def _binary(
        self, node: ast.expr, left: ast.expr, operator: ast.operator, right: ast.expr, scope: Scope
    ) -> Expr:
        a, b = self.expr(left, scope), self.expr(right, scope)
        if isinstance(operator, ast.Add):
            types = (self.compiling.type_of(a), self.compiling.type_of(b))
            if any(element_type(each) is not None for each in types):
                return Union(a, b)
            return Apply("concat" if Base("string") in types else "+", (a, b))
        if type(operator) not in _OPERATORS:
            raise self.refuse(node, *_no_operator(operator))
        return Apply(_OPERATORS[type(operator)], (a, b))

    def _comparisons(
        self,
        node: ast.expr,
        left: ast.expr,
        operators: list[ast.cmpop],
        others: list[ast.expr],
        scope: Scope,
    ) -> Expr:
        found: list[Expr] = []
        for operator, right in zip(operators, others, strict=True):
            found.append(self._comparison(node, left, operator, right, scope))
            left = right
        return reduce(lambda a, b: Apply("and", (a, b)), found)

    def _comparison(
        self, node: ast.expr, left: ast.expr, operator: ast.cmpop, right: ast.expr, scope: Scope
    ) -> Expr:
        test: Expr
        match operator:
            case ast.Is() | ast.IsNot():
                if not (isinstance(right, ast.Constant) and right.value is None):
                    raise self.refuse(node, "is compares objects", "write ==, or is None")
                test = Apply("is_none", (self.expr(left, scope),))
                return Apply("not", (test,)) if isinstance(operator, ast.IsNot) else test
            case ast.In() | ast.NotIn():
                test = self._member(self.expr(left, scope), right, scope)
                return Apply("not", (test,)) if isinstance(operator, ast.NotIn) else test
        a, b = self.expr(left, scope), self.expr(right, scope)
        types = (self.compiling.type_of(a), self.compiling.type_of(b))
        name = _OPERATORS[type(operator)]
        if name in ("==", "!=") and all(isinstance(each, Product) for each in types):
            test = self._equal(a, b, *types)
            return Apply("not", (test,)) if name == "!=" else test
        return Apply(name, (a, b))

    def _equal(self, a: Expr, b: Expr, left: Type, right: Type) -> Expr:
        """Equality of tuples, component by component."""
        if not isinstance(left, Product) or not isinstance(right, Product):
            return Apply("==", (a, b))
        if [n for n, _ in left.fields] != [n for n, _ in right.fields]:
            return Const(False)
        tests = [
            self._equal(Field(a, name), Field(b, name), one, other)
            for (name, one), (_, other) in zip(left.fields, right.fields, strict=True)
        ]
        return reduce(lambda x, y: Apply("and", (x, y)), tests) if tests else Const(True)

    def _member(self, item: Expr, right: ast.expr, scope: Scope) -> Expr:
        """item in right: part of a text, one of some constants, or equal to some element."""
        own = self.compiling.type_of(item)
        if isinstance(right, ast.Tuple | ast.Set):
            listed: list[Expr] | None = [self.expr(each, scope) for each in right.elts]
        else:
            whole = self.expr(right, scope)
            listed = _listed(whole)
        if listed is not None:
            tests = [self._equal(item, e, own, self.compiling.type_of(e)) for e in listed]
            return _balanced("or", tests) if tests else Const(False)
        type_ = self.compiling.type_of(whole)
        if type_ == Base("string"):
            return Apply("contains", (whole, item))
        element = element_type(type_)
        if element is None:
            problem = "in looks for a text in a text, or for a value in a collection"
            raise self.refuse(right, problem, "write ==")
        each = self.compiling.variable("x", element)
        equal = self._equal(each, item, element, own)
        return Aggregate("any", For(each.name, whole, None, Sng(equal)))

    def _joined(self, node: ast.JoinedStr, parts: list[ast.expr], scope: Scope) -> Expr:
        texts: list[Expr] = []
        for part in parts:
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None or part.conversion != -1:
                    raise self.refuse(node, "a text is formatted", "put texts together with +")
                part = part.value
            texts.append(self._text(part, scope))
        return reduce(lambda a, b: Apply("concat", (a, b)), texts) if texts else Const("")

    def _text(self, node: ast.expr, scope: Scope) -> Expr:
        """A value as a text: a text itself, or a whole number."""
        value = self.expr(node, scope)
        type_ = self.compiling.type_of(value)
        if type_ == Base("string"):
            return value
        return self.compiling.placed(Apply("text", (value,)), self.source, node)

    # Calls

    def _call(self, node: ast.Call, scope: Scope) -> Expr:
        function = node.func
        if not isinstance(function, ast.Name | ast.Attribute):
            raise self.refuse(function, *_unsupported(function))
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise self.refuse(node, "* gives arguments that are not known", "write each argument")
        if any(each.arg is None for each in node.keywords):
            raise self.refuse(node, "** gives arguments that are not known", "write each argument")
        inside = scope.get(function.id) if isinstance(function, ast.Name) else None
        target = inside if inside is not None else self.source.static(function)
        if isinstance(target, Unread):
            raise self._unread(function, target)
        if isinstance(target, FunctionType | Closure | Source):
            return self._written_out(node, target, scope)
        if isinstance(target, type) and field_names(target) is not None:
            return self._made(node, target, scope)
        if target is chain.from_iterable or _is_flatten(function, target):
            return Flatten(self._only_argument(node, scope))
        if isinstance(function, ast.Attribute) and target is MISSING:
            return self._method(node, function, scope)
        build = next((b for known, b in self._builtins().items() if known is target), None)
        if build is None:
            name = ast.unparse(function)
            if target is MISSING:
                problem = f"nothing is called {name}"
                raise self.source.refusal(node, problem, _ONLY_FUNCTIONS, "N004")
            raise self.refuse(node, f"{name} cannot be called here", _called_remedy(target))
        return build(node, scope)

    def _builtins(self) -> Mapping[Any, Callable[[ast.Call, Scope], Expr]]:
        return {
            sum: self._sum,
            len: self._len,
            min: lambda node, scope: self._extreme("min", node, scope),
            max: lambda node, scope: self._extreme("max", node, scope),
            any: lambda node, scope: Aggregate("any", self._only_argument(node, scope)),
            all: lambda node, scope: Aggregate("all", self._only_argument(node, scope)),
            sorted: self._sorted,
            list: self._collected,
            tuple: self._collected,
            abs: lambda node, scope: Apply("abs", (self._only_argument(node, scope),)),
            dict: self._record,
            str: self._str,
        }

    def _only_argument(self, node: ast.Call, scope: Scope) -> Expr:
        if len(node.args) != 1 or node.keywords:
            name = ast.unparse(node.func)
            problem = f"{name} takes one argument here"
            remedy = "collections are read in ascending order" if name == "sorted" else "give one"
            raise self.refuse(node, problem, remedy)
        return self.expr(node.args[0], scope)

    def _str(self, node: ast.Call, scope: Scope) -> Expr:
        self._only_argument(node, scope)
        return self._text(node.args[0], scope)

    def _sorted(self, node: ast.Call, scope: Scope) -> Expr:
        """A collection, which is read in ascending order; an array becomes one."""
        found = self._only_argument(node, scope)
        type_ = self.compiling.type_of(found)
        element = element_type(type_)
        if isinstance(type_, Bag) or element is None:
            return found
        each = self.compiling.variable("x", element)
        return For(each.name, found, None, Sng(each))

    def _collected(self, node: ast.Call, scope: Scope) -> Expr:
        return self._only_argument(node, scope) if node.args or node.keywords else Empty()

    def _record(self, node: ast.Call, scope: Scope) -> Expr:
        if node.args:
            raise self.refuse(node, "a record has named components", "write dict(name=…)")
        return Record(tuple((str(k.arg), self.expr(k.value, scope)) for k in node.keywords))

    def _sum(self, node: ast.Call, scope: Scope) -> Expr:
        match node.args:
            case [bags, ast.List([])] if not node.keywords:
                return Flatten(self.expr(bags, scope))
            case _:
                return Aggregate("sum", self._only_argument(node, scope))

    def _len(self, node: ast.Call, scope: Scope) -> Expr:
        child = self._only_argument(node, scope)
        if self.compiling.type_of(child) == Base("string"):
            return Apply("length", (child,))
        return Aggregate("len", child)

    def _extreme(self, name: Any, node: ast.Call, scope: Scope) -> Expr:
        """min and max: of nothing they are None, so `default=None` may be written."""
        for keyword in node.keywords:
            default = keyword.value
            if keyword.arg != "default" or not isinstance(default, ast.Constant):
                raise self.refuse(node, f"{name} compares whole elements", "take what is compared")
            if default.value is not None:
                raise self.refuse(node, f"{name} of nothing is None", "write default=None")
        if len(node.args) != 1:
            raise self.refuse(node, f"{name} takes a collection", f"write {name}([a, b])")
        return Aggregate(name, self.expr(node.args[0], scope))

    def _method(self, node: ast.Call, function: ast.Attribute, scope: Scope) -> Expr:
        wanted = _METHODS.get(function.attr)
        if wanted is None or len(node.args) != wanted or node.keywords:
            problem = f"the method {function.attr} is not known"
            changes = "append, extend, sort, …" if wanted is None else "one argument"
            remedy = f"texts have {', '.join(_METHODS)}; what changes a value ({changes}) is not"
            raise self.refuse(node, problem, remedy)
        args = (self.expr(each, scope) for each in (function.value, *node.args))
        return Apply(function.attr, tuple(args))

    def _made(self, node: ast.Call, kind: type, scope: Scope) -> Expr:
        """A data class or a named tuple as a record."""
        signature = of_record(kind)
        if isinstance(signature, Unread):
            remedy = "write a data class or named tuple of components alone, or dict(name=…)"
            raise self.refuse(node, signature.problem, remedy)
        takes = f"{kind.__name__} has the components {', '.join(signature.parameters)}"
        given = self._arguments(node, signature, takes, scope)
        parts = {
            name: value if _is_expr(value) else self._default(node, value)
            for name, value in given.items()
        }
        return Record(tuple((name, parts[name]) for name in field_names(kind) or ()))

    def _written_out(
        self, node: ast.Call, target: FunctionType | Closure | Source, scope: Scope
    ) -> Expr:
        """A call of a function that is written in the same way, as its body."""
        if isinstance(target, Closure):
            source, tree, around = self.source, target.tree, target.scope
        else:
            source = source_of(target)
            tree, around = source.tree, {}
        if tree.name in self.calls:
            raise self.refuse(node, f"{tree.name} calls itself", "use db.datalog for recursion")
        signature = of_definition(tree.args)
        if isinstance(target, FunctionType):
            signature = Signature.from_callable(target)
        takes = f"{tree.name} takes {', '.join(signature.parameters) or 'nothing'}"
        given = self._arguments(node, signature, takes, scope)
        inner = _Function(source, self.compiling, (*self.calls, tree.name))
        bound = {
            name: value
            if _is_expr(value)
            else inner.expr(value, around)
            if isinstance(value, ast.expr)
            else self._default(node, value)
            for name, value in given.items()
        }
        return inner.result(tree, {**around, **bound})

    def _arguments(
        self, node: ast.Call, signature: Signature, takes: str, scope: Scope
    ) -> dict[str, Any]:
        """What a call gives for each parameter: an expression, or the default that it has."""
        named = {str(each.arg): each.value for each in node.keywords}
        try:
            bound = signature.bind(*node.args, **named)
        except TypeError as problem:
            told = f"{takes}: {problem}"
            raise self.refuse(node, told, "give each argument once") from None
        if takes_any(signature):
            raise self.refuse(node, f"{takes}, any number of them", "name each parameter")
        given = {name: self.expr(value, scope) for name, value in bound.arguments.items()}
        defaults = {name: each.default for name, each in signature.parameters.items()}
        return defaults | given

    def _default(self, node: ast.AST, value: object) -> Expr:
        if isinstance(value, Unread):
            raise self.refuse(node, value.problem, "give its value, or make its default a constant")
        return self._outside(node, value)


def _sum_of(bags: Sequence[Expr]) -> Expr:
    return _halved(Union, bags) if bags else Empty()


def _balanced(operator: str, tests: Sequence[Expr]) -> Expr:
    """Conditions put together by `and` or `or`."""
    return _halved(lambda a, b: Apply(operator, (a, b)), tests)


def _halved(join: Callable[[Expr, Expr], Expr], parts: Sequence[Expr]) -> Expr:
    """Parts put together by an operator that is associative, so that none is deep inside."""
    if len(parts) <= _FEW:
        return reduce(join, parts)
    middle = len(parts) // 2
    return join(_halved(join, parts[:middle]), _halved(join, parts[middle:]))


def _logical(operator: str, tests: Sequence[Expr]) -> Expr:
    """What `and` and `or` give: the operand that decides, which may be None."""
    if all(map(_is_never_none, tests)):
        return _balanced(operator, tests)
    if operator == "and":
        return reduce(lambda a, b: Choice(a, b, a), tests)
    return reduce(lambda a, b: Choice(a, a, b), tests)


def _is_never_none(test: Expr) -> bool:
    match test:
        case Apply("and" | "or", args):
            return all(map(_is_never_none, args))
        case Apply(function):
            return PRIMITIVES[function].gives_boolean
        case Aggregate(function):
            return function in ("any", "all")
        case Const(value):
            return value is not None
        case _:
            return False


def _listed(bag: Expr) -> list[Expr] | None:
    """The elements of a collection that is written out; None of any other."""
    match bag:
        case Empty():
            return []
        case Sng(item):
            return [item]
        case Union(left, right):
            first, second = _listed(left), _listed(right)
            return None if first is None or second is None else first + second
        case _:
            return None


def is_constant(value: object) -> bool:
    """Whether a value of Python's is one of the database's that may stand in a query."""
    if isinstance(value, Decimal):
        return value.is_finite() and -38 <= int(value.as_tuple().exponent) <= 0
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    if isinstance(value, int):
        return abs(value) < 10**38
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)
    dated = isinstance(value, date) and not isinstance(value, datetime)
    return value is None or dated


def _is_expr(value: object) -> bool:
    return type(value).__module__ == Const.__module__ and dataclasses.is_dataclass(value)


def _is_flatten(function: ast.expr, target: object) -> bool:
    return target is MISSING and isinstance(function, ast.Name) and function.id == "flatten"


def _negative(expr: Expr) -> Expr:
    number = isinstance(expr, Const) and isinstance(expr.value, int | float)
    if number and not isinstance(expr.value, bool):  # type: ignore[union-attr]
        return Const(-expr.value)  # type: ignore[union-attr, operator]
    return Apply("neg", (expr,))


def _called_remedy(target: object) -> str:
    if target is set or target is frozenset:
        return "use a SQL view with SELECT DISTINCT: a collection here keeps its duplicates"
    return _ONLY_FUNCTIONS


def _no_operator(operator: ast.AST) -> tuple[str, str]:
    """What is said of an operator that has no meaning here, and the remedy."""
    match operator:
        case ast.Pow():
            remedy = "multiply: write x * x"
        case ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.Invert():
            remedy = "of conditions write and, or, not; bits are computed in a SQL view"
        case ast.LShift() | ast.RShift():
            remedy = "multiply by a power of two, or divide by one with //"
        case _:
            remedy = "write sum of the products"
    return f"{word_of(operator)} has no meaning in a view", remedy


def _unsupported(node: ast.AST) -> tuple[str, str]:
    """What is said of a construct that has no meaning here, and the remedy."""
    match node:
        case ast.SetComp() | ast.Set():
            return "a set has no duplicates", "use a SQL view with SELECT DISTINCT"
        case ast.DictComp():
            return "a dict has each key once", "write a list of tuples or records"
        case ast.Lambda():
            return "a lambda has no name", "write a function with def"
        case ast.Starred():
            return "* gives parts that are not known", "write each part"
        case ast.Await() | ast.Yield() | ast.YieldFrom():
            return f"{word_of(node)} waits for something", "give back a comprehension"
        case ast.Subscript():
            return "collections have no order to take a part by", "use components by name"
        case ast.NamedExpr():
            return ":= changes a name", "assign it before return"
        case _:
            return f"{word_of(node)} has no meaning in a view", _ONLY_FUNCTIONS
