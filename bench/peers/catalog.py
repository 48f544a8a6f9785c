"""All peers by name."""

from collections.abc import Mapping

from bench.peers.flink import flinks
from bench.peers.kafka_streams.peer import KafkaStreams
from bench.peers.pathway.peer import Pathway
from bench.peers.peer import Peer
from bench.peers.rejoin import Rejoin
from bench.peers.spark.peer import Spark

# Flink at settings that keep its state in RocksDB; what counts is the best of them
TUNED_FLINKS = ("flink-tuned", "flink-tuned-mini-batch", "flink-tuned-multi-join")


def peers(own: Mapping[str, str], flink: Mapping[str, str]) -> dict[str, Peer]:
    """Every peer; `own` and `flink` change settings of rejoin and of every Flink."""
    found: tuple[Peer, ...] = (Rejoin(own), *flinks(flink), KafkaStreams(), Spark(), Pathway())
    return {peer.name: peer for peer in found}
