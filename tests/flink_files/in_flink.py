"""Runs files on a real Flink, each to its end; needs Flink's environment (bench/flink).

Usage: python in_flink.py JAR... A line of JSON in, the `settings` and `statements` of a file; a
line out, with Java's `error` if there is one.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def run(table: Any, common: Any, jars: str, asked: dict[str, Any]) -> None:
    configuration = common.Configuration()
    configuration.set_string("pipeline.jars", jars)
    configuration.set_string("parallelism.default", "1")
    for key, value in asked["settings"].items():
        configuration.set_string(key, value)
    builder = table.EnvironmentSettings.new_instance().in_streaming_mode()
    environment = table.TableEnvironment.create(builder.with_configuration(configuration).build())
    jobs = []
    for statement in asked["statements"]:
        result = environment.execute_sql(statement)
        if result.get_job_client() is not None:
            jobs.append(result)
    for job in jobs:
        job.wait()


def main() -> None:
    jars = ";".join(Path(jar).resolve().as_uri() for jar in sys.argv[1:])
    # what Flink prints must not stand between the answers
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # imported dynamically, because linters check this file without Flink
    table, common = import_module("pyflink.table"), import_module("pyflink.common")
    for line in sys.stdin:
        answer = {}
        try:
            run(table, common, jars, json.loads(line))
        except Exception as failure:  # whatever Flink raises is an answer
            answer["error"] = f"{type(failure).__name__}: {failure}"
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()


if __name__ == "__main__":
    main()
