"""CREATE FUNCTION ... LANGUAGE PYTHON: the function's signature, and calls of it."""

import inspect
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from spark_jobs.errors import CatalogError, SqlError
from spark_jobs.functions.declared import DETERMINISTIC, RESULT_TYPE
from spark_jobs.functions.loading import NoFunctionError, load
from spark_jobs.sql.bind.casts import cast
from spark_jobs.sql.parse.source_text import SourceText
from spark_jobs.sql.parse.statements import CreateFunction
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.coercion import can_cast, common_type
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Expr, PythonCall
from spark_jobs.sql.types.functions import FunctionError
from spark_jobs.sql.types.python_function import PythonFunction
from spark_jobs.sql.types.type_text import TypeTextError, parse_type

# what a type hint is in SQL
_HINTS: dict[Any, DataType] = {
    int: data_types.BIGINT,
    float: data_types.DOUBLE,
    bool: data_types.BOOLEAN,
    str: data_types.STRING,
    bytes: data_types.BYTES,
    Decimal: DataType("DECIMAL", precision=38, scale=18),
    date: DataType("DATE"),
    datetime: DataType("TIMESTAMP", precision=6),
}
_SCALARS = (
    "STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL",
    "DATE", "TIMESTAMP", "BYTES",
)  # fmt: skip
_DECLARE = "declare it: @rejoin.udf(result_type='STRING')"


def bind_python_function(source: SourceText, statement: CreateFunction) -> PythonFunction:
    """The function, which is imported now; modules beside the job file are found.

    Raises:
        PositionedError: it cannot be imported, or does not say what it gives.
    """
    at, target = statement.target.start, statement.target.text
    file = Path(source.name)
    try:
        function = load(target, file.parent if file.is_file() else None)
    except NoFunctionError as error:
        hint = "modules are found beside the job file and on PYTHONPATH"
        raise source.place(CatalogError("FUNCTION_NOT_FOUND", str(error), hint), at) from error
    if not getattr(function, DETERMINISTIC, True):
        message = f"{target} is declared as not deterministic"
        hint = "a result that is taken back is computed again, and has to be the same"
        raise source.place(SqlError("FUNCTION_NOT_DETERMINISTIC", message, hint), at)
    try:
        return _signature(statement.name.text, target, function)
    except (FunctionError, TypeTextError) as error:
        raise source.place(SqlError("FUNCTION_TYPE", error.message, _DECLARE), at) from error


def bind_python_call(
    function: PythonFunction, args: Sequence[Expr], place: tuple[int, int]
) -> PythonCall:
    """A call; arguments are cast to what the type hints say.

    Raises:
        FunctionError: other arguments than the function takes.
    """
    most, least = len(function.parameters), len(function.parameters) - function.optional
    if len(args) < least or (len(args) > most and not function.is_variadic):
        wanted = str(least) if least == most else f"{least} to {most}"
        raise FunctionError(f"{function.name} takes {wanted} arguments, not {len(args)}")
    rest = [None] * (len(args) - most)
    given = zip(args, (*function.parameters, *rest), strict=False)
    taken = tuple(_argument(function, i, arg, type_) for i, (arg, type_) in enumerate(given))
    line, column = place
    return PythonCall(function.name.upper(), taken, function.result, function.target, line, column)


def _argument(function: PythonFunction, index: int, arg: Expr, wanted: DataType | None) -> Expr:
    found = arg.type
    if found.name == "NULL":
        return cast(arg, wanted or data_types.STRING)
    if not _is_held(found):
        message = f"{function.name} cannot take {found.sql()}: Python has no such value here"
        raise FunctionError(message, index)
    if wanted is None or found.name == wanted.name:
        return arg
    whole = wanted.name == "BIGINT" and found.name in data_types.INTEGERS
    number = wanted.name in ("DOUBLE", "DECIMAL") and found.name in data_types.NUMERIC
    if whole or (wanted.name == "DECIMAL" and found.name == "DECIMAL"):
        return arg
    if number and can_cast(found, wanted) and common_type(found, wanted) is not None:
        return cast(arg, with_nullable(wanted, found.nullable))
    message = f"argument {index + 1} of {function.name} is {wanted.sql()}, found {found.sql()}"
    raise FunctionError(message, index)


def _signature(name: str, target: str, function: Callable[..., Any]) -> PythonFunction:
    try:
        hints = get_type_hints(function)
        parameters = list(inspect.signature(function).parameters.values())
    except (NameError, TypeError, ValueError) as error:
        raise FunctionError(f"the signature of {target} cannot be read: {error}") from error
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    plain = [p for p in parameters if p.kind in places]
    needed = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if needed:
        raise FunctionError(f"{target} needs {needed[0]} by its name, which SQL cannot give")
    declared = getattr(function, RESULT_TYPE, None)
    if declared is None and "return" not in hints:
        raise FunctionError(f"{target} does not say what it gives")
    result = parse_type(declared) if declared else _of_hint(hints["return"], target)
    if not _is_held(result):
        raise FunctionError(f"{target} gives {result.sql()}, which Python has no value for")
    return PythonFunction(
        name=name,
        target=target,
        parameters=tuple(
            None if p.name not in hints else _of_hint(hints[p.name], target) for p in plain
        ),
        optional=sum(p.default is not p.empty for p in plain),
        is_variadic=any(p.kind is p.VAR_POSITIONAL for p in parameters),
        result=with_nullable(result, True),
    )


def _of_hint(hint: Any, target: str) -> DataType:
    """The SQL type of a type hint; `X | None` is X, as every value may be NULL."""
    if get_origin(hint) in (Union, UnionType):
        rest = [each for each in get_args(hint) if each is not NoneType]
        if len(rest) == 1:
            return _of_hint(rest[0], target)
    if get_origin(hint) is list:
        return DataType("ARRAY", element=_of_hint(get_args(hint)[0], target))
    if hint in _HINTS:
        return _HINTS[hint]
    raise FunctionError(f"{target} has a type hint that is no type of SQL: {hint}")


def _is_held(type_: DataType) -> bool:
    """Whether values of the type go to Python and come back as they are."""
    if type_.name == "ARRAY" and type_.element is not None:
        return _is_held(type_.element)
    return type_.name in _SCALARS
