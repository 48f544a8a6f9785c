package rejoin.core.time

import scala.collection.mutable

import rejoin.core.row.{CellReader, CellWriter, Envelope, RowKind}

/** The watermarks of the Kafka partitions that feed one key group, by the marks received so far.
  *
  * A partition without any mark holds its input back. The clock's rows say how many partitions a topic
  * has; a new one, of which they come to know later, counts from its first mark on. With an idle timeout,
  * a partition that has had no records for that long (by the clock's time) is idle, and so is an operator
  * all of whose inputs are. What is idle does not count.
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

  /** Applies the marks of one batch in an order of their own, as Spark delivers them in any: the clock's first,
    * so that records of this batch come at its time, and in front of them what they do not count; and idleness last,
    * as an operator says so after its watermark.
    */
  def applyAll(marks: Iterable[Envelope]): Unit = {
    def those(included: Byte => Boolean): Unit = marks.foreach(mark => if (included(mark.kind)) apply(mark))
    those(_ == RowKind.Resumed)
    those(_ == RowKind.Clock)
    those(kind => kind != RowKind.Resumed && kind != RowKind.Clock && kind != RowKind.Idle)
    those(_ == RowKind.Idle)
  }

  private def apply(mark: Envelope): Unit = mark.kind match {
    case RowKind.Watermark =>
      val known = Envelope.partitionOf(mark.source) + 1
      partitionCounts.updateWith(Envelope.topicOf(mark.source))(_.map(math.max(_, known)))
      val partition = of(mark.source)
      partition.watermark = math.max(partition.watermark, mark.time)
      partition.activeAt = clock
      partition.isIdle = false
    case RowKind.Idle => of(mark.source).isIdle = true
    case RowKind.Clock =>
      clock = math.max(clock, mark.time)
      partitionCounts(mark.source) = math.max(mark.seq.toInt, partitionCounts.getOrElse(mark.source, 0))
    case RowKind.End => ended = true
    case RowKind.Loaded => of(mark.source).isLoaded = true
    case RowKind.Resumed => resume(mark.time, isStart = mark.seq == 1)
    case RowKind.EpochEnd => // says nothing of time
    case other => throw new IllegalArgumentException(s"kind $other is not a mark")
  }

  /** No partition has become idle in a time in which none was read, or else the watermark would pass records that wait
    * in Kafka. When a query starts, nobody knows of any partition that it is idle: it counts as active from then on.
    */
  private def resume(timeMs: Long, isStart: Boolean): Unit = {
    val now = math.max(clock, timeMs)
    bySource.valuesIterator.foreach { partition =>
      partition.activeAt = if (isStart) now else partition.activeAt + (now - clock)
    }
  }

  private def of(source: Int): Partition = bySource.getOrElseUpdate(source, new Partition(Long.MinValue, clock))

  /** Moves `current` to the watermark that all marks so far add up to. */
  def advance(timing: Timing): Unit = {
    val inputs = timing.ruling.flatMap(inputWatermark)
    if (ended) current = Long.MaxValue
    else if (inputs.nonEmpty)
      current = math.max(current, if (timing.policy == Timing.Max) inputs.max else inputs.min)
  }

  /** Whether the operator waits for no input: all partitions of all of them are idle. */
  def isIdle(timing: Timing): Boolean = {
    val inputs = timing.ruling.filter(_.nonEmpty)
    !ended && inputs.nonEmpty && inputs.forall(inputWatermark(_).isEmpty)
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
    if (idleTimeoutMs > 0) clock - of(source).activeAt >= idleTimeoutMs
    else bySource.get(source).exists(_.isIdle)

  def read(in: CellReader): Unit = {
    current = in.signed()
    clock = in.signed()
    ended = in.byte() == 1
    (0 until in.int()).foreach { _ =>
      val source = in.int()
      val partition = new Partition(in.signed(), in.signed())
      val flags = in.byte()
      partition.isLoaded = (flags & LoadedFlag) != 0
      partition.isIdle = (flags & IdleFlag) != 0
      bySource(source) = partition
    }
    (0 until in.int()).foreach(_ => partitionCounts(in.int()) = in.int())
  }

  def write(out: CellWriter): Unit = {
    out.signed(current).signed(clock).byte(if (ended) 1 else 0)
    out.varLong(bySource.size.toLong)
    bySource.foreach { case (source, p) =>
      val flags = (if (p.isLoaded) LoadedFlag else 0) | (if (p.isIdle) IdleFlag else 0)
      out.varLong(source.toLong).signed(p.watermark).signed(p.activeAt).byte(flags)
    }
    out.varLong(partitionCounts.size.toLong)
    partitionCounts.foreach { case (topic, n) => out.varLong(topic.toLong).varLong(n.toLong) }
  }
}

/** What a group knows of a partition's time; `source` as in an [[Envelope]]. */
final case class PartitionTime(source: Int, watermark: Long, isIdle: Boolean, isLoaded: Boolean)

object Watermarks {
  private final val LoadedFlag = 1
  private final val IdleFlag = 2

  /** @param activeAt
    *   the clock's time of the last records
    */
  private final class Partition(var watermark: Long, var activeAt: Long) {
    var isLoaded = false

    /** Whether the operator that this is a partition of has said so; topics go by their idle timeout. */
    var isIdle = false
  }
}
