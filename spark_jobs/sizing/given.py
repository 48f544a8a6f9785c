"""What the user says of a job's tables and executors, checked against the tables that are read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from spark_jobs.errors import ConfigError
from spark_jobs.sql.parse.source_text import nearest

TEXT_BYTES = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """One executor; `memory_mb` is its heap, the network counts in each direction."""

    cores: int = 4
    memory_mb: int = 4096
    network_mbit: float = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Rates, keys and sizes by table; what is left out follows from the types, or does not limit.

    `text_bytes` is the mean length of a table's texts. `results_per_second` is of all sinks
    together, None if the model estimates it. `epoch_s` is the longest epoch that is accepted.
    """

    rows_per_second: Mapping[str, float]
    keys: Mapping[str, float] = field(default_factory=dict)
    record_bytes: Mapping[str, float] = field(default_factory=dict)
    partitions: Mapping[str, float] = field(default_factory=dict)
    text_bytes: Mapping[str, float] = field(default_factory=dict)
    results_per_second: float | None = None
    epoch_s: float = 1.0
    executor: Executor = Executor()

    def text_size(self, table: str | None) -> float:
        """The mean length of a table's texts; of all tables for a row that has columns of many."""
        if table is not None:
            return self.text_bytes.get(table, TEXT_BYTES)
        sizes = [self.text_size(name) for name in self.rows_per_second]
        return sum(sizes) / len(sizes)

    @property
    def rate(self) -> float:
        """Records per second of all tables."""
        return sum(self.rows_per_second.values())


def by_table(option: str, texts: Sequence[str], tables: Collection[str]) -> dict[str, float]:
    """The numbers of an option by table, from texts such as `orders=10000`.

    A number without a table is that of each table.

    Raises:
        ConfigError: SIZE_TABLE for a table that no query reads, SIZE_NUMBER for what is no number.
    """
    found: dict[str, float] = {}
    for text in texts:
        table, sign, number = text.rpartition("=")
        if sign and table not in tables:
            raise ConfigError(
                "SIZE_TABLE",
                f"{option} {text}: no query of the job reads a table '{table}'",
                hint=nearest(table, tables) or f"tables that are read: {', '.join(sorted(tables))}",
            )
        for name in [table] if sign else tables:
            if name in found:
                raise ConfigError(
                    "SIZE_NUMBER",
                    f"{option} {text}: '{name}' has a number already",
                    hint="give one number for all tables, or one for each",
                )
            found[name] = positive(f"{option} {text}", number)
    return found


def rates_of(texts: Sequence[str], tables: Collection[str]) -> dict[str, float]:
    """Records per second of every table; a number without a table is split in equal parts."""
    option = "--rows-per-second"
    bare = [text for text in texts if "=" not in text]
    if bare and len(texts) > 1:
        raise ConfigError(
            "SIZE_NUMBER",
            f"{option} {bare[0]}: a number without a table is the sum of all tables",
            hint=f"give it alone, or {option} TABLE=N for each table",
        )
    if bare:
        total = positive(f"{option} {bare[0]}", bare[0])
        return {table: total / len(tables) for table in sorted(tables)}
    found = by_table(option, texts, tables)
    complete(option, found, tables, "how many records of it arrive per second")
    return found


def complete(
    option: str, found: Mapping[str, float], wanted: Collection[str], meaning: str
) -> None:
    """Refuse numbers that leave out one of the `wanted` tables."""
    if missing := sorted(table for table in wanted if table not in found):
        raise ConfigError(
            "SIZE_MISSING",
            f"nothing says {meaning}: {', '.join(missing)}",
            hint=f"add {' '.join(f'{option} {table}=N' for table in missing)}",
        )


def positive(place: str, text: str) -> float:
    """The number in a text; 10k, 10M and 1G are thousands, millions and billions.

    >>> positive("--keys", "2.5M")
    2500000.0
    """
    scale = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:], 1.0)
    try:
        number = float(text if scale == 1 else text[:-1]) * scale
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ConfigError(
            "SIZE_NUMBER", f"{place}: '{text}' is no number above 0", hint="write 10000 or 10k"
        )
    return number
