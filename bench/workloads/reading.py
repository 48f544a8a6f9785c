"""`reading`: the topics of `regular-upsert` are read and decoded, and nothing is joined.

No join of these topics can be faster, so that it is the limit to which `regular-upsert` compares.
"""

from collections.abc import Iterable

from bench.workloads.records import Expected, InputTopic, Record
from bench.workloads.regular import NOTES, ORDERS_A, ORDERS_B, RegularData, orders_a

_BELOW = 10  # as in the text below: one order in a hundred has a smaller amount
SQL = """\
CREATE TABLE orders_a (
  id BIGINT,
  amount DOUBLE,
  note STRING,
  placed_at TIMESTAMP(3)
) WITH ($append_source, 'topic' = 'orders_a');

CREATE TABLE orders_b (
  id BIGINT,
  carrier STRING,
  weight INT
) WITH ($append_source, 'topic' = 'orders_b');

CREATE TABLE seen (
  id BIGINT,
  amount DOUBLE,
  text STRING,
  placed_at TIMESTAMP(3)
) WITH ($append_sink);

INSERT INTO seen
SELECT id, amount, note, placed_at FROM orders_a WHERE amount < 10
UNION ALL
SELECT id, CAST(weight AS DOUBLE), carrier, CAST(NULL AS TIMESTAMP(3)) FROM orders_b
WHERE weight >= 5000;
"""


class ReadingData:
    """The input of `regular-upsert`; one left record in a hundred comes out, and no right one."""

    topics = (ORDERS_A, ORDERS_B)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self._keys = keys
        self._given = RegularData(rows, keys)
        self.text_bytes = self._given.text_bytes

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterable[Record]:
        """The records of one topic, in order."""
        return self._given.records(topic, key_id, value_id)

    def expected(self) -> Expected:
        """Expected rows by (id, amount, note): these and the time."""
        found: Expected = {}
        for key, amount, note, at in orders_a(self.rows - self.rows // 2, self._keys, len(NOTES)):
            if amount < _BELOW:
                found[key, amount, NOTES[note]] = (key, amount, NOTES[note], at)
        return found
