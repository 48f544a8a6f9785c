"""An archive of loaded classes (class-data sharing), with which Spark starts in half the time.

A run with `REJOIN_CLASS_ARCHIVE=make` writes it at its exit; `rejoin bench` does so if there is
none. A JVM with other jars than the archive was made with ignores it.
"""

from pathlib import Path
from typing import Literal

from spark_jobs.kernel.build import JAR, OUTPUT

ARCHIVE = OUTPUT / "classes.jsa"
DUMP_WITHIN_S = 180

Use = Literal["use", "make", "off"]

# at another address the JVM would rewrite each pointer in it: pages that no other job can share
_WHERE_IT_WAS = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def is_fresh(archive: Path = ARCHIVE, jar: Path = JAR) -> bool:
    """Whether the archive is newer than the kernel's jar."""
    return archive.is_file() and archive.stat().st_mtime >= jar.stat().st_mtime


def java_options(use: Use) -> list[str]:
    match use:
        case "make":
            ARCHIVE.unlink(missing_ok=True)
            return [f"-XX:ArchiveClassesAtExit={ARCHIVE}", *_QUIET]
        case "use" if is_fresh():
            return [f"-XX:SharedArchiveFile={ARCHIVE}", *_WHERE_IT_WAS, *_QUIET]
        case _:
            return []
