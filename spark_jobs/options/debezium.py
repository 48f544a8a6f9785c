"""Which `rejoin.debezium.*` options go together, and with which formats."""

from collections.abc import Iterator, Mapping

from spark_jobs.options.formats import FORMATS

PREFIX = "rejoin.debezium."
UNWRAPPED = f"{PREFIX}unwrapped"
TRUNCATE = f"{PREFIX}truncate"
UNAVAILABLE = f"{PREFIX}unavailable"
KEY_CHANGES = f"{PREFIX}key-changes"
KEY_CHANGE_WAIT = f"{PREFIX}key-change-wait"
REPLICA_IDENTITY = f"{PREFIX}replica-identity"
_UNWRAPPED_FORMATS = ("json", "avro-confluent")
# what numbers and texts mean, where no schema says it
_NUMBERS = (f"{PREFIX}timestamp-unit", f"{PREFIX}decimals")
_LEFT_OUT_VALUES = (UNAVAILABLE, KEY_CHANGES, KEY_CHANGE_WAIT)


def conflicts(given: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Options that have no effect together with the others: option, what is wrong, what to do."""
    name = given.get("value.format", given.get("format", ""))
    unwrapped = given.get(UNWRAPPED, "").lower() == "true"
    of_events = name in FORMATS and FORMATS[name].changelog == "debezium"
    if unwrapped and name in FORMATS and name not in _UNWRAPPED_FORMATS:
        formats = ", ".join(_UNWRAPPED_FORMATS)
        yield UNWRAPPED, f"format '{name}' holds no unwrapped rows", f"use one of {formats}"
        return
    for option in sorted(o for o in given if o.startswith(PREFIX) and o != UNWRAPPED):
        if not (of_events or unwrapped):
            hint = f"use a debezium format, or '{UNWRAPPED}' = 'true'"
            yield option, f"'{option}' has no effect on format '{name}'", hint
        elif why := _why_without_effect(option, name, unwrapped, given):
            yield option, f"'{option}' has no effect: {why}", "leave it out"
        elif option == KEY_CHANGE_WAIT and given.get(KEY_CHANGES) != "heal":
            problem = f"'{option}' has no effect without healing of key changes"
            yield option, problem, f"use '{KEY_CHANGES}' = 'heal'"


def _why_without_effect(
    option: str, name: str, unwrapped: bool, given: Mapping[str, str]
) -> str | None:
    if option == REPLICA_IDENTITY and unwrapped:
        return "unwrapped rows have no old row"
    if option == TRUNCATE and unwrapped:
        return "truncations are not unwrapped"
    if option in _LEFT_OUT_VALUES and given.get(REPLICA_IDENTITY) == "full":
        return "complete rows have all values"
    if option == KEY_CHANGES and given.get(UNAVAILABLE) == "reject":
        return f"'{UNAVAILABLE}' is 'reject'"
    return "the schema defines it" if option in _NUMBERS and _has_schema(name, given) else None


def _has_schema(name: str, given: Mapping[str, str]) -> bool:
    if "avro" in name:
        return True
    options = [v for k, v in given.items() if k.endswith("debezium-json.schema-include")]
    return name == "debezium-json" and any(v.lower() == "true" for v in options)
