"""Which `rejoin.debezium.*` options go together, and with which formats."""

from collections.abc import Iterator, Mapping

from spark_jobs.options.formats import FORMATS

PREFIX = "rejoin.debezium."
UNWRAPPED = f"{PREFIX}unwrapped"
TRUNCATE = f"{PREFIX}truncate"
UNAVAILABLE = f"{PREFIX}unavailable"
KEY_CHANGES = f"{PREFIX}key-changes"
KEY_CHANGE_WAIT = f"{PREFIX}key-change-wait"
_UNWRAPPED_FORMATS = ("json", "avro-confluent")
# options for the meaning of numbers and texts, where no schema defines it
_WITHOUT_SCHEMA = (f"{PREFIX}timestamp-unit", f"{PREFIX}decimals")
_LEFT_OUT_VALUES = (UNAVAILABLE, KEY_CHANGES, KEY_CHANGE_WAIT)
# options for whole events only
_WHOLE_EVENTS = (f"{PREFIX}replica-identity",)


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
        elif option in _WHOLE_EVENTS and unwrapped:
            yield (
                option,
                f"'{option}' has no effect: unwrapped rows have no old row",
                LEAVE_OUT,
            )
        elif option == TRUNCATE and unwrapped:
            yield option, f"'{option}' has no effect: truncations are not unwrapped", LEAVE_OUT
        elif option in _LEFT_OUT_VALUES and given.get(_WHOLE_EVENTS[0]) == "full":
            yield option, f"'{option}' has no effect: complete rows have all values", LEAVE_OUT
        elif option == KEY_CHANGES and given.get(UNAVAILABLE) == "reject":
            yield option, f"'{option}' has no effect: '{UNAVAILABLE}' is 'reject'", LEAVE_OUT
        elif option == KEY_CHANGE_WAIT and given.get(KEY_CHANGES) != "heal":
            yield (
                option,
                f"'{option}' has no effect without healing of key changes",
                f"use '{KEY_CHANGES}' = 'heal'",
            )
        elif option in _WITHOUT_SCHEMA and _has_schema(name, given):
            yield option, f"'{option}' has no effect: the schema defines it", LEAVE_OUT


LEAVE_OUT = "leave it out"


def _has_schema(name: str, given: Mapping[str, str]) -> bool:
    if "avro" in name:
        return True
    options = [v for k, v in given.items() if k.endswith("debezium-json.schema-include")]
    return name == "debezium-json" and any(v.lower() == "true" for v in options)
