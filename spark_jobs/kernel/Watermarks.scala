package org.apache.spark.sql.rejoin

import scala.collection.mutable

/** The watermarks of the Kafka partitions that feed one key group, as far as the marks told.
  *
  * A partition that has not spoken holds its input back: the clock's rows say how many partitions a
  * topic has. With an idle timeout, a partition whose watermark has not moved for that long (by the
  * clock's time) no longer counts, nor does an input all of whose partitions are idle.
  */
final class Watermarks {
  import Watermarks._

  private val bySource = mutable.TreeMap.empty[Int, Partition]
  private val partitionCounts = mutable.TreeMap.empty[Int, Int]
  private var clock = Long.MinValue
  private var ended = false

  /** The join's watermark; never goes back. */
  var current: Long = Long.MinValue

  /** The marks of one batch, the clock's first: a watermark that moves in this batch moves at its
    * time, in whatever order Spark delivers the rows.
    */
  def applyAll(marks: Iterable[Envelope]): Unit = {
    marks.foreach(mark => if (mark.kind == RowKind.Clock) apply(mark))
    marks.foreach(mark => if (mark.kind != RowKind.Clock) apply(mark))
  }

  private def apply(mark: Envelope): Unit = mark.kind match {
    case RowKind.Watermark =>
      val partition = bySource.getOrElseUpdate(mark.source, new Partition(Long.MinValue, clock))
      if (mark.time > partition.watermark) {
        partition.watermark = mark.time
        partition.movedAt = clock
      }
    case RowKind.Clock =>
      clock = math.max(clock, mark.time)
      partitionCounts(mark.source) = math.max(mark.seq.toInt, partitionCounts.getOrElse(mark.source, 0))
    case RowKind.End => ended = true
    case RowKind.Loaded => ()
    case other => throw new IllegalArgumentException(s"kind $other is not a mark")
  }

  /** Moves `current` to the watermark that all marks so far add up to. */
  def advance(rule: WatermarkRule): Unit = {
    val inputs = rule.topicsOfInputs.flatMap(inputWatermark(_, rule.idleTimeoutMs))
    if (ended) current = Long.MaxValue
    else if (inputs.nonEmpty)
      current = math.max(current, if (rule.policy == WatermarkRule.Max) inputs.max else inputs.min)
  }

  /** The watermark of one partition, by source id; None where it has not spoken. */
  def ofSource(source: Int): Option[Long] = bySource.get(source).map(_.watermark)

  /** None where all partitions are idle. */
  private def inputWatermark(topics: Seq[Int], idleTimeoutMs: Long): Option[Long] =
    if (!topics.forall(partitionCounts.contains)) Some(Long.MinValue)
    else {
      val sources = for (topic <- topics; n <- 0 until partitionCounts(topic)) yield (topic << 16) | n
      val active = sources.filterNot(isIdle(_, idleTimeoutMs))
      active.map(source => bySource.get(source).fold(Long.MinValue)(_.watermark)).minOption
    }

  private def isIdle(source: Int, idleTimeoutMs: Long): Boolean =
    idleTimeoutMs > 0 && {
      val partition = bySource.getOrElseUpdate(source, new Partition(Long.MinValue, clock))
      clock - partition.movedAt >= idleTimeoutMs
    }

  def read(in: CellReader): Unit = {
    current = in.signed()
    clock = in.signed()
    ended = in.byte() == 1
    (0 until in.int()).foreach(_ => bySource(in.int()) = new Partition(in.signed(), in.signed()))
    (0 until in.int()).foreach(_ => partitionCounts(in.int()) = in.int())
  }

  def write(out: CellWriter): Unit = {
    out.signed(current).signed(clock).byte(if (ended) 1 else 0)
    out.varLong(bySource.size.toLong)
    bySource.foreach { case (source, p) => out.varLong(source.toLong).signed(p.watermark).signed(p.movedAt) }
    out.varLong(partitionCounts.size.toLong)
    partitionCounts.foreach { case (topic, n) => out.varLong(topic.toLong).varLong(n.toLong) }
  }
}

object Watermarks {
  private final class Partition(var watermark: Long, var movedAt: Long)
}

/** How the watermarks of partitions add up to that of the join.
  *
  * @param topicsOfInputs
  *   topic indexes of each input
  * @param idleTimeoutMs
  *   0 keeps every partition active
  */
final case class WatermarkRule(topicsOfInputs: Seq[Seq[Int]], policy: String, idleTimeoutMs: Long)

object WatermarkRule {
  val Min = "min"
  val Max = "max"
}
