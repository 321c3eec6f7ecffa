"""JSONPath (RFC 9535) with bounded work. Import it at its first use: it takes 1 MB, and few
monitors have assertions with a path.

A path can visit one value many times (``$[0,0][0,0]…``, ``$..*..*``, filters in filters), so
``WorkBudget`` counts the visits: ``_Node`` counts each node, and ``_counted`` replaces the filters
and inner queries of a compiled path. ``match()`` and ``search()`` run on RE2.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError, JSONPathNode, JSONPathQuery
from jsonpath_rfc9535.filter_expressions import (
    ComparisonExpression,
    Expression,
    FilterContext,
    FilterExpression,
    FilterQuery,
    FunctionExtension,
    LogicalExpression,
    PrefixExpression,
    RootFilterQuery,
    StringLiteral,
)
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction
from jsonpath_rfc9535.selectors import FilterSelector

from app.i18n import _
from app.rules.bounded import TOO_DEEP, WorkBudget, compiled, matches

_CHARACTERS = 8  # of a filter that count as one unit of work for each value that it tests

_work: ContextVar[WorkBudget] = ContextVar("work")


def values_at(path: str, document: Any, work: WorkBudget) -> list[Any]:
    """The values at a path. Raises ValueError with a sentence."""
    token = _work.set(work)
    try:
        return [node.value for node in query(path).finditer(document)]
    except (JSONPathError, RecursionError):
        raise ValueError(_(TOO_DEEP)) from None
    finally:
        _work.reset(token)


@lru_cache(maxsize=1024)
def query(path: str) -> JSONPathQuery:
    """Raises ValueError with a sentence."""
    try:
        compiled_path = _ENVIRONMENT.compile(path)
    except (JSONPathError, RecursionError) as fault:
        reason = fault.args[0] if fault.args else ""
        raise ValueError(_("The path cannot be read: %(reason)s.", reason=reason)) from None
    return _counted(compiled_path)


class _Node(JSONPathNode):
    __slots__ = ()

    def new_child(self, value: object, key: int | str, parent: JSONPathNode | None) -> _Node:
        _work.get().spend(1)
        return _Node(value=value, location=(), parent=None, root=self.root)


class _Query(JSONPathQuery):
    __slots__ = ()

    def finditer(self, value: Any) -> Iterable[JSONPathNode]:
        nodes: Iterable[JSONPathNode] = [_Node(value=value, location=(), parent=None, root=value)]
        for segment in self.segments:
            nodes = segment.resolve(nodes)
        return nodes


class _Filter(Expression):
    """Counts each value that a filter tests."""

    __slots__ = ("cost", "expression")

    def __init__(self, expression: FilterExpression) -> None:
        super().__init__(expression.token)
        self.expression, self.cost = expression, 1 + len(str(expression)) // _CHARACTERS

    def __str__(self) -> str:
        return str(self.expression)

    def evaluate(self, context: FilterContext) -> object:
        _work.get().spend(self.cost)
        return self.expression.evaluate(context)


def _counted(plain: JSONPathQuery) -> JSONPathQuery:
    for segment in plain.segments:
        for selector in segment.selectors:
            if isinstance(selector, FilterSelector):
                _count_queries(selector.expression)
                selector.expression = _Filter(selector.expression)  # type: ignore[assignment]
    return _Query(env=plain.env, segments=plain.segments)


def _count_queries(expression: Expression) -> None:
    """Replace the queries in a filter. Raises ValueError with a sentence for a filter whose work
    cannot be counted.
    """
    if isinstance(expression, FilterQuery):
        expression.query = _counted(expression.query)
    elif isinstance(expression, FilterExpression):
        _count_queries(expression.expression)
    elif isinstance(expression, PrefixExpression):
        _count_queries(expression.right)
    elif isinstance(expression, LogicalExpression | ComparisonExpression):
        sides = (expression.left, expression.right)
        if isinstance(expression, ComparisonExpression):
            _refuse_of_root(sides)
        for side in sides:
            _count_queries(side)
    elif isinstance(expression, FunctionExtension):
        if expression.name in _PATTERNED:
            _require_pattern(expression.args[1])
        for argument in expression.args:
            _count_queries(argument)


def _refuse_of_root(sides: Iterable[Expression]) -> None:
    """Refuse a comparison with the root: for each value it would compare two large parts of the
    document.
    """
    queries = [side for side in sides if isinstance(side, FilterQuery)]
    if len(queries) == 2 and any(isinstance(side, RootFilterQuery) for side in queries):
        raise ValueError(_("A filter compares values at @ with each other or with a literal."))


def _require_pattern(argument: Expression) -> None:
    """Refuse a pattern that is read from the document, whose size nobody has validated."""
    if not isinstance(argument, StringLiteral):
        raise ValueError(_("Write the pattern of match() or search() in the path, in quotes."))
    compiled(argument.value)


class _Matching(FilterFunction):
    """``match()`` (``whole``) or ``search()``."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012 - as its base has them
    return_type = ExpressionType.LOGICAL

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole

    def __call__(self, text: object, pattern: str) -> bool:
        return isinstance(text, str) and matches(pattern, text, _work.get(), whole=self.whole)


_PATTERNED = {"match": _Matching(whole=True), "search": _Matching(whole=False)}
_ENVIRONMENT = JSONPathEnvironment()
_ENVIRONMENT.function_extensions.update(_PATTERNED)
