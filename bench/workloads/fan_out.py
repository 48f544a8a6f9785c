"""`regular-nn`: two append topics without a unique key, where a row has 1 to 1,000 matches."""

from collections.abc import Iterator
from math import gcd

from bench.avro import encode_long, frame
from bench.workloads.records import DOUBLE, PARTITIONS, Expected, InputTopic, Record, random_bits

PLACES_IN_GROUP = 1_000
# Zipf's law: the most popular place of a thousand has 1,000 offers, every other one a single offer
_PATTERN = tuple(n for n in range(PLACES_IN_GROUP) for _ in range(PLACES_IN_GROUP // (n + 1)))
_SEARCHES_OF_PLACE = 2
_GROUP = len(_PATTERN) + _SEARCHES_OF_PLACE * PLACES_IN_GROUP  # records
_STRIDE = 2_654_435_761  # a prime: visits every index of a range once, far from in order

SEARCHES = InputTopic(
    "searches", None, (("search_id", "long"), ("place_id", "long"), ("guests", "int"))
)
OFFERS = InputTopic(
    "offers", None, (("offer_id", "long"), ("place_id", "long"), ("price", "double"))
)
SQL = """\
CREATE TABLE searches (
  search_id BIGINT,
  place_id BIGINT,
  guests INT
) WITH ($append_source, 'topic' = 'searches');

CREATE TABLE offers (
  offer_id BIGINT,
  place_id BIGINT,
  price DOUBLE
) WITH ($append_source, 'topic' = 'offers');

CREATE TABLE found (
  search_id BIGINT,
  offer_id BIGINT,
  place_id BIGINT,
  guests INT,
  price DOUBLE
) WITH ($append_sink);

INSERT INTO found
SELECT s.search_id, o.offer_id, s.place_id, s.guests, o.price
FROM searches AS s
JOIN offers AS o ON s.place_id = o.place_id;
"""


def places(rows: int) -> int:
    """The places for so many records: twice as many searches as places, seven times the offers."""
    return max(rows * PLACES_IN_GROUP // _GROUP, 1)


class FanOutData:
    """Searches of random places, and offers, of which popular places have many."""

    topics = (SEARCHES, OFFERS)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = keys
        self.text_bytes: dict[str, float] = {}
        self._searches: list[tuple[int, int]] = []  # place, guests
        self._offers: dict[int, list[tuple[int, float]]] = {}  # offer, price by place

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        offers = self.rows * len(_PATTERN) // _GROUP
        if topic is SEARCHES:
            return self._append_searches(self.rows - offers, frame(value_id))
        return self._append_offers(offers, frame(value_id))

    def expected(self) -> Expected:
        """Expected rows by search and offer: (search, offer, place, guests, price)."""
        return {
            (search, offer): (search, offer, place, guests, price)
            for search, (place, guests) in enumerate(self._searches)
            for offer, price in self._offers.get(place, ())
        }

    def _append_searches(self, rows: int, value_frame: bytes) -> Iterator[Record]:
        draw = random_bits(7)
        for number, place, choice in zip(range(rows), draw, draw, strict=False):
            place, guests = place * self.keys >> 31, 1 + choice % 6
            self._searches.append((place, guests))
            value = encode_long(number) + encode_long(place) + encode_long(guests)
            yield number % PARTITIONS, None, value_frame + value

    def _append_offers(self, rows: int, value_frame: bytes) -> Iterator[Record]:
        stride = next(s for s in range(_STRIDE % max(rows, 2), rows + 2) if gcd(s, rows) == 1)
        draw = random_bits(8)
        for number, choice in zip(range(rows), draw, strict=False):
            group, at = divmod(number * stride % rows, len(_PATTERN))
            popular = _PATTERN[at * _STRIDE % len(_PATTERN)]
            place = (group * PLACES_IN_GROUP + popular) % self.keys
            price = choice % 100_000 / 100
            self._offers.setdefault(place, []).append((number, price))
            value = encode_long(number) + encode_long(place) + DOUBLE.pack(price)
            yield number % PARTITIONS, None, value_frame + value
