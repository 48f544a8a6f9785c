"""What a real Flink answers to the files, as `NN_name.answer.json` has it.

`python -m tests.flink_files.flink [NN_name...]` asks Flink anew.
"""

import json
import sys
import tempfile
import uuid
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from bench.flink.install import JARS
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.sql.bind.binder import bind
from tests.differential.flink.client import FlinkProcess
from tests.flink_files.answers import Answer, folded
from tests.flink_files.files import FlinkFile, Place, flink_files, setting, statements
from tests.flink_files.index import refused
from tests.harness.bounded import create_topics, produce, read_committed

_SERVER = Path(__file__).with_name("in_flink.py")


def flink_process() -> FlinkProcess:
    return FlinkProcess(_SERVER, [str(jar) for jar in sorted(JARS.glob("*.jar"))])


def a_place(servers: str, registry: str) -> Place:
    """A place where nothing has run yet."""
    run = uuid.uuid4().hex[:8]
    return Place(servers, registry, f"in-{run}-", f"flink-{run}-")


def create_inputs(files: Iterable[FlinkFile], place: Place) -> None:
    """The topics of the files, and the records in those that are read."""
    for file in files:
        create_topics(place.servers, (file.topic(topic, place) for topic in file.topics))
        for topic in file.inputs:
            at = file.topic(topic, place)
            records = file.records(topic, place.registry)
            produce(place.servers, ((at, record) for record in records))


def ask(flink: FlinkProcess, file: FlinkFile, place: Place) -> str:
    """Run a file in Flink; its error, if there is one."""
    parts = statements(file.placed(place))
    settings = [pair for part in parts if (pair := setting(part))]
    asked = [part for part in parts if setting(part) is None]
    found = flink.ask({"settings": dict(settings), "statements": asked})
    return str(found.get("error", ""))


def answers(file: FlinkFile, place: Place) -> dict[str, Answer]:
    """What the sinks of a file hold, by topic."""
    tables = bind(file.placed(place)).tables.values()
    by_topic = {topic: table for table in tables for topic in table.topics}
    found = {}
    for topic in file.sinks:
        at = file.topic(topic, place)
        found[topic] = folded(by_topic[at], read_committed(place.servers, at), place.registry)
    return found


def recorded(file: FlinkFile) -> dict[str, Answer]:
    path = file.path.with_suffix(".answer.json")
    answer: dict[str, Answer] = json.loads(path.read_text(encoding="utf-8"))
    return answer


def main(names: list[str]) -> None:
    files = [f for f in flink_files() if f.name not in refused() and f.name in (names or [f.name])]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(Broker(folder / "broker"))
        registry = stack.enter_context(RegistryServer(folder / "registry"))
        flink = stack.enter_context(flink_process())
        place = a_place(broker.bootstrap_servers, registry.url)
        create_inputs(files, place)
        for file in files:
            if error := ask(flink, file, place):
                sys.stdout.write(f"{file.name}: {error[:1500]}\n")
                continue
            answer = json.dumps(answers(file, place), indent=1, ensure_ascii=False)
            file.path.with_suffix(".answer.json").write_text(f"{answer}\n", encoding="utf-8")
            sys.stdout.write(f"{file.name}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
