"""The arithmetic of sizing: what a load costs on some executors, and which limit comes first.

An epoch of E seconds reads the records of E seconds. The driver plans it and starts its tasks;
those before the exchange run, then those behind it:

    epoch_s + driver_task x tasks + task_wait x tasks / cores
      + wait_factor x (read / read cores + join / join cores) <= E

A load can be scaled: all rates grow alike. Keys do not, so a scaled load costs less per row.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spark_jobs.sizing.coefficients import Coefficients
from spark_jobs.sizing.given import Executor, Given
from spark_jobs.sizing.load import OperatorLoad, QueryLoad

_MOST_SCALE = 1e6
_STEPS = 60
_NOTICEABLE = 1.02  # a limit that lowers the rate by less is not named
_BITS = 8


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the job's settings limit; `parallelism` is None if it is the number of cores."""

    key_groups: int
    parallelism: int | None
    max_offsets: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes per second."""

    kafka_in: float
    kafka_out: float
    shuffle: float
    checkpoint: float

    def per_executor(self, executors: int) -> float:
        """The larger direction; what the exchange leaves on its executor does not count."""
        shuffle = self.shuffle * (executors - 1) / executors
        received = self.kafka_in + shuffle
        sent = self.kafka_out + shuffle + self.checkpoint
        return max(received, sent) / executors


@dataclass(frozen=True, slots=True)
class Size:
    """What the asked load takes on a number of executors, and what they carry at most.

    `rates` has the most records per second that each limit allows by itself; `first_limit` is the
    lowest of them.
    """

    executors: int
    cores: int
    cores_needed: float
    tasks: int
    epoch_s: float
    state_bytes: float
    heap_mb: float
    traffic: Traffic
    network_bytes: float
    rates: Mapping[str, float]
    first_limit: str
    most_rate: float


class Model:
    """The queries of a job under a given load; `on_executors` or in threads of the driver."""

    def __init__(
        self,
        queries: Sequence[QueryLoad],
        given: Given,
        bounds: Bounds,
        known: Coefficients,
        on_executors: bool = True,
    ) -> None:
        self.queries = queries
        self.on_executors = on_executors
        self.given = given
        self.bounds = bounds
        self.known = known
        self.operators = [operator for query in queries for operator in query.operators]

    @property
    def state_bytes(self) -> float:
        """The state as the formulas have it, without RocksDB's own overhead."""
        return sum(side.bytes for operator in self.operators for side in operator.state)

    def results(self, scale: float = 1.0) -> float:
        """Records that an epoch writes."""
        if self.given.results_per_second is not None:
            return self.given.results_per_second * self.given.epoch_s * scale
        return sum(self._estimated(query, scale) for query in self.queries)

    def _estimated(self, query: QueryLoad, scale: float) -> float:
        return sum(operator.results(self.given.epoch_s, scale) for operator in query.last)

    def cpu_s(self, scale: float = 1.0) -> float:
        """Processor seconds for the rows of an epoch, without what its tasks cost by themselves."""
        us = sum(self._operator_us(operator, scale) for operator in self.operators)
        return (us + self.known.result_us * self.results(scale)) / 1e6

    def _operator_us(self, operator: OperatorLoad, scale: float) -> float:
        known, epoch_s = self.known, self.given.epoch_s
        extra = known.executor_row_us if self.on_executors else 0.0
        per_row = known.row_us(operator.kind) + extra
        us = 0.0
        for load in operator.inputs:
            rows = load.rate * scale * epoch_s
            us += rows * (per_row + known.record_byte_ns / 1e3 * load.record_bytes)
            us += known.touched_key_us * load.touched(epoch_s, scale)
        return us

    def tasks(self, cores: int) -> int:
        """Stateful tasks of an epoch: one per operator and part of its key groups."""
        stateful = sum(1 for operator in self.operators if operator.is_stateful)
        return stateful * self._parallelism(cores)

    def _parallelism(self, cores: int) -> int:
        return min(self.bounds.parallelism or cores, self.bounds.key_groups)

    def join_cores(self, cores: int) -> float:
        """Cores behind the exchange; a task has whole key groups, and the largest decides."""
        groups, tasks = self.bounds.key_groups, self._parallelism(cores)
        return min(float(cores), groups / math.ceil(groups / tasks))

    def read_cores(self, cores: int) -> float:
        """Cores that read; a partition is read by one task."""
        most = float(cores)
        for table, partitions in self.given.partitions.items():
            share = self.given.rows_per_second[table] / self.given.rate
            most = min(most, partitions / share)
        return most

    def epoch_s(
        self, cores: int, scale: float, read_cores: float, join_cores: float, waits: bool = True
    ) -> float:
        """How long an epoch of the scaled load takes."""
        known, tasks = self.known, self.tasks(cores)
        rows_s = self.cpu_s(scale)
        tasks_s = tasks * known.task_cpu_ms / 1e3
        read, join = rows_s * known.read_share, rows_s * (1 - known.read_share) + tasks_s
        work = known.wait_factor * (read / read_cores + join / join_cores)
        return (self.fixed_s(cores) if waits else 0.0) + work

    def fixed_s(self, cores: int) -> float:
        """What an epoch takes without a row, apart from the work of its tasks."""
        known, tasks = self.known, self.tasks(cores)
        waits_ms = known.driver_task_ms * tasks + known.task_wait_ms * tasks / cores
        return known.epoch_s + waits_ms / 1e3

    def traffic(self, scale: float = 1.0) -> Traffic:
        """Bytes per second of the scaled load."""
        known, epoch_s = self.known, self.given.epoch_s
        read = shuffled = changed = 0.0
        for operator in self.operators:
            for load in operator.inputs:
                rows = load.rate * scale
                read += rows * load.record_bytes * known.kafka_in_ratio
                if operator.is_stateful:
                    shuffled += rows * self._exchanged(load.packed_bytes)
                    stored = load.touched(epoch_s, scale) / epoch_s
                    # only a regular join keeps one row for all changes of a key in an epoch
                    stored = stored if operator.kind == "regular" else rows
                    ratio = known.changelog_ratio(operator.kind)
                    changed += stored * load.stored_bytes * ratio
        written = 0.0
        total = sum(self._estimated(query, scale) for query in self.queries) or 1.0
        for query in self.queries:
            share = self._estimated(query, scale) / total
            results = self.results(scale) / epoch_s * share
            written += results * query.result_bytes * known.kafka_out_ratio
            if query.has_exchange:
                shuffled += results * self._exchanged(query.result_bytes)
        return Traffic(read, written, shuffled, changed)

    def _exchanged(self, packed_bytes: float) -> float:
        return self.known.shuffle_row_bytes + self.known.shuffle_ratio * packed_bytes

    def heap_mb(self, executors: int, scale: float = 1.0) -> float:
        """Heap of an executor: the records of its part of an epoch, and Spark itself."""
        records = self.given.rate * scale * self.given.epoch_s / executors
        return self.known.heap_base_mb + records * self.known.heap_record_bytes / 2**20

    def size(self, executors: int) -> Size:
        """The load on this number of executors."""
        executor = self.given.executor
        cores = executors * executor.cores
        tasks = self.tasks(cores)
        rates = self._rates(executors, cores, executor)
        combined = self.epoch_s(cores, 1.0, self.read_cores(cores), self.join_cores(cores))
        left_s = self.given.epoch_s - self.fixed_s(cores)
        work_s = self.epoch_s(cores, 1.0, cores, cores, waits=False) * cores
        first = first_limit(rates) if left_s > 0 else "epoch length"
        traffic = self.traffic()
        return Size(
            executors=executors,
            cores=cores,
            cores_needed=work_s / left_s if left_s > 0 else math.inf,
            tasks=tasks,
            epoch_s=combined,
            state_bytes=self.state_bytes * self.known.state_ratio,
            heap_mb=self.heap_mb(executors),
            traffic=traffic,
            network_bytes=traffic.per_executor(executors),
            rates=rates,
            first_limit=first,
            most_rate=min([*rates.values(), self._most_rate(cores)]),
        )

    def _most_rate(self, cores: int) -> float:
        """With all that limits the tasks of an epoch at once."""
        read, join = self.read_cores(cores), self.join_cores(cores)
        return self._rate(lambda s: self.epoch_s(cores, s, read, join), self.given.epoch_s)

    def _rates(self, executors: int, cores: int, executor: Executor) -> dict[str, float]:
        """The most records per second by limit."""
        epoch_s, every = self.given.epoch_s, float(cores)
        read, join = self.read_cores(cores), self.join_cores(cores)
        groups = "parallelism" if self.bounds.parallelism else "key groups"
        network = executor.network_mbit * 1e6 / _BITS
        busiest = max(self.given.rows_per_second.values()) * epoch_s
        limits: dict[str, tuple[Callable[[float], float], float]] = {
            "CPU": (lambda s: self.epoch_s(cores, s, every, every), epoch_s),
            groups: (lambda s: self.epoch_s(cores, s, every, join), epoch_s),
            "memory": (lambda s: self.heap_mb(executors, s), float(executor.memory_mb)),
            "network": (lambda s: self.traffic(s).per_executor(executors), network),
            "records per epoch": (lambda s: busiest * s, float(self.bounds.max_offsets)),
        }
        if self.given.partitions:
            limits["source partitions"] = lambda s: self.epoch_s(cores, s, read, every), epoch_s
        return {name: self._rate(cost, most) for name, (cost, most) in limits.items()}

    def _rate(self, cost: Callable[[float], float], most: float) -> float:
        """The highest rate at which a cost that grows with the load stays within a limit."""
        return self.given.rate * largest_scale(cost, most)


def first_limit(rates: Mapping[str, float]) -> str:
    """The limit with the lowest rate; CPU unless another one is noticeably lower."""
    name = min(rates, key=lambda limit: rates[limit])
    return name if rates[name] * _NOTICEABLE < rates["CPU"] else "CPU"


def largest_scale(cost: Callable[[float], float], most: float) -> float:
    """The largest scale at which a growing cost is at most `most`; 0 if it never is.

    >>> round(largest_scale(lambda s: 2 * s, 7.0), 6)
    3.5
    """
    if cost(0.0) >= most:
        return 0.0
    low, high = 0.0, 1.0
    while cost(high) <= most:
        low, high = high, high * 2
        if high > _MOST_SCALE:
            return low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= most else (low, middle)
    return low
