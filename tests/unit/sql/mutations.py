"""Job files that are not quite SQL any more: the queries of the tests, with random changes."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.text.explain import explain_text
from spark_jobs.scenario.file import read_scenario
from spark_jobs.sql.types.functions import (
    AGGREGATES,
    EXTRACTS,
    FUNCTIONS,
    GROUP_FUNCTIONS,
    SYNONYMS,
    UNREPEATABLE,
)
from tests.unit.sql.test_conformance_queries import paths, script

_TESTS = Path(__file__).parents[2]
_TOKEN = re.compile(
    r"\s+|--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|`[^`]*`|[\w.]+|<>|<=|>=|\|\||.", re.DOTALL
)
_OPERAND = re.compile(r"[A-Za-z_][\w.]*|\d[\w.]*|'[^']*'")
_QUERY = re.compile(r"(?:INSERT\s+INTO|SELECT)\b.*\Z", re.DOTALL | re.IGNORECASE)


def _listed(text: str) -> tuple[str, ...]:
    """Items with two spaces or a line's end between them."""
    return tuple(re.split(r"\s*\n\s*|\s{2,}", text.strip()))


# what stands in for a token or between two
_WORDS = _listed("""
    NULL  TRUE  FALSE  0  1  -1  2.5  .5  0.05  1e3  1e400  2147483648  9223372036854775808  'a'
    ''  *  +  -  /  %  ||  =  <>  <  >=  ,  .  (  )  [  ]  ;  :  ?  '  `  "  #  @  AND  OR  NOT
    IS  IN  LIKE  BETWEEN  EXISTS  CASE  WHEN  THEN  ELSE  END  AS  ON  FROM  WHERE  GROUP  BY
    HAVING  SELECT  DISTINCT  UNION  ALL  JOIN  LEFT  RIGHT  FULL  CROSS  LATERAL  TABLE  INTERVAL
    SECOND  DATE  TIMESTAMP  OVER  PARTITION  ORDER  DESC  LIMIT  WITH  FOR  SYSTEM_TIME  OF
    ESCAPE  ANY  FILTER  ROW  ARRAY  MAP  ROW()  COUNT(*)  SUM(1)  MAX(NULL)  ROW_NUMBER()
    PROCTIME()  YEAR(  HOUR(  LPAD(  COALESCE(  CAST(  NULLIF(  IF(  ABS(  TRIM(  EXTRACT(
    FLOOR(  TIMESTAMPADD(  ROUND(  MOD(  DECIMAL  INT  STRING  proctime  rowtime  id
    IS NULL  IS NOT TRUE  IS DISTINCT FROM NULL  BETWEEN NULL AND 2  IN (1, NULL)
    IN (SELECT 1 FROM a)  GROUP BY ()  HAVING TRUE  WHERE FALSE  AS STRING)  UNION ALL
    INTERVAL '1' DAY  CAST(NULL AS DECIMAL(10, 2))
""")
_VALUES = _listed("""
    NULL  TRUE  0  1  -1  2.5  .5  1e3  2147483648  'a'  DATE '2020-01-01'  TIME '10:00:00'
    PROCTIME()  TIMESTAMP '2020-01-01 00:00:00'  CURRENT_DATE  X'00'  ARRAY[1]  MAP['a', 1]
    ROW(1, NULL)  INTERVAL '1' DAY  INTERVAL '1' MONTH  COUNT(*)  *
""")
_FUNCTIONS = (*FUNCTIONS, *EXTRACTS, *SYNONYMS, *GROUP_FUNCTIONS, *AGGREGATES, *UNREPEATABLE)
_OPERATORS = _listed("=  <>  <  >=  +  -  *  /  %  ||  AND  OR  LIKE  IS DISTINCT FROM")
_PREDICATES = _listed("""
    IS NULL  IS NOT TRUE  IS UNKNOWN  BETWEEN NULL AND 2  IN (1, NULL)  IN ('a')
    LIKE 'a%' ESCAPE '%'  IN (SELECT id FROM a)  .x  [1]  ['a']  OVER ()  FILTER (WHERE TRUE)
""")
_TYPES = _listed("""
    STRING  INT  BIGINT  DECIMAL(3, 3)  DOUBLE  BOOLEAN  DATE  TIME  TIMESTAMP(3)
    TIMESTAMP_LTZ(3)  BYTES  ROW<a INT>  ARRAY<INT>  MAP<STRING, INT>
""")


def texts() -> list[str]:
    """The job files of the scenarios and of the plans, and the conformance queries."""
    scenarios = [read_scenario(p).sql for p in sorted((_TESTS / "scenarios").glob("*.scenario"))]
    plans = [p.read_text("utf-8") for p in sorted((_TESTS / "plans").glob("*.sql"))]
    cases = [script(json.loads(p.read_text("utf-8"))) for p in paths()]
    return [*scenarios, *plans, *cases]


def mutants(seed: int) -> Iterator[str]:
    """Endlessly many changed job files, the same ones for a seed."""
    rng = random.Random(seed)  # noqa: S311
    split = [_split(text) for text in texts()]
    while True:
        tables, query = rng.choice(split)
        _, other = rng.choice(split)
        if rng.random() < 0.1:
            yield "".join(_changed(rng, [*tables, *query], other))
        else:
            yield "".join([*tables, *_changed(rng, query, other)])


def traceback_of(text: str) -> Exception | None:
    """What is no error of the user's when the text is explained."""
    try:
        explain_text(text)
    except SqlErrors:
        return None
    except Exception as error:
        return error
    return None


def _split(text: str) -> tuple[list[str], list[str]]:
    found = _QUERY.search(text)
    start = found.start() if found else 0
    return _TOKEN.findall(text[:start]), _TOKEN.findall(text[start:])


def _grow(rng: random.Random, tokens: list[str]) -> None:
    """Make one operand, or what looks like one, part of a larger expression of the same words."""
    places = [i for i, token in enumerate(tokens) if _OPERAND.fullmatch(token)]
    if not places:
        return
    at = rng.choice(places)

    def operand() -> str:
        return rng.choice((tokens[at], tokens[at], tokens[rng.choice(places)], rng.choice(_VALUES)))

    arguments = [operand() for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
    tokens[at] = rng.choice(
        (
            f"{rng.choice(_FUNCTIONS)}({', '.join(arguments)})",
            f"{operand()} {rng.choice(_OPERATORS)} {operand()}",
            f"({operand()} {rng.choice(_OPERATORS)} {operand()})",
            f"{operand()} {rng.choice(_PREDICATES)}",
            f"CAST({operand()} AS {rng.choice(_TYPES)})",
            f"CASE WHEN {operand()} THEN {operand()} ELSE {operand()} END",
        )
    )


def _changed(rng: random.Random, tokens: list[str], other: list[str]) -> list[str]:
    found = list(tokens)
    if rng.random() < 0.5:
        for _ in range(rng.choice((1, 2, 3))):
            _grow(rng, found)
        return found
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(8):
            case 0:
                del found[at : at + rng.choice((1, 1, 2, 5))]
            case 1:
                found.insert(at, f" {rng.choice(_WORDS)} ")
            case 2 | 3:
                found[at : at + 1] = [f" {rng.choice(_WORDS)} "]
            case 4:
                found[at:at] = found[max(at - 5, 0) : at]
            case 5:
                start = rng.randrange(len(other))
                found[at : at + 1] = other[start : start + rng.choice((1, 3, 9))]
            case 6:
                found[at : at + 1] = rng.choice([found, other])[:1] or [" "]
            case _:
                other_at = rng.randrange(len(found) + 1)
                found[at : at + 1], found[other_at : other_at + 1] = (
                    found[other_at : other_at + 1],
                    found[at : at + 1],
                )
    return found
