"""LISTAGG, ARRAY_AGG, FIRST_VALUE and LAST_VALUE where the oracle does not go."""

from tests.kernel.machine.test_keyed_machines import OWN_CELL, TEXT, Driven, aggregation, value
from tests.kernel.oracle.aggregate import Call

FIRST, LAST = (Call(f"{which}_VALUE", TEXT, False, False) for which in ("FIRST", "LAST"))
COUNT = Call("COUNT", TEXT, False, False)


def test_the_ends_of_a_large_group_come_back_one_by_one() -> None:
    """Values that begin alike, of different lengths, which only their length tells apart."""
    run = Driven(aggregation(FIRST, LAST, COUNT).node())
    texts = [("\0" * (n % 7)) + "x" * 200 + f"{n * 7919 % 1000}" for n in range(1_000)]
    for at in range(0, len(texts), 50):
        run(*[value("+I", "a", s=text) for text in texts[at : at + 50]])
    assert run.machine.stateCells() > 50
    low, high = 0, len(texts) - 1
    while low < high:
        run.machine.restart()
        gone = [value("-D", "a", s=texts[low]), value("-D", "a", s=texts[high])]
        old = ["-U", "a", texts[low], texts[high], high - low + 1]
        low, high = low + 1, high - 1
        new = ["+U", "a", texts[low], texts[high], high - low + 1]
        assert run(*gone) == ([old, new] if low < high else [["-D", *old[1:]]])
    assert run.machine.stateCells() == OWN_CELL


def test_of_insertions_one_value_is_kept() -> None:
    node = aggregation(FIRST, LAST).node()
    for call in node["calls"]:
        call["appendOnly"] = True
    run = Driven(node)
    for n in range(1_000):
        run(value("+I", "a", s=f"{n}" + "x" * 200))
    assert run.machine.stateCells() == OWN_CELL + 1


def test_bytes_are_found_again() -> None:
    node = aggregation(FIRST, COUNT).node()
    node["inputSchema"]["fields"][TEXT]["type"] = "binary"
    node["schema"]["fields"][1]["type"] = "binary"
    node["calls"][0]["type"] = "binary"
    node["rows"][0]["schema"] = node["inputSchema"]
    run = Driven(node)
    [[_, _, first, _]] = run(value("+I", "a", s="YQ=="))
    run(value("+I", "a", s="Yg=="))
    [_, [_, _, second, _]] = run(value("-D", "a", s="YQ=="))
    assert first != second
