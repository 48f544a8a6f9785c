package rejoin.core.time

import scala.collection.mutable

import rejoin.core.row.{CellReader, CellWriter, Envelope, RowKind}

/** The watermarks of the Kafka partitions that feed one key group, by the marks received so far.
  *
  * A partition without any mark holds its input back; the clock's rows say how many partitions a
  * topic has. With an idle timeout, a partition whose watermark has not moved for that long (by the
  * clock's time) no longer counts, nor does an input all of whose partitions are idle.
  */
final class Watermarks {
  import Watermarks._

  private val bySource = mutable.TreeMap.empty[Int, Partition]
  private val partitionCounts = mutable.TreeMap.empty[Int, Int]
  private var ended = false

  /** The latest processing time of the clock's rows. */
  var clock: Long = Long.MinValue

  /** The operator's watermark; never goes back. */
  var current: Long = Long.MinValue

  /** Applies the marks of one batch, the clock's first: a watermark that moves in this batch moves at the
    * clock's time, in whatever order Spark delivers the rows.
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
    case RowKind.Loaded =>
      bySource.getOrElseUpdate(mark.source, new Partition(Long.MinValue, clock)).isLoaded = true
    case other => throw new IllegalArgumentException(s"kind $other is not a mark")
  }

  /** Moves `current` to the watermark that all marks so far add up to. */
  def advance(timing: Timing): Unit = {
    val inputs = timing.ruling.flatMap(inputWatermark)
    if (ended) current = Long.MaxValue
    else if (inputs.nonEmpty)
      current = math.max(current, if (timing.policy == Timing.Max) inputs.max else inputs.min)
  }

  /** Whether every input has ended. */
  def isEnd: Boolean = ended

  /** The watermark of one partition, by source id; None before its first mark. */
  def ofSource(source: Int): Option[Long] = bySource.get(source).map(_.watermark)

  /** Whether all partitions of these topics have passed the ends that they had at the first start. */
  def isLoaded(topics: Seq[TopicTime]): Boolean =
    ended || topics.forall(stream => partitionsOf(stream.topic) > 0 && sources(stream).forall(isLoaded))

  def isLoaded(source: Int): Boolean = bySource.get(source).exists(_.isLoaded)

  /** The source ids of all partitions of these topics, as far as they are known. */
  def sourcesOf(topics: Seq[TopicTime]): Seq[Int] = topics.flatMap(sources)

  /** The watermark of one input; None where all its partitions are idle. */
  def inputWatermark(streams: Seq[TopicTime]): Option[Long] =
    if (!streams.forall(stream => partitionsOf(stream.topic) > 0)) Some(Long.MinValue)
    else {
      val active = streams.flatMap(stream => sources(stream).filterNot(isIdle(_, stream.idleTimeoutMs)))
      active.map(source => bySource.get(source).fold(Long.MinValue)(_.watermark)).minOption
    }

  /** The partitions of the topics among these streams, for the status. */
  def partitions(streams: Seq[TopicTime]): Seq[PartitionTime] =
    for {
      stream <- streams if stream.topic < Timing.Forwarded
      source <- sources(stream)
    } yield PartitionTime(
      source,
      bySource.get(source).fold(Long.MinValue)(_.watermark),
      isIdle(source, stream.idleTimeoutMs),
      bySource.get(source).exists(_.isLoaded))

  private def partitionsOf(topic: Int): Int =
    if (topic >= Timing.Forwarded) 1 else partitionCounts.getOrElse(topic, 0)

  private def sources(stream: TopicTime): Seq[Int] =
    (0 until partitionsOf(stream.topic)).map(Envelope.source(stream.topic, _))

  private def isIdle(source: Int, idleTimeoutMs: Long): Boolean =
    idleTimeoutMs > 0 && {
      val partition = bySource.getOrElseUpdate(source, new Partition(Long.MinValue, clock))
      clock - partition.movedAt >= idleTimeoutMs
    }

  def read(in: CellReader): Unit = {
    current = in.signed()
    clock = in.signed()
    ended = in.byte() == 1
    (0 until in.int()).foreach { _ =>
      val source = in.int()
      val partition = new Partition(in.signed(), in.signed())
      partition.isLoaded = in.byte() == 1
      bySource(source) = partition
    }
    (0 until in.int()).foreach(_ => partitionCounts(in.int()) = in.int())
  }

  def write(out: CellWriter): Unit = {
    out.signed(current).signed(clock).byte(if (ended) 1 else 0)
    out.varLong(bySource.size.toLong)
    bySource.foreach { case (source, p) =>
      out.varLong(source.toLong).signed(p.watermark).signed(p.movedAt).byte(if (p.isLoaded) 1 else 0)
    }
    out.varLong(partitionCounts.size.toLong)
    partitionCounts.foreach { case (topic, n) => out.varLong(topic.toLong).varLong(n.toLong) }
  }
}

/** What a group knows of a partition's time; `source` as in an [[Envelope]]. */
final case class PartitionTime(source: Int, watermark: Long, isIdle: Boolean, isLoaded: Boolean)

object Watermarks {
  private final class Partition(var watermark: Long, var movedAt: Long) {
    var isLoaded = false
  }
}
