"""Runs one SQL file on Flink in one JVM and waits for its end; needs Flink's environment.

Usage: python run_sql.py JOB.sql JAR...
"""

import re
import sys
from importlib import import_module
from pathlib import Path

_SET = re.compile(r"\s*SET\s+'([^']+)'\s*=\s*'([^']*)'\s*")


def main() -> None:
    job, *jars = (Path(argument).resolve() for argument in sys.argv[1:])
    # imported dynamically, because linters check this file without Flink
    table = import_module("pyflink.table")
    configuration = import_module("pyflink.common").Configuration()
    configuration.set_string("pipeline.jars", ";".join(jar.as_uri() for jar in jars))
    statements = []
    for statement in job.read_text(encoding="utf-8").split(";"):
        if setting := _SET.fullmatch(statement):
            # the settings of the mini cluster must be in the environment's configuration
            configuration.set_string(setting[1], setting[2])
        elif statement.strip():
            statements.append(statement)
    builder = table.EnvironmentSettings.new_instance().in_streaming_mode()
    environment = table.TableEnvironment.create(builder.with_configuration(configuration).build())
    for statement in statements:
        if statement.lstrip().upper().startswith("INSERT"):
            sys.stdout.write(environment.explain_sql(statement) + "\n")
            sys.stdout.flush()
            environment.execute_sql(statement).wait()
        else:
            environment.execute_sql(statement)


if __name__ == "__main__":
    main()
