"""Reads expressions of operators: operands and operators in the order of the text.

grouping.py says which operands each operator takes.
"""

from sqlglot import exp, parser
from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.sql.parse import grouping
from spark_jobs.sql.parse.grouping import Build, GroupingError, Operand, Operator, Part

_INFIX: dict[TokenType, tuple[int, type[exp.Binary]]] = {
    TokenType.OR: (grouping.OR, exp.Or),
    TokenType.AND: (grouping.AND, exp.And),
    TokenType.EQ: (grouping.COMPARISON, exp.EQ),
    TokenType.NEQ: (grouping.COMPARISON, exp.NEQ),
    TokenType.LT: (grouping.COMPARISON, exp.LT),
    TokenType.LTE: (grouping.COMPARISON, exp.LTE),
    TokenType.GT: (grouping.COMPARISON, exp.GT),
    TokenType.GTE: (grouping.COMPARISON, exp.GTE),
    TokenType.OVERLAPS: (grouping.COMPARISON, exp.Overlaps),
    TokenType.PLUS: (grouping.SUM, exp.Add),
    TokenType.DASH: (grouping.SUM, exp.Sub),
    TokenType.STAR: (grouping.PRODUCT, exp.Mul),
    TokenType.SLASH: (grouping.PRODUCT, exp.Div),
    TokenType.MOD: (grouping.PRODUCT, exp.Mod),
    TokenType.DPIPE: (grouping.PRODUCT, exp.DPipe),
}
_PATTERNS: dict[TokenType, type[exp.Binary]] = {
    TokenType.LIKE: exp.Like,
    TokenType.ILIKE: exp.ILike,
    TokenType.RLIKE: exp.RegexpLike,
    TokenType.SIMILAR_TO: exp.SimilarTo,
}
_LONG_CHAIN = 50
_PREFIXES = (TokenType.NOT, TokenType.DASH, TokenType.PLUS)
_NEGATABLE = (*_PATTERNS, TokenType.BETWEEN, TokenType.IN)
_STRENGTHS = {
    **{type_: strength for type_, (strength, _) in _INFIX.items()},
    **dict.fromkeys(_NEGATABLE, grouping.PREDICATE),
    TokenType.IS: grouping.IS,
    TokenType.ESCAPE: 0,
}


class OperatorParser(parser.Parser):
    """Expressions of operators; `_parse_type` reads their operands."""

    def _parse_disjunction(self) -> exp.Expr | None:
        return self._operation(0)

    def _parse_bitwise(self) -> exp.Expr | None:
        """An expression without predicates and connectives, as in POSITION(part IN text)."""
        return self._operation(grouping.SUM)

    def _operation(self, weakest: int) -> exp.Expr | None:
        """An expression of operators that are not weaker; None if none begins here."""
        parts = self._operand()
        if not parts:
            return None
        while (operator := self._operator(weakest)) is not None:
            parts += [operator, *self._behind(operator)]
        try:
            return _shallow(grouping.grouped(parts))
        except GroupingError as error:
            self.raise_error(error.message, error.token)
            raise AssertionError from error

    def _operand(self) -> list[Part]:
        """An operand and the NOTs and signs before it; empty if there is none."""
        parts: list[Part] = []
        while self._curr.token_type in _PREFIXES:
            parts.append(_prefix(self._curr))
            self._advance()
        node = self._parse_type()
        if node is not None:
            return [*parts, Operand(node)]
        if parts:
            self._missing_operand()
        return []

    def _operator(self, weakest: int) -> Operator | None:
        """The operator that stands here; None if there is none or it is weaker."""
        token = self._curr
        negated = token.token_type == TokenType.NOT
        type_ = self._next.token_type if negated else token.token_type
        if _STRENGTHS.get(type_, -1) < weakest or (negated and type_ not in _NEGATABLE):
            return None
        self._advance(2 if negated else 1)
        match type_:
            case TokenType.IS:
                return self._is(token)
            case TokenType.ESCAPE:
                return grouping.escape(token)
            case TokenType.IN:
                in_list = _negated(_in_list, negated)
                return grouping.infix(token, grouping.PREDICATE, in_list, takes_list=True)
            case TokenType.BETWEEN:
                return grouping.between(token, _negated(self._bounds(), negated))
            case _ if type_ in _PATTERNS:
                return grouping.pattern(token, _negated(_pattern(_PATTERNS[type_]), negated))
            case _:
                strength, node = _INFIX[type_]
                return grouping.infix(token, strength, _binary(node))

    def _behind(self, operator: Operator) -> list[Part]:
        """What an operator needs behind it."""
        if operator.right < 0:
            return []
        if operator.takes_list:
            return [Operand(self._list(), is_list=True)]
        if operator.kind == "escape" and self._curr.token_type in _PREFIXES:
            self.raise_error("expected the character after ESCAPE")
        found = self._operand()
        if not found:
            self._missing_operand()
        return found

    def _is(self, token: Token) -> Operator:
        """`IS [NOT] NULL` and its like, and `IS [NOT] DISTINCT FROM`."""
        negated = self._match(TokenType.NOT)
        if self._match_text_seq("DISTINCT", "FROM"):
            node = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return grouping.infix(token, grouping.COMPARISON, _binary(node))
        is_word = self._curr.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
        word = self._curr.text.upper() if is_word else ""
        if word not in ("NULL", "TRUE", "FALSE", "UNKNOWN", "JSON"):
            self.raise_error("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")
        self._advance()
        if word == "JSON" and self._match_texts(("VALUE", "OBJECT", "ARRAY", "SCALAR")):
            word = f"JSON {self._prev.text.upper()}"
        return grouping.postfix(token, _negated(_is_predicate(word), negated))

    def _bounds(self) -> Build:
        symmetric = self._match_texts(("SYMMETRIC",))
        if not symmetric:
            self._match_texts(("ASYMMETRIC",))

        def build(value: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
            return exp.Between(this=value, low=low, high=high, symmetric=symmetric)

        return build

    def _list(self) -> exp.In:
        """The list or subquery of IN, before the operand on its left is known."""
        if self._curr.token_type != TokenType.L_PAREN:
            self.raise_error("expected a list in parentheses after IN")
        found = self._parse_in(exp.Null())
        if [type(item) for item in found.expressions] == [exp.Values]:
            rows = exp.From(this=found.expressions[0])
            query = exp.Select(expressions=[exp.Star()], from_=rows)
            return exp.In(this=exp.Null(), query=exp.Subquery(this=query))
        if not found.expressions and not found.args.get("query"):
            self.raise_error("the list after IN is empty", self._prev)
        return found

    def _missing_operand(self) -> None:
        self.raise_error("Required keyword")


def _shallow(node: exp.Expr) -> exp.Expr:
    """A long chain of ANDs or ORs in halves, because all that follows recurses into them."""
    parts: list[exp.Expr] = []
    left = node
    while isinstance(left, exp.Connector) and type(left) is type(node):
        parts.append(left.expression)
        left = left.this
    if len(parts) < _LONG_CHAIN:
        return node
    return _halved(type(node), [left, *reversed(parts)])


def _halved(kind: type[exp.Expr], parts: list[exp.Expr]) -> exp.Expr:
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return kind(this=_halved(kind, parts[:half]), expression=_halved(kind, parts[half:]))


def _prefix(token: Token) -> Operator:
    """NOT and signs; a plus changes nothing."""
    match token.token_type:
        case TokenType.NOT:
            return grouping.prefix(token, grouping.NOT, _not)
        case TokenType.DASH:
            return grouping.prefix(token, grouping.SIGN, lambda operand: exp.Neg(this=operand))
        case _:
            return grouping.prefix(token, grouping.SIGN, lambda operand: operand)


def _not(operand: exp.Expr) -> exp.Expr:
    return exp.Not(this=operand)


def _negated(build: Build, negated: bool | None) -> Build:
    return (lambda *operands: _not(build(*operands))) if negated else build


def _binary(node: type[exp.Binary]) -> Build:
    return lambda left, right: node(this=left, expression=right)


def _pattern(node: type[exp.Binary]) -> Build:
    def build(text: exp.Expr, form: exp.Expr, escape: exp.Expr | None = None) -> exp.Expr:
        found = node(this=text, expression=form)
        return found if escape is None else exp.Escape(this=found, expression=escape)

    return build


def _in_list(value: exp.Expr, items: exp.Expr) -> exp.Expr:
    items.set("this", value)
    return items


def _is_predicate(word: str) -> Build:
    return lambda operand: exp.Is(this=operand, expression=exp.Var(this=word))
