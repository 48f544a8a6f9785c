"""Loaded classes kept between JVMs (class-data sharing): Spark starts in about half the time.

The archive fits one set of jars; a JVM that finds another set ignores it. It is made by a run with
`REJOIN_CLASS_ARCHIVE=make`, at its exit (`rejoin bench` does so when there is none).
"""

from pathlib import Path
from typing import Literal

from spark_jobs.kernel.build import JAR, OUTPUT

ARCHIVE = OUTPUT / "classes.jsa"
DUMP_WITHIN_S = 180

Use = Literal["use", "make", "off"]

_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def is_fresh(archive: Path = ARCHIVE, jar: Path = JAR) -> bool:
    """Whether it was made after the kernel."""
    return archive.is_file() and archive.stat().st_mtime >= jar.stat().st_mtime


def java_options(use: Use) -> list[str]:
    """What the JVM is told."""
    match use:
        case "make":
            ARCHIVE.unlink(missing_ok=True)
            return [f"-XX:ArchiveClassesAtExit={ARCHIVE}", *_QUIET]
        case "use" if is_fresh():
            return [f"-XX:SharedArchiveFile={ARCHIVE}", *_QUIET]
        case _:
            return []
