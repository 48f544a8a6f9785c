package org.apache.spark.sql.rejoin.ingest

/** When a table is to be asked for new records again: of a silent one after a tenth of its silence, and twice a second
  * at least.
  *
  * Each look asks the broker several times. Many times a second, that would be most of what an idle job does.
  */
private[rejoin] final class PollBackoff(nowNs: Long) {
  private var newestNs = nowNs // when there were records last
  private var askedNs = nowNs

  def isDue(nowNs: Long): Boolean =
    nowNs - askedNs >= math.min((nowNs - newestNs) / 10, PollBackoff.LongestNs)

  def asked(nowNs: Long, hasMore: Boolean): Unit = {
    askedNs = nowNs
    if (hasMore) newestNs = nowNs
  }
}

private object PollBackoff {
  private final val LongestNs = 500000000L
}
