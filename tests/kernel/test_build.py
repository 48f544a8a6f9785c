"""The border of the kernel's core: the compiler holds it."""

from pathlib import Path

import pytest

from spark_jobs.errors import ConfigError
from spark_jobs.kernel.build import Unit, compiled, core_jars


@pytest.mark.parametrize(
    "forbidden",
    [
        "org.apache.spark.sql.types.StructType",
        "org.apache.kafka.common.TopicPartition",
        "org.apache.hadoop.fs.Path",
    ],
)
def test_the_core_cannot_see_what_spark_runs_on(forbidden: str, tmp_path: Path) -> None:
    source = tmp_path / "Leak.scala"
    source.write_text(f"package rejoin.core\n\nclass Leak(val of: {forbidden})\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not a member of package") as refused:
        compiled(tmp_path / "leak.jar", [Unit([source], core_jars())])
    assert refused.value.code == "KERNEL_BROKEN"
