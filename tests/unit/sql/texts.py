"""Job files for tests: `<append>` and `<upsert>` stand for complete WITH clauses."""

OPTIONS = "'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092'"
CLAUSES = {
    "<append>": "WITH ('connector' = 'kafka', 'format' = 'json', <options>)",
    "<upsert>": "WITH ('connector' = 'upsert-kafka', 'key.format' = 'json', "
    "'value.format' = 'json', <options>)",
    "<options>": OPTIONS,
}


def script(*parts: str) -> str:
    """The parts one after the other, with what the short forms stand for."""
    text = "\n".join(parts)
    for short, clause in CLAUSES.items():
        text = text.replace(short, clause)
    return text
