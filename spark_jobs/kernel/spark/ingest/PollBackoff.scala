package org.apache.spark.sql.rejoin.ingest

/** When a table is to be asked for new records again: of a silent one after a tenth of its silence, and twice a second
  * at least.
  *
  * Spark's look asks the broker for topics, partitions and where those end. Many times a second, that would be most of
  * what an idle job does. So a table that was silent for a while is looked at every few seconds, and in between it is
  * only asked where the known partitions end.
  */
private[rejoin] final class PollBackoff(nowNs: Long) {
  private var newestNs = nowNs // when there were records last
  private var askedNs = nowNs
  private var lookedNs = nowNs

  def isDue(nowNs: Long): Boolean =
    nowNs - askedNs >= math.min((nowNs - newestNs) / 10, PollBackoff.LongestNs)

  def isLookDue(nowNs: Long): Boolean =
    nowNs - newestNs < PollBackoff.LookNs || nowNs - lookedNs >= PollBackoff.LookNs

  def asked(nowNs: Long): Unit = askedNs = nowNs

  def looked(nowNs: Long, hasMore: Boolean): Unit = {
    asked(nowNs)
    lookedNs = nowNs
    if (hasMore) newestNs = nowNs
  }
}

private object PollBackoff {
  private final val LongestNs = 500000000L
  private final val LookNs = 5000000000L
}
