package org.apache.spark.sql.rejoin.run

import org.apache.spark.sql.execution.streaming.state.RocksDB

/** Lets a batch end with a snapshot of its store where a start would have much to replay.
  *
  * Spark makes a snapshot for every ten versions and takes it to the checkpoint within a minute; a start replays what
  * was written since. That is little after small epochs, but those of a backlog write hundreds of megabytes each. What
  * the versions since the last snapshot wrote is estimated by this one.
  */
private[run] final class BatchSnapshot(db: RocksDB) {
  private val versions = StoreInternals.loadedVersion(db) + 1 - StoreInternals.lastSnapshotVersion(db)
  private val most = BatchSnapshot.MostBytes / math.max(versions, 1)
  private var written = 0L
  private var due = StoreInternals.endsWithSnapshot(db)

  /** Whether the commit makes a snapshot, which then has to have all that the batches until now wrote. */
  def isDue: Boolean = due

  /** Bytes of a key and its value. */
  def wrote(bytes: Int): Unit = {
    written += bytes
    if (!due && written >= most) {
      StoreInternals.forceSnapshot(db)
      due = true
    }
  }
}

private object BatchSnapshot {
  final val MostBytes = 256L << 20
}
