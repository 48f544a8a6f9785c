"""Binds expressions: names become columns, every call gets its type and the casts Flink adds."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from spark_jobs.sql.bind.calls import CallBinder
from spark_jobs.sql.bind.casts import arithmetic, cast, comparable, of_length, unified
from spark_jobs.sql.bind.json_calls import JsonBinder
from spark_jobs.sql.bind.scope import Scope
from spark_jobs.sql.parse.positions import Complaint, name_path
from spark_jobs.sql.parse.syntax import IntervalLiteral, JsonCall, TypedCast, TypedLiteral
from spark_jobs.sql.types import data_types, literals
from spark_jobs.sql.types.coercion import can_cast
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Call, Expr, Literal, predicate
from spark_jobs.sql.types.literals import LiteralError

Special = Callable[[exp.Expr], Expr | None]

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_ORDERED = ("<", "<=", ">", ">=")
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_NEGATED = {
    "IS NULL": "IS NOT NULL",
    "IS TRUE": "IS NOT TRUE",
    "IS FALSE": "IS NOT FALSE",
}
# what sqlglot reads and Flink or rejoin does not support, by the name that users know
_REFUSED: dict[type[exp.Expr], str] = {
    exp.Window: "OVER",
    exp.Filter: "FILTER",
    exp.IgnoreNulls: "IGNORE NULLS",
    exp.RespectNulls: "RESPECT NULLS",
    exp.WithinGroup: "WITHIN GROUP",
    exp.Order: "ORDER BY in a call",
    exp.Exists: "EXISTS",
    exp.Subquery: "a subquery in an expression",
    exp.Select: "a subquery in an expression",
    exp.Distinct: "DISTINCT",
    exp.RegexpLike: "RLIKE",
    exp.ILike: "ILIKE",
    exp.Tuple: "a list of values",
    exp.Overlaps: "OVERLAPS",
    exp.Lambda: "a lambda",
    exp.Placeholder: "?",
}
_HINTS = {
    "a subquery in an expression": "it may stand in a select list, WHERE, HAVING, or the ON of an"
    " inner join",
}


class ExpressionBinder:
    """Binds expressions over the columns of one scope.

    `special` may bind a node itself; for None the node is bound as usual. So an aggregate function
    becomes the column that holds its result.
    """

    def __init__(self, scope: Scope, special: Special | None = None) -> None:
        self.scope = scope
        self.special = special
        self.at = Complaint(scope.source)

    def bind(self, node: exp.Expr) -> Expr:
        """The typed expression.

        Raises:
            PositionedError: the first problem in it.
        """
        found = None if self.special is None else self.special(node)
        if found is not None:
            return found
        handler = _HANDLERS.get(type(node))
        if handler is None:
            what = _REFUSED.get(type(node), type(node).__name__.upper())
            self.at.refuse(node, what, _HINTS.get(what))
        try:
            return handler(self, node)
        except LiteralError as error:
            self.at.fail("BAD_LITERAL", str(error), node)

    def condition(self, node: exp.Expr, clause: str) -> Expr:
        """An expression that must be BOOLEAN."""
        found = self.bind(node)
        if found.type.name not in ("BOOLEAN", "NULL"):
            self.at.fail(
                "NOT_A_CONDITION",
                f"{clause} needs a BOOLEAN condition, found {found.type.sql()}",
                node,
                "write a comparison, such as x > 0",
            )
        return found

    def column(self, node: exp.Expr) -> Expr:
        parts, inner = name_path(node)
        if inner is not None:
            return self.scope.access(self.bind(inner), parts)
        return self.scope.resolve(parts)

    def literal(self, node: exp.Expr) -> Expr:
        if node.args.get("is_string"):
            return Literal(str(node.this), with_nullable(data_types.STRING, False))
        return literals.number(str(node.this))

    def boolean(self, node: exp.Expr) -> Expr:
        return Literal(bool(node.this), with_nullable(data_types.BOOLEAN, False))

    def null(self, _: exp.Expr) -> Expr:
        return Literal(None, data_types.NULL)

    def hex_string(self, node: exp.Expr) -> Expr:
        try:
            return Literal(bytes.fromhex(str(node.this)), with_nullable(data_types.BYTES, False))
        except ValueError:
            self.at.fail("BAD_LITERAL", f"X'{node.this}' is not hexadecimal", node)

    def typed_literal(self, node: exp.Expr) -> Expr:
        kind = node.args["kind"]
        if kind == "TIMESTAMP_LTZ":
            self.at.refuse(node, "TIMESTAMP_LTZ '...'", "write CAST('...' AS TIMESTAMP_LTZ(3))")
        return literals.typed(kind, node.this)

    def interval(self, node: exp.Expr) -> Expr:
        args = node.args
        return literals.interval(args["this"], args["unit"], args.get("to"), bool(args["negative"]))

    def paren(self, node: exp.Expr) -> Expr:
        return self.bind(node.this)

    def comparison(self, node: exp.Expr) -> Expr:
        if isinstance(node.this, exp.Tuple) and isinstance(node.expression, exp.Tuple):
            return self._compare_lists(node)
        return self._compare(COMPARISONS[type(node)], node.this, node.expression, node)

    def _compare(self, op: str, left: exp.Expr, right: exp.Expr, node: exp.Expr) -> Expr:
        return self.compared(op, self.bind(left), self.bind(right), node)

    def _compare_lists(self, node: exp.Expr) -> Expr:
        """`(a, b) = (c, d)`, one comparison each, and its negation."""
        left, right = node.this.expressions, node.expression.expressions
        op = COMPARISONS[type(node)]
        if op not in ("=", "<>") or len(left) != len(right):
            self.at.refuse(node, f"{op} between lists of values", "compare their values one by one")
        parts = tuple(self._compare("=", a, b, node) for a, b in zip(left, right, strict=True))
        equal = predicate("AND", parts)
        return equal if op == "=" else self.negated(equal)

    def _in_list_of_rows(self, node: exp.Expr) -> Expr:
        """`(a, b) IN ((1, 2), (3, 4))`, as comparisons of the values."""
        found: list[Expr] = []
        for item in node.expressions:
            values = item.expressions if isinstance(item, exp.Tuple) else [item]
            if len(values) != len(node.this.expressions):
                wanted = len(node.this.expressions)
                self.at.fail("COLUMN_COUNT", f"IN needs lists of {wanted} values", item)
            pairs = zip(node.this.expressions, values, strict=True)
            found.append(predicate("AND", [self._compare("=", a, b, node) for a, b in pairs]))
        return found[0] if len(found) == 1 else predicate("OR", found)

    def compared(self, op: str, left: Expr, right: Expr, node: exp.Expr) -> Expr:
        pair = comparable(left, right)
        if pair is None or (op in _ORDERED and pair[0].type.name in ("ROW", "ARRAY")):
            self.at.fail(
                "INCOMPATIBLE_TYPES",
                f"cannot compare {left.type.sql()} {op} {right.type.sql()}",
                node,
                "CAST one side to the type of the other",
            )
        nullable = not op.startswith("IS ") and any(e.type.nullable for e in pair)
        return Call(op, pair, with_nullable(data_types.BOOLEAN, nullable))

    def connective(self, node: exp.Expr) -> Expr:
        op = "AND" if isinstance(node, exp.And) else "OR"
        args: list[Expr] = []
        for side in (node.this, node.expression):
            bound = self.condition(side, op)
            args += bound.args if isinstance(bound, Call) and bound.op == op else (bound,)
        return predicate(op, args)

    def negation(self, node: exp.Expr) -> Expr:
        return self.negated(self.condition(node.this, "NOT"))

    def negated(self, inner: Expr) -> Expr:
        """The negation; of IS NULL and its like by the opposite operator instead of NOT."""
        if isinstance(inner, Call) and inner.op in _NEGATED:
            return Call(_NEGATED[inner.op], inner.args, inner.type)
        return Call("NOT", (inner,), inner.type)

    def is_predicate(self, node: exp.Expr) -> Expr:
        """IS NULL, TRUE, FALSE; IS UNKNOWN is IS NULL of a BOOLEAN."""
        word = node.expression.name
        if word.startswith("JSON"):
            text = self.bind(node.this)
            self._need_text(f"IS {word}", text, node)
            kind = Literal(word.removeprefix("JSON").strip() or "VALUE", data_types.STRING)
            return Call("IS JSON", (text, kind), with_nullable(data_types.BOOLEAN, False))
        op = "IS NULL" if word == "UNKNOWN" else f"IS {word}"
        value = self.bind(node.this) if word == "NULL" else self.condition(node.this, f"IS {word}")
        return Call(op, (value,), with_nullable(data_types.BOOLEAN, False))

    def between(self, node: exp.Expr) -> Expr:
        value, low, high = (self.bind(n) for n in (node.this, node.args["low"], node.args["high"]))
        found = self._bounded(value, low, high, node)
        if not node.args.get("symmetric"):
            return found
        return predicate("OR", (found, self._bounded(value, high, low, node)))

    def _bounded(self, value: Expr, low: Expr, high: Expr, node: exp.Expr) -> Expr:
        bounds = self.compared(">=", value, low, node), self.compared("<=", value, high, node)
        return predicate("AND", bounds)

    def in_list(self, node: exp.Expr) -> Expr:
        if node.args.get("query") or not node.expressions:
            self.at.refuse(node, "IN (SELECT ...)", "write it in WHERE")
        if isinstance(node.this, exp.Tuple):
            return self._in_list_of_rows(node)
        value = self.bind(node.this)
        items = [self.bind(e) for e in node.expressions]
        if value.type.name in data_types.DATETIMES:
            items = [cast(i, value.type) if isinstance(i, Literal) else i for i in items]
        args = unified((value, *items))
        if args is None:
            self.at.fail(
                "INCOMPATIBLE_TYPES",
                f"cannot compare {value.type.sql()} with the list of"
                f" {', '.join(sorted({i.type.sql() for i in items}))}",
                node,
                "CAST one side to the type of the other",
            )
        return predicate("IN", args)

    def like(self, node: exp.Expr) -> Expr:
        escape: tuple[Expr, ...] = ()
        inner = node
        if isinstance(node, exp.Escape):
            inner, escape = node.this, (self.bind(node.expression),)
            if not isinstance(inner, (exp.Like, exp.SimilarTo)):
                self.at.refuse(node, "ESCAPE without LIKE")
        op = "LIKE" if isinstance(inner, exp.Like) else "SIMILAR TO"
        args = (self.bind(inner.this), self.bind(inner.expression), *escape)
        for arg in args:
            self._need_text(op, arg, node)
        if escape and not (isinstance(escape[0], Literal) and len(str(escape[0].value)) == 1):
            self.at.fail("BAD_LITERAL", "ESCAPE needs a constant of one character", node)
        return predicate(op, args)

    def concatenation(self, node: exp.Expr) -> Expr:
        args = (self.bind(node.this), self.bind(node.expression))
        for arg in args:
            self._need_text("||", arg, node)
        nullable = any(a.type.nullable for a in args)
        return Call("||", args, with_nullable(data_types.STRING, nullable))

    def _need_text(self, op: str, arg: Expr, node: exp.Expr) -> None:
        if arg.type.name not in ("STRING", "NULL"):
            self.at.fail(
                "INCOMPATIBLE_TYPES",
                f"{op} needs STRING, found {arg.type.sql()}",
                node,
                "CAST it to STRING",
            )

    def arithmetic(self, node: exp.Expr) -> Expr:
        op = _ARITHMETIC[type(node)]
        left, right = self.bind(node.this), self.bind(node.expression)
        found = arithmetic(op, left, right)
        if found is None:
            self.at.fail(
                "INCOMPATIBLE_TYPES",
                f"cannot compute {left.type.sql()} {op} {right.type.sql()}",
                node,
                "TIMESTAMPDIFF gives the time between two timestamps"
                if left.type.name in data_types.DATETIMES
                and right.type.name in data_types.DATETIMES
                else None,
            )
        if found.type.name == "DATE" and not _is_whole_days((left, right)):
            self.at.refuse(node, "DATE with an interval that is not of whole days, months or years")
        return found

    def sign(self, node: exp.Expr) -> Expr:
        signed = _signed_number(node)
        if signed is not None:
            return literals.number(signed)
        inner = self.bind(node.this)
        if inner.type.name not in (*data_types.NUMERIC, *data_types.INTERVALS):
            self.at.fail("INCOMPATIBLE_TYPES", f"cannot negate {inner.type.sql()}", node)
        return Call("-", (inner,), inner.type)

    def cast(self, node: exp.Expr) -> Expr:
        value, written, op = self.bind(node.this), node.args["to"], node.args["op"]
        target = written.type
        if written.has_inner:
            self.at.refuse(node, f"{op} to a length inside {target.name}", "leave the length out")
        if not can_cast(value.type, target):
            hint = "TO_TIMESTAMP_LTZ(number, 3) reads epoch milliseconds"
            self.at.fail(
                "INCOMPATIBLE_TYPES",
                f"cannot cast {value.type.sql()} to {target.sql()}",
                node,
                hint if target.name in data_types.TIMESTAMPS else None,
            )
        found = cast(value, target)
        if op == "TRY_CAST" and isinstance(found, Call) and found is not value:
            found = Call("TRY_CAST", (value,), with_nullable(target, True))
        if written.length is None:
            return found
        if target.name != "STRING":
            self.at.refuse(node, f"{op} to {target.name} of a length", f"use {target.name}")
        return of_length(found, written.length)

    def case(self, node: exp.Expr) -> Expr:
        operand = self.bind(node.this) if node.this is not None else None
        conditions: list[Expr] = []
        results: list[Expr] = []
        for branch in node.args["ifs"]:
            conditions.append(
                self.condition(branch.this, "WHEN")
                if operand is None
                else self.compared("=", operand, self.bind(branch.this), branch.this)
            )
            results.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        results.append(
            self.bind(default) if default is not None else Literal(None, data_types.NULL)
        )
        same = unified(results)
        if same is None:
            kinds = ", ".join(dict.fromkeys(r.type.sql() for r in results))
            self.at.fail("INCOMPATIBLE_TYPES", f"the types of CASE differ: {kinds}", node)
        args = [a for pair in zip(conditions, same, strict=False) for a in pair]
        nullable = any(r.type.nullable for r in same)
        return Call("CASE", (*args, same[-1]), with_nullable(same[-1].type, nullable))

    def item(self, node: exp.Expr) -> Expr:
        """`array[1]` and `map['key']`; NULL where the index or key does not exist."""
        if len(node.expressions) != 1:
            self.at.refuse(node, "more than one index")
        value, index = self.bind(node.this), self.bind(node.expressions[0])
        match value.type:
            case DataType(name="ARRAY", element=DataType() as element):
                wanted = data_types.INT
            case DataType(name="MAP", element=DataType() as element, key=DataType() as wanted):
                pass
            case _:
                self.at.fail(
                    "INCOMPATIBLE_TYPES",
                    f"[...] needs ARRAY or MAP, found {value.type.sql()}",
                    node,
                )
        pair = comparable(index, Literal(None, wanted))
        if pair is None or (
            wanted is data_types.INT and index.type.name not in data_types.INTEGERS
        ):
            self.at.fail(
                "INCOMPATIBLE_TYPES",
                f"[...] needs {wanted.sql()}, found {index.type.sql()}",
                node,
            )
        return Call("ITEM", (value, cast(index, wanted)), with_nullable(element, True))

    def function(self, node: exp.Expr) -> Expr:
        return CallBinder(self.bind, self.compared, self.at).bind(node)

    def json(self, node: exp.Expr) -> Expr:
        return JsonBinder(self.bind, self.at).bind(node)


_HANDLERS: dict[type[exp.Expr], Callable[[ExpressionBinder, exp.Expr], Expr]] = {
    exp.Column: ExpressionBinder.column,
    exp.Dot: ExpressionBinder.column,
    exp.Literal: ExpressionBinder.literal,
    exp.Boolean: ExpressionBinder.boolean,
    exp.Null: ExpressionBinder.null,
    exp.HexString: ExpressionBinder.hex_string,
    TypedLiteral: ExpressionBinder.typed_literal,
    IntervalLiteral: ExpressionBinder.interval,
    exp.Paren: ExpressionBinder.paren,
    exp.And: ExpressionBinder.connective,
    exp.Or: ExpressionBinder.connective,
    exp.Not: ExpressionBinder.negation,
    exp.Is: ExpressionBinder.is_predicate,
    exp.Between: ExpressionBinder.between,
    exp.In: ExpressionBinder.in_list,
    exp.Like: ExpressionBinder.like,
    exp.SimilarTo: ExpressionBinder.like,
    exp.Escape: ExpressionBinder.like,
    exp.DPipe: ExpressionBinder.concatenation,
    exp.Neg: ExpressionBinder.sign,
    exp.Case: ExpressionBinder.case,
    exp.Bracket: ExpressionBinder.item,
    exp.Anonymous: ExpressionBinder.function,
    TypedCast: ExpressionBinder.cast,
    JsonCall: ExpressionBinder.json,
    **dict.fromkeys(COMPARISONS, ExpressionBinder.comparison),
    **dict.fromkeys(_ARITHMETIC, ExpressionBinder.arithmetic),
}


def _signed_number(node: exp.Expr) -> str | None:
    """The text of a number with its signs, which are part of it; None if it is something else."""
    match node:
        case exp.Neg():
            inner = _signed_number(node.this)
            if inner is None:
                return None
            return inner[1:] if inner.startswith("-") else f"-{inner}"
        case exp.Paren():
            return _signed_number(node.this)
        case exp.Literal() if not node.args.get("is_string"):
            return str(node.this)
        case _:
            return None


def _is_whole_days(args: Sequence[Expr]) -> bool:
    interval = next((a for a in args if a.type.name == "INTERVAL_DAY"), None)
    if interval is None:
        return True
    value = interval.value if isinstance(interval, Literal) else None
    return isinstance(value, int) and value % 86_400_000 == 0
