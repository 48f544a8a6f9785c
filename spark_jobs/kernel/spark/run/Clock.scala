package org.apache.spark.sql.rejoin.run

import java.util

import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, PartitionOffset, ReadLimit,
  SupportsRealTimeMode, SupportsTriggerAvailableNow}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory, Scan, ScanBuilder}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import org.apache.spark.sql.rejoin.ingest.{BoundedScans, EnvelopeRow, Gate, LiveEpochs, RowReader}
import rejoin.core.row.Envelope

/** The clock's offset: what its rows say. Spark logs it, so that a replayed batch sees the same time.
  *
  * @param partitions
  *   partition count of each topic, by topic index
  */
final case class ClockOffset(timeMs: Long, partitions: Map[Int, Int], ended: Boolean) extends Offset {
  override def json(): String =
    compact(
      render(
        ("time" -> timeMs) ~
          ("partitions" -> partitions.toSeq.sorted.map { case (topic, n) => List(topic, n) }) ~
          ("end" -> ended)))
}

object ClockOffset {
  def read(json: String): ClockOffset = {
    implicit val formats: Formats = DefaultFormats
    val offset = parse(json)
    val partitions = (offset \ "partitions").extract[Seq[List[Int]]].map(p => p(0) -> p(1)).toMap
    ClockOffset((offset \ "time").extract[Long], partitions, (offset \ "end").extract[Boolean])
  }
}

/** A source of clock marks: processing time, how many partitions there are, and the end of a bounded run.
  *
  * Its offset moves, and with it starts a batch, only when a plan needs it: first of all, when the partition counts
  * change, every `tickMs` where set, and once at the end, in the epoch behind the one that reads the last records of
  * the query's [[BoundedScans]]. In real-time mode its marks come while the epoch runs ([[LiveClock]]), and its offset
  * is logged when the epoch ends.
  *
  * Options: `groups` (key groups), `tickMs` (0: no ticks), `end` (true: all is read), `job` (whose partition counts
  * [[Clock.setPartitions]] keeps), `loading` (of topics whose initial content is waited for, the partitions that have
  * some: `{topic index: [partition]}`), `checkpoint` (the query's part of the checkpoint, whose [[LiveEpochs]] the
  * clock shows in real-time mode).
  */
final class Clock extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = EnvelopeRow.schema
  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: util.Map[String, String]): Table =
    new Clock.ClockTable
}

object Clock {
  private val partitionsOfJobs = new util.concurrent.ConcurrentHashMap[String, Map[Int, Int]]

  /** Tells the clock of a job the present partition counts: JSON `[[topic index, count], ...]`. */
  def setPartitions(job: String, json: String): Unit = {
    implicit val formats: Formats = DefaultFormats
    partitionsOfJobs.put(job, parse(json).extract[Seq[List[Int]]].map(p => p(0) -> p(1)).toMap)
  }

  private final class ClockTable extends Table with SupportsRead {
    override def name(): String = "rejoin clock"
    override def schema(): StructType = EnvelopeRow.schema
    override def capabilities(): util.Set[TableCapability] = util.Set.of(TableCapability.MICRO_BATCH_READ)
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
      new Scan {
        override def readSchema(): StructType = EnvelopeRow.schema
        override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream =
          new ClockStream(
            options.get("job"),
            options.getInt("groups", 128),
            options.getLong("tickMs", 0),
            options.getBoolean("end", false),
            loadingOf(options.getOrDefault("loading", "{}")),
            options.getOrDefault("checkpoint", ""))
      }
  }

  private def loadingOf(json: String): Map[Int, Set[Int]] = {
    implicit val formats: Formats = DefaultFormats
    parse(json).extract[Map[String, Set[Int]]].map { case (topic, partitions) => topic.toInt -> partitions }
  }

  private final class ClockStream(
      job: String,
      groups: Int,
      tickMs: Long,
      ends: Boolean,
      loading: Map[Int, Set[Int]],
      checkpoint: String)
      extends MicroBatchStream
      with SupportsTriggerAvailableNow
      with SupportsRealTimeMode {
    private var fixed: Option[ClockOffset] = None
    private var asked = 0
    private var first: Option[Offset] = None // where the query's first epoch in real-time mode has begun

    override def initialOffset(): Offset = ClockOffset(Long.MinValue, Map.empty, ended = false)
    override def deserializeOffset(json: String): Offset = ClockOffset.read(json)
    override def commit(end: Offset): Unit = ()
    override def stop(): Unit = ()
    override def latestOffset(): Offset = throw new UnsupportedOperationException("the start offset is needed")

    override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
      val from = start.asInstanceOf[ClockOffset]
      asked += 1
      fixed match {
        case Some(target) =>
          val ended = target.ended || (!Gate.isClosed && BoundedScans.areRead(job, asked))
          if (from.ended) from else target.copy(timeMs = math.max(target.timeMs, from.timeMs), ended = ended)
        case None => if (Gate.isClosed) from else next(from)
      }
    }

    /** Under availableNow the clock moves to the time at which the run began, and to the end. */
    override def prepareForTriggerAvailableNow(): Unit = fixed = Some(now(Map.empty))

    override def prepareForRealTimeMode(): Unit = LiveEpochs.of(checkpoint).addClock()

    private def next(from: ClockOffset): ClockOffset = Clock.next(from, now(from.partitions), tickMs)

    private def now(known: Map[Int, Int]): ClockOffset =
      ClockOffset(System.currentTimeMillis(), partitionsOfJobs.getOrDefault(job, known), ends)

    override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] =
      Array(ClockPartition(start.json(), end.json(), groups, loading))

    override def planInputPartitions(start: Offset): Array[InputPartition] = {
      val from = start.asInstanceOf[ClockOffset]
      first = first.orElse(Some(start))
      val isStart = first.contains(start)
      Array(LiveClockPartition(from.json(), now(from.partitions).json(), groups, tickMs, loading, isStart))
    }

    override def mergeOffsets(offsets: Array[PartitionOffset]): Offset =
      ClockOffset.read(offsets.head.asInstanceOf[LiveClockOffset].json)

    override def createReaderFactory(): PartitionReaderFactory = Clock.readers(checkpoint)
  }

  private def readers(checkpoint: String): PartitionReaderFactory = {
    case ClockPartition(start, end, groups, loading) =>
      val due = marks(ClockOffset.read(start), ClockOffset.read(end), groups, loading)
      new RowReader(due.map(EnvelopeRow(_)), EnvelopeRow.schema)
    case live: LiveClockPartition =>
      val epoch = LiveEpochs.of(checkpoint).running
      new LiveClock(live, epoch, epoch.clockSteps())
    case other => throw new IllegalArgumentException(s"no partition of a clock: $other")
  }

  private final case class ClockPartition(start: String, end: String, groups: Int, loading: Map[Int, Set[Int]])
      extends InputPartition

  /** Where the clock stands when the machine's shows `present`: no time comes again where that one jumps back. */
  def next(from: ClockOffset, present: ClockOffset, tickMs: Long): ClockOffset = {
    val ticks = tickMs > 0 && present.timeMs - from.timeMs >= tickMs
    val first = from.timeMs == Long.MinValue
    if (first || ticks || present.partitions != from.partitions || (present.ended && !from.ended))
      present.copy(timeMs = math.max(present.timeMs, from.timeMs))
    else from
  }

  /** The rows of one tick: a mark per topic and group, then the end mark where the input has ended.
    *
    * Of the topics in `loading`, new partitions that are not listed there have nothing to load.
    */
  def marks(from: ClockOffset, to: ClockOffset, groups: Int, loading: Map[Int, Set[Int]]): Iterator[Envelope] = {
    val loaded = for {
      (topic, listed) <- loading.toSeq.sortBy(_._1)
      partition <- from.partitions.getOrElse(topic, 0) until to.partitions.getOrElse(topic, 0)
      if !listed(partition)
    } yield Envelope.source(topic, partition)
    (0 until groups).iterator.flatMap { group =>
      val topics = to.partitions.toSeq.sorted.iterator.map { case (topic, partitions) =>
        Envelope.clock(group, topic, partitions, to.timeMs)
      }
      topics ++ loaded.map(Envelope.loaded(group, 0, _)) ++ Option.when(to.ended)(Envelope.end(group))
    }
  }
}
