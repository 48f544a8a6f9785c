"""Which operands an operator takes: the precedences of Flink's parser, applied as it applies them.

An expression is a flat list of operands and operators. Of the operators that hold their operands
at least as strongly as the operators beside them do, the strongest takes its operands first, until
one operand is left. This is Calcite's way. It differs from a descent by precedence where a prefix
or postfix operator stands beside a predicate: `a IS NULL BETWEEN b AND c = d` reads
`a IS NULL BETWEEN b AND (c = d)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlglot import exp
from sqlglot.tokenizer_core import Token

Kind: TypeAlias = Literal["prefix", "postfix", "infix", "and", "pattern", "escape", "between"]
Build: TypeAlias = Callable[..., exp.Expr]

# how strongly operators hold their operands: Calcite's precedences, with room between two of them
OR, AND, NOT, IS, COMPARISON, PREDICATE, SUM, PRODUCT, SIGN = (
    4 * precedence for precedence in (22, 24, 26, 28, 30, 32, 40, 60, 80)
)
_NONE = -1
_STRONGEST = 1_000


class GroupingError(Exception):
    """Operators that do not find their operands, and the token where that shows."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.message = message
        self.token = token


@dataclass(frozen=True, slots=True)
class Operand:
    """What an operator may take; `is_list` is the list behind IN, which nothing else takes."""

    node: exp.Expr
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that still waits for its operands, from which `build` makes the node.

    `left` and `right` say how strongly it holds the operand on that side, if it takes one there.
    """

    kind: Kind
    token: Token
    build: Build
    left: int = _NONE
    right: int = _NONE
    takes_list: bool = False

    @property
    def strength(self) -> int:
        return max(self.left, self.right)


Part: TypeAlias = Operand | Operator


def prefix(token: Token, strength: int, build: Build) -> Operator:
    return Operator("prefix", token, build, right=strength)


def postfix(token: Token, build: Build) -> Operator:
    """IS NULL and its like."""
    return Operator("postfix", token, build, left=IS + 2)


def infix(token: Token, strength: int, build: Build, takes_list: bool = False) -> Operator:
    """An operator between two operands; of equals the first one takes its operands first."""
    kind: Kind = "and" if strength == AND else "infix"
    return Operator(kind, token, build, strength, strength + 1, takes_list)


def pattern(token: Token, build: Build) -> Operator:
    """LIKE, with a third operand if ESCAPE follows; of equals the last one goes first."""
    return Operator("pattern", token, build, PREDICATE + 2, PREDICATE)


def escape(token: Token) -> Operator:
    return Operator("escape", token, exp.Escape, 0, 2)


def between(token: Token, build: Build) -> Operator:
    """BETWEEN, with the operands on both sides of the AND that follows."""
    return Operator("between", token, build, PREDICATE, PREDICATE + 2)


def grouped(parts: list[Part]) -> exp.Expr:
    """The expression that the parts are.

    Raises:
        GroupingError: an operator has no operand to take.
    """
    _group(parts)
    return next(part.node for part in parts if isinstance(part, Operand))


def _group(parts: list[Part]) -> None:
    """Let operators take their operands until none can."""
    while (found := _next_operator(parts)) is not None:
        at, operator = found
        places = _operands_of(parts, at, operator)
        operands = [_operand(parts, place, operator) for place in places]
        lists = [o.is_list for o in operands]
        if any(lists[:-1]) or lists[-1] != operator.takes_list:
            raise GroupingError("put IN (...) in parentheses", operator.token)
        node = operator.build(*(o.node for o in operands))
        parts[min(at, places[0]) : max(at, places[-1]) + 1] = [Operand(node)]


def _next_operator(parts: list[Part]) -> tuple[int, Operator] | None:
    """The strongest that its neighbours do not keep from its operands, the first of equals."""
    operators = [(at, part) for at, part in enumerate(parts) if isinstance(part, Operator)]
    found, strongest = None, _NONE
    for i, (at, operator) in enumerate(operators):
        before = operators[i - 1][1] if i > 0 else None
        after = operators[i + 1][1] if i + 1 < len(operators) else None
        if operator.strength > strongest and _is_free(operator, before, after):
            found, strongest = (at, operator), operator.strength
    return found


def _is_free(operator: Operator, before: Operator | None, after: Operator | None) -> bool:
    """Whether no neighbour takes an operand of the operator first.

    A postfix operator before it and a prefix operator behind it always do.
    """
    held_before = held_after = _NONE
    if before is not None:
        held_before = _STRONGEST if before.kind == "postfix" else before.right
    if after is not None:
        held_after = _STRONGEST if after.kind == "prefix" else after.left
    return (operator.left == _NONE or operator.left >= held_before) and (
        operator.right == _NONE or operator.right >= held_after
    )


def _operands_of(parts: list[Part], at: int, operator: Operator) -> list[int]:
    """Where the operands stand, after those of BETWEEN and LIKE have been grouped."""
    match operator.kind:
        case "prefix":
            return [at + 1]
        case "postfix":
            return [at - 1]
        case "between":
            _group_from(parts, at + 1, 0, until_and=True)
            if not _is(parts, at + 2, "and"):
                raise GroupingError("BETWEEN needs AND and a second bound", operator.token)
            _group_from(parts, at + 3, operator.right)
            return [at - 1, at + 1, at + 3]
        case "pattern":
            _group_from(parts, at + 1, operator.right)
            if not _is(parts, at + 2, "escape"):
                return [at - 1, at + 1]
            _group_from(parts, at + 3, operator.right)
            return [at - 1, at + 1, at + 3]
        case "escape":
            raise GroupingError("ESCAPE belongs to no LIKE", operator.token)
        case _:
            return [at - 1, at + 1]


def _group_from(parts: list[Part], start: int, weakest: int, until_and: bool = False) -> None:
    """Group the parts from `start` up to an operator that is weaker, or up to an AND."""
    end = start
    while end < len(parts) and not (
        _is_weaker(parts[end], weakest) or (until_and and _is(parts, end, "and"))
    ):
        end += 1
    own = parts[start:end]
    _group(own)
    parts[start:end] = own


def _is_weaker(part: Part, than: int) -> bool:
    if isinstance(part, Operand):
        return False
    return (part.right if part.left == _NONE else part.left) < than


def _is(parts: list[Part], at: int, kind: Kind) -> bool:
    part = parts[at] if at < len(parts) else None
    return isinstance(part, Operator) and part.kind == kind


def _operand(parts: list[Part], at: int, operator: Operator) -> Operand:
    part = parts[at] if 0 <= at < len(parts) else operator
    if isinstance(part, Operator):
        raise GroupingError(
            f"put what {part.token.text.upper()} belongs to in parentheses", part.token
        )
    return part
