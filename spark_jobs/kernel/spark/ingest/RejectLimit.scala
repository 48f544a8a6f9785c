package org.apache.spark.sql.rejoin.ingest

import java.util

import scala.collection.mutable

/** The job stops if more than `maxShare` of the last `window` records of a table are bad.
  *
  * @param maxShare
  *   above 0 and up to 1; with 1 the job never stops
  */
final case class RejectLimit(maxShare: Double, window: Int)

/** Stops the job before a wrong schema sends a whole topic to the dead-letter topic. */
final class RejectLimitException(message: String) extends RuntimeException(message)

/** Counts the last records of one table in one run, and how many of them were bad.
  *
  * Shared by all tasks of a JVM. It throws inside the epoch, before the epoch's transactions are committed.
  * A stateful query then writes no dead-letter record of that epoch; a query without state commits each
  * partition apart, so those may be written that were done before the limit was reached.
  */
final class RejectWindow(table: String, limit: RejectLimit) {
  private val blocks = new util.ArrayDeque[RejectWindow.Block]
  private val leastRecords = math.min(limit.window, RejectWindow.LeastRecords)
  private val perBlock = math.max(1, limit.window / RejectWindow.Blocks)
  private var records = 0L
  private var rejects = 0L

  /** Counts `n` more records. */
  def passed(n: Int): Unit = synchronized {
    if (n > 0) {
      latest().records += n
      records += n
      while (records - blocks.getFirst.records >= limit.window) forget(blocks.removeFirst())
    }
  }

  /** Counts `n` more records, the last of them bad; throws if the limit is exceeded. */
  def rejected(n: Int, reason: String, example: String): Unit = synchronized {
    passed(n)
    val block = blocks.getLast // the block that has counted the record: both leave the window together
    block.reasons(reason) = block.reasons.getOrElse(reason, 0L) + 1
    block.examples(reason) = example
    rejects += 1
    if (limit.maxShare < 1 && records >= leastRecords && rejects > limit.maxShare * records)
      throw new RejectLimitException(message())
  }

  private def latest(): RejectWindow.Block = {
    if (blocks.isEmpty || blocks.getLast.records >= perBlock) blocks.addLast(new RejectWindow.Block)
    blocks.getLast
  }

  private def forget(block: RejectWindow.Block): Unit = {
    records -= block.records
    rejects -= block.reasons.values.sum
  }

  private def message(): String = {
    val counts = new mutable.LinkedHashMap[String, Long]
    var example = Map.empty[String, String]
    blocks.forEach { block =>
      block.reasons.foreach { case (reason, n) => counts(reason) = counts.getOrElse(reason, 0L) + n }
      example ++= block.examples
    }
    val (reason, n) = counts.maxBy(_._2)
    val share = math.round(100.0 * rejects / records)
    s"table $table: $rejects of the last $records records ($share %) could not become rows, more than " +
      s"'rejoin.dead-letter.max-share' = '${limit.maxShare}' allows; $n of them: $reason, such as ${example(reason)}"
  }
}

object RejectWindow {

  /** A task reports good records in such numbers, and each bad record at once. */
  final val ReportEvery = 128

  /** The share of rejected records is judged from this many records on. */
  private final val LeastRecords = 1000
  private final val Blocks = 20
  private final val MostRuns = 256

  private final class Block {
    var records = 0L
    val reasons = new mutable.LinkedHashMap[String, Long]
    val examples = new mutable.HashMap[String, String]
  }

  private val running = new util.LinkedHashMap[String, RejectWindow](16, 0.75f, true) {
    override def removeEldestEntry(eldest: util.Map.Entry[String, RejectWindow]): Boolean = size > MostRuns
  }

  /** The window of a run in this JVM. */
  def of(run: String, spec: IngestSpec): RejectWindow = running.synchronized {
    running.computeIfAbsent(run, _ => RejectWindow(spec))
  }

  def apply(spec: IngestSpec): RejectWindow =
    new RejectWindow(spec.table, spec.rejectLimit.getOrElse(RejectLimit(1.0, LeastRecords)))
}
