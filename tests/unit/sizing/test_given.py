"""What the options of sizing take and refuse."""

import pytest

from spark_jobs.errors import ConfigError
from spark_jobs.sizing.command import SizeOptions, refuse_without_size, size_job
from spark_jobs.sizing.given import by_table, positive, rates_of
from tests.unit.sizing.sizes import INTERVAL, REGULAR, TABLES, TEMPORAL

READ = {"orders", "rates"}


def refused(sql: str, **options: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        size_job(TABLES + sql, "job.sql", SizeOptions(**options))  # type: ignore[arg-type]
    return caught.value


def test_numbers_by_table() -> None:
    assert by_table("--keys", ["orders=10k", "rates=2M"], READ) == {"orders": 1e4, "rates": 2e6}
    assert by_table("--keys", ["5"], READ) == {"orders": 5, "rates": 5}
    assert rates_of(["orders=3", "rates=1"], READ) == {"orders": 3, "rates": 1}
    assert rates_of(["3"], READ) == {"orders": 1.5, "rates": 1.5}, "a bare rate is the sum"


@pytest.mark.parametrize("text", ["0", "-1", "ten", "", "nan", "inf", "1e400", "k"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ConfigError, match="SIZE_NUMBER"):
        positive("--keys", text)


def test_two_numbers_for_one_table() -> None:
    for texts in (["orders=1", "orders=2"], ["orders=1", "2"]):
        with pytest.raises(ConfigError, match="SIZE_NUMBER"):
            by_table("--keys", texts, READ)
    with pytest.raises(ConfigError, match="SIZE_NUMBER"):
        rates_of(["orders=1", "2"], READ)


def test_an_unknown_table_is_refused_with_the_nearest() -> None:
    error = refused(TEMPORAL, rows_per_second=["order=10000"], keys=["rates=1"])
    assert (error.code, error.exit_code) == ("SIZE_TABLE", 2)
    assert error.hint == "did you mean 'orders'?"
    error = refused(TEMPORAL, rows_per_second=["1"], keys=["xyz=1"])
    assert error.hint == "tables that are read: orders, rates"
    # declared and not read
    assert refused(TEMPORAL, rows_per_second=["pings=1"]).code == "SIZE_TABLE"


def test_what_decides_the_state_has_to_be_given() -> None:
    error = refused(TEMPORAL, rows_per_second=["orders=1"])
    assert (error.code, error.hint) == ("SIZE_MISSING", "add --rows-per-second rates=N")
    error = refused(TEMPORAL, rows_per_second=["1"])
    assert (error.code, error.hint) == ("SIZE_MISSING", "add --keys rates=N")
    error = refused(REGULAR, rows_per_second=["1"])
    assert error.hint == "add --keys rates=N --keys users=N"
    assert refused(TEMPORAL).code == "SIZE_MISSING"
    # nothing is kept by key
    size_job(TABLES + INTERVAL, "job.sql", SizeOptions(rows_per_second=["1"]))


def test_options_without_size() -> None:
    refuse_without_size(SizeOptions())
    with pytest.raises(ConfigError, match="--network-mbit has a meaning only with --size"):
        refuse_without_size(SizeOptions(network_mbit=1.0))
