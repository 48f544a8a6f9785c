"""UNNEST, set operations that count rows, comparisons with ANY and ALL, over random changelogs."""

from collections.abc import Iterator

from tests.differential.case import Case
from tests.differential.generate import with_history
from tests.differential.tables import Table

_TABLES = (
    Table("a", "append", (("id", "INT"), ("k", "INT"))),
    Table("b", "upsert", (("id", "INT"), ("k", "INT"), ("v", "INT")), (0,)),
    Table("c", "retract", (("k", "INT"), ("v", "INT"))),
)
_ELEMENTS = "b CROSS JOIN UNNEST(ARRAY[b.k, b.v, b.k])"
QUERIES = (
    ("SELECT b.id AS c0, u.x AS c1 FROM {elements} AS u (x)", ()),
    ("SELECT b.k AS c0, u.x AS c1 FROM {elements} AS u (x) WHERE u.x > 0 OR b.v IS NULL", ()),
    ("SELECT u.x AS c0, COUNT(*) AS c1 FROM {elements} AS u (x) GROUP BY u.x", ()),
    (
        "SELECT b.id AS c0, u.x AS c1 FROM b LEFT JOIN UNNEST(ARRAY[b.k, b.v]) AS u (x) ON u.x > 1",
        (),
    ),
    (
        "SELECT b.id AS c0, u.n AS c1, u.x AS c2 FROM {elements} WITH ORDINALITY AS u (x, n)",
        ("c0", "c1"),
    ),
    (
        "SELECT c.v AS c0, u.x AS c1 FROM a JOIN c ON a.k = c.k"
        " CROSS JOIN UNNEST(ARRAY[a.id, c.v]) AS u (x)",
        (),
    ),
    (
        "SELECT a.id AS c0, r.x AS c1 FROM a"
        " LEFT JOIN (SELECT b.k, u.x FROM {elements} AS u (x)) AS r ON a.k = r.x",
        (),
    ),
    ("SELECT id AS c0 FROM b WHERE k < ANY (SELECT c.v FROM c WHERE c.k = b.v)", ()),
    ("SELECT id AS c0 FROM b WHERE NOT k <= ANY (SELECT v FROM c)", ()),
    ("SELECT id AS c0 FROM b WHERE k >= ALL (SELECT v FROM c WHERE c.k = b.id)", ()),
    ("SELECT id AS c0 FROM a WHERE k = ALL (SELECT v FROM b)", ()),
    ("SELECT id AS c0 FROM a WHERE k <> ANY (SELECT v FROM b)", ()),
    ("SELECT k AS c0, v AS c1 FROM c INTERSECT ALL SELECT id, k FROM a", ()),
    ("SELECT id AS c0, k AS c1 FROM a EXCEPT ALL SELECT k, v FROM c", ()),
    ("SELECT k AS c0 FROM a UNION ALL SELECT k FROM c EXCEPT ALL SELECT k FROM b", ()),
)


def cases(histories: int) -> Iterator[Case]:
    """Each query over so many histories."""
    for number, (written, key) in enumerate(QUERIES):
        query = written.replace("{elements}", _ELEMENTS)
        sink = "upsert" if key else ("retract", "debezium")[number % 2]
        for history in range(histories):
            name = f"elements {number} history {history}"
            yield with_history(Case(name, _TABLES, (), query, sink, key, ()))
