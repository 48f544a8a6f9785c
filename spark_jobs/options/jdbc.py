"""The WITH options of the jdbc connector: a table in a database that a query looks rows up in."""

from dataclasses import dataclass
from typing import Literal as OneOf

from spark_jobs.options.declared import table_of
from spark_jobs.options.kinds import choice, duration, flag, integer, refused, text

DATABASES = ("jdbc:postgresql:", "jdbc:mariadb:", "jdbc:mysql:")
"""What the URL of a database begins with that rows can be looked up in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcOptions:
    """Where the table is, and how its rows are looked up; names and defaults are Flink's."""

    url: str | None = text(
        "url",
        "the database, `jdbc:postgresql://host:port/database`, or `jdbc:mariadb:`, `jdbc:mysql:`",
    )
    table_name: str | None = text(
        "table-name", "the table or view there, `schema.table` or `table`"
    )
    driver: str | None = text(
        "driver", "class of the JDBC driver; by default the one that comes with rejoin for the URL"
    )
    username: str | None = text("username", "who logs in; needs 'password'")
    password: str | None = text("password", "a reference to the password, `${file:...}`")
    max_retry_timeout_ms: int = duration(
        "connection.max-retry-timeout",
        "how long to wait for a new connection, and for the answer whether an old one still works",
        "60 s",
    )
    cache: OneOf["NONE", "PARTIAL"] = choice(
        "lookup.cache",
        "whether rows that were looked up are kept in the memory of each executor",
        "NONE",
    )
    cache_max_rows: int | None = integer(
        "lookup.partial-cache.max-rows", "how many keys the cache keeps; the oldest go", least=1
    )
    expire_after_write_ms: int | None = duration(
        "lookup.partial-cache.expire-after-write", "how long a cached row may be used"
    )
    expire_after_access_ms: int | None = duration(
        "lookup.partial-cache.expire-after-access", "how long a cached row stays that is not used"
    )
    cache_missing_key: bool = flag(
        "lookup.partial-cache.cache-missing-key", "whether keys without a row are cached", "true"
    )
    max_retries: int = integer(
        "lookup.max-retries", "how often a lookup that failed is tried again", "3"
    )


_READS = refused("reading the table as a stream", "rows are looked up, never scanned")
_WRITES = refused("writing to the table", "results go to a Kafka topic")
JDBC = {
    **table_of(JdbcOptions),
    "compatible-mode": refused("the dialect", "it follows from the URL"),
    "lookup.cache.max-rows": refused("size", "use 'lookup.partial-cache.max-rows'"),
    "lookup.cache.ttl": refused("age", "use 'lookup.partial-cache.expire-after-write'"),
    "lookup.cache.caching-missing-key": refused(
        "missing keys", "use 'lookup.partial-cache.cache-missing-key'"
    ),
    **dict.fromkeys(
        (
            "scan.partition.column",
            "scan.partition.num",
            "scan.partition.lower-bound",
            "scan.partition.upper-bound",
            "scan.fetch-size",
            "scan.auto-commit",
            "scan.parallelism",
        ),
        _READS,
    ),
    **dict.fromkeys(
        (
            "sink.buffer-flush.max-rows",
            "sink.buffer-flush.interval",
            "sink.max-retries",
            "sink.parallelism",
        ),
        _WRITES,
    ),
}
CACHE_OPTIONS = tuple(name for name in JDBC if name.startswith("lookup.partial-cache."))
