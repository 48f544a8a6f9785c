"""The border of the kernel's core: the compiler holds it."""

import re
from pathlib import Path

import pytest

from spark_jobs.errors import ConfigError
from spark_jobs.kernel.build import Unit, compiled, core_jars

pytestmark = pytest.mark.service  # it compiles

FORBIDDEN = (
    "org.apache.spark.sql.types.StructType",
    "org.apache.kafka.common.TopicPartition",
    "org.apache.hadoop.fs.Path",
)


def test_the_core_cannot_see_what_spark_runs_on(tmp_path: Path) -> None:
    sources = []
    for name in FORBIDDEN:
        leak = f"Leak{len(sources)}"
        sources.append(tmp_path / f"{leak}.scala")
        text = f"package rejoin.core\n\nclass {leak}(val of: {name})\n"
        sources[-1].write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        compiled(tmp_path / "leak.jar", [Unit(sources, core_jars())])
    assert refused.value.code == "KERNEL_BROKEN"
    for source in sources:
        refusal = rf"{source.name}:\d+: error: object \w+ is not a member of package"
        assert re.search(refusal, refused.value.render()), refused.value.render()
