package org.apache.spark.sql.rejoin.ingest

import java.util
import java.util.{Optional, UUID}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.kafka.common.TopicPartition
import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Extraction, Formats}

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection}
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.metric.CustomMetric
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, PartitionOffset, ReadLimit,
  ReportsSourceMetrics, SupportsRealTimeMode, SupportsTriggerAvailableNow}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory, Scan, ScanBuilder}
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.kafka010.rejoin.{LiveConsumers, LiveOffsets, LiveSource, PlannedRecords}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.run.{Counters, References}

/** Spark's Kafka source, which starts no epoch once the [[Gate]] is closed and never reads past given ends.
  *
  * Options besides Kafka's own:
  *   - `rejoin.query`: the query, for the counters
  *   - `rejoin.table`: the table's name in the query's progress
  *   - `rejoin.ends`: `{topic: {partition: offset}}` for a bounded table; unlisted partitions are not read
  *   - `rejoin.loaded`: of the same form; the epoch that reaches such an offset gets one more record, whose
  *     timestamp type is [[Ingest.LoadedMarker]]
  *   - `rejoin.alignment`: an [[Alignment]]; the table is not read while it is too far ahead
  *   - `rejoin.starts`: of the same form; where topics begin that the source has not read at all. Spark itself
  *     would begin at the first record, and take records that were deleted before for lost
  *   - `rejoin.topic-ids`: `{topic: id}` for the [[SourceGuard]]
  *   - `rejoin.records-per-task`: how many records are worth a task; 0 if each partition needs a task of its own
  *   - `rejoin.readers`: in real-time mode, how many tasks read the table at most
  *   - `rejoin.marks-ms`: in real-time mode, how often marks are due while records come
  *   - `rejoin.checkpoint`: in real-time mode, the query's part of the checkpoint, whose [[LiveEpochs]] it reads in
  *   - `rejoin.epoch-ms`: in real-time mode, how long an epoch is
  *   - `rejoin.warm-up-epochs`: in real-time mode, how many of the first epochs are short
  *   - `rejoin.barriers-ms`: in real-time mode with transactions, how long rows wait for a [[Barriers barrier]]
  */
final class GatedKafka extends TableProvider {
  private lazy val kafka = DataSource
    .lookupDataSource("kafka", SQLConf.get)
    .getDeclaredConstructor()
    .newInstance()
    .asInstanceOf[TableProvider]

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = kafka.inferSchema(options)
  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: util.Map[String, String]): Table =
    new GatedKafka.GatedTable(kafka.getTable(schema, partitioning, properties).asInstanceOf[Table with SupportsRead])
}

object GatedKafka {

  /** What Spark has planned, by topic and partition, with an empty partition where no record is left to read.
    *
    * A query without state writes the rows of a source partition under the number of its task. So the tasks
    * must depend on nothing but the offsets in the checkpoint: neither on Spark's order, which differs from one
    * driver to the next, nor on the records that still exist of a partition that is new. With other numbers, a
    * repeated epoch would skip rows that were not written and write others twice.
    */
  private def numbered(planned: Seq[InputPartition], from: Ends, to: Ends): Seq[InputPartition] = {
    val ranges = planned.groupBy(placeOf)
    val read = for {
      (topic, offsets) <- to.toSeq
      (partition, end) <- offsets.toSeq
      if end > offsetAt(from, topic, partition)
    } yield (topic, partition.toInt)
    (read ++ ranges.keys).distinct.sorted.flatMap(ranges.getOrElse(_, Seq(NoRecords)))
  }

  private def placeOf(planned: InputPartition): (String, Int) = {
    val at = PlannedRecords.place(planned)
    (at.topic, at.partition)
  }

  /** As many tasks as the records are worth, each of neighbouring partitions.
    *
    * Starting a task takes longer than reading a few hundred records. Like the numbers of the tasks, this must depend
    * on the offsets alone.
    */
  private def shared(planned: Seq[InputPartition], records: Long, perTask: Long): Seq[InputPartition] = {
    val tasks = if (perTask == 0) planned.size.toLong else math.max((records + perTask - 1) / perTask, 1L)
    if (tasks >= planned.size) planned
    else planned.grouped((planned.size + tasks.toInt - 1) / tasks.toInt).map(Several(_)).toSeq
  }

  private def recordsOf(from: Ends, to: Ends): Long =
    (for ((topic, offsets) <- to.iterator; (partition, end) <- offsets)
      yield math.max(end - offsetAt(from, topic, partition), 0L)).sum

  /** A partition that the source has not read yet is read from its first record on. */
  private def offsetAt(offsets: Ends, topic: String, partition: String): Long =
    offsets.get(topic).flatMap(_.get(partition)).getOrElse(0L)

  /** What is read of one table; the options of [[GatedKafka]]. */
  private final case class ScanOptions(
      query: String,
      table: String,
      ends: Option[Ends],
      loaded: Ends,
      starts: Ends,
      alignment: Option[Alignment],
      recordsPerTask: Long,
      guard: () => SourceGuard,
      contentEnd: (TopicPartition, Long, Long) => Long,
      readers: Int,
      marksMs: Long,
      checkpoint: String,
      epochMs: Long,
      warmUpEpochs: Int,
      barriersMs: Long)

  private type Ends = Map[String, Map[String, Long]]
  private type KafkaStream = MicroBatchStream
    with SupportsTriggerAvailableNow with SupportsRealTimeMode with ReportsSourceMetrics

  private implicit val formats: Formats = DefaultFormats

  private final class GatedTable(kafka: Table with SupportsRead) extends Table with SupportsRead {
    override def name(): String = "rejoin kafka"
    override def columns(): Array[org.apache.spark.sql.connector.catalog.Column] = kafka.columns()
    override def capabilities(): util.Set[TableCapability] = util.Set.of(TableCapability.MICRO_BATCH_READ)
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
      val scan = kafka.newScanBuilder(withSecrets(options)).build()
      def offsets(name: String): Option[Ends] = Option(options.get(name)).map(json => parse(json).extract[Ends])
      val table = options.get("rejoin.table")
      val toleratesLoss = !options.getBoolean("failOnDataLoss", true)
      val own = ScanOptions(
        options.get("rejoin.query"),
        table,
        offsets("rejoin.ends"),
        offsets("rejoin.loaded").getOrElse(Map.empty),
        offsets("rejoin.starts").getOrElse(Map.empty),
        Option(options.get("rejoin.alignment")).map(Alignment.read),
        options.getLong("rejoin.records-per-task", 0),
        () => new SourceGuard(table, idsOf(options), toleratesLoss, clientOf(options)),
        (at, from, end) => ContentEnd.of(at, from, end, clientOf(options)),
        options.getInt("rejoin.readers", 1),
        options.getLong("rejoin.marks-ms", 0),
        options.getOrDefault("rejoin.checkpoint", ""),
        options.getLong("rejoin.epoch-ms", 0),
        options.getInt("rejoin.warm-up-epochs", 0),
        options.getLong("rejoin.barriers-ms", 0))
      () => new GatedScan(scan, own)
    }
  }

  /** Resolves references to secrets; the options themselves keep them, since Spark's plans and logs show them. */
  private def withSecrets(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap =
    new CaseInsensitiveStringMap(References.resolveAll(options.asCaseSensitiveMap.asScala.toMap).asJava)

  private def idsOf(options: CaseInsensitiveStringMap): Map[String, String] =
    parse(options.getOrDefault("rejoin.topic-ids", "{}")).extract[Map[String, String]]

  private def clientOf(options: CaseInsensitiveStringMap): Map[String, String] =
    options.asCaseSensitiveMap.asScala.toMap.collect {
      case (name, value) if name.startsWith("kafka.") => name.stripPrefix("kafka.") -> value
    }

  private final class GatedScan(kafka: Scan, options: ScanOptions) extends Scan {
    override def readSchema(): StructType = kafka.readSchema()
    override def supportedCustomMetrics(): Array[CustomMetric] = kafka.supportedCustomMetrics()
    override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream =
      new GatedStream(
        kafka.toMicroBatchStream(checkpointLocation).asInstanceOf[KafkaStream],
        kafka.readSchema(),
        options)
  }

  private final class GatedStream(
      kafka: KafkaStream,
      schema: StructType,
      options: ScanOptions)
      extends MicroBatchStream
      with SupportsTriggerAvailableNow
      with SupportsRealTimeMode
      with ReportsSourceMetrics {
    import options.{alignment, barriersMs, checkpoint, contentEnd, ends, epochMs, loaded, marksMs, query,
      recordsPerTask, starts, table, warmUpEpochs}
    private val run = UUID.randomUUID.toString
    private var realTime = false
    private var counted = Option.empty[Ends] // where an epoch began whose losses are counted: Spark may plan it twice
    private val contentEnds = mutable.HashMap.empty[TopicPartition, Long]
    private val guard = options.guard()
    private val name = s"$query/$table" // a query's name has no slash
    private val backoff = new PollBackoff(System.nanoTime)
    private var known = Option.empty[(Offset, Ends)] // of a silent table, parsed once
    private var newest = Option.empty[((Offset, Offset), Array[InputPartition])] // Spark plans an epoch twice
    private lazy val epochs = LiveEpochs.of(checkpoint)
    private val plan = ends.map(_ => BoundedScans.add(query))

    override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
      val next = planned(start, limit)
      plan.foreach(_.note(isAtEnd = reachesEnds(start), reachesEnd = reachesEnds(next)))
      next
    }

    private def planned(start: Offset, limit: ReadLimit): Offset =
      if (realTime) {
        Gate.pass(query)
        epochs.end()
        kafka.latestOffset(start, limit)
      } else if (Gate.isClosed || (ends.isEmpty && !mayHaveMore(start))) start
      else {
        guard.checkTopics()
        val next = bounded(kafka.latestOffset(withUnread(start), limit))
        backoff.looked(System.nanoTime, next != start)
        if (alignment.exists(isAhead(_, next != start))) start else next
      }

    private def mayHaveMore(start: Offset): Boolean = {
      val now = System.nanoTime
      backoff.isDue(now) && (backoff.isLookDue(now) || {
        backoff.asked(now)
        if (!known.exists(_._1 == start)) known = Some(start -> parse(withUnread(start).json()).extract[Ends])
        !known.exists { case (_, ends) => guard.haveEnds(ends) }
      })
    }

    private def isAhead(alignment: Alignment, hasMore: Boolean): Boolean = {
      Alignment.report(name, alignment, hasMore)
      hasMore && Alignment.isAhead(name, Counters.of(SparkContext.getOrCreate()))
    }

    override def latestOffset(): Offset = throw new UnsupportedOperationException("the start offset is needed")
    override def initialOffset(): Offset = bounded(kafka.initialOffset())

    /** Records beyond the ends do not count as lag. */
    override def reportLatestOffset(): Offset = Option(kafka.reportLatestOffset()).map(bounded).orNull

    override def deserializeOffset(json: String): Offset = kafka.deserializeOffset(json)
    override def getDefaultReadLimit: ReadLimit = kafka.getDefaultReadLimit
    override def prepareForTriggerAvailableNow(): Unit = kafka.prepareForTriggerAvailableNow()
    override def prepareForRealTimeMode(): Unit = {
      realTime = true
      kafka.prepareForRealTimeMode()
    }
    override def planInputPartitions(committed: Offset, end: Offset): Array[InputPartition] = {
      if (!newest.exists(_._1 == (committed, end))) newest = Some((committed, end) -> partitionsBetween(committed, end))
      newest.get._2
    }

    private def partitionsBetween(committed: Offset, end: Offset): Array[InputPartition] = {
      val start = withUnread(committed)
      val (from, to) = (parse(start.json()).extract[Ends], parse(end.json()).extract[Ends])
      checkRecords(to.map { case (topic, offsets) =>
        topic -> offsets.map { case (partition, _) => partition -> offsetAt(from, topic, partition) }
      })
      val planned = numbered(kafka.planInputPartitions(start, end).toSeq, from, to) ++ loadedBy(from, to)
      shared(planned, recordsOf(from, to), recordsPerTask).toArray
    }

    /** In real-time mode: all partitions that there are now, without an end. */
    override def planInputPartitions(start: Offset): Array[InputPartition] = {
      guard.checkTopics() // Spark's plan would say less
      val from = parse(start.json()).extract[Ends]
      val planned = kafka.planInputPartitions(start)
      val places = planned.map(PlannedRecords.place).sortBy(at => (at.topic, at.partition))
      def readTo(at: TopicPartition) = offsetAt(from, at.topic, at.partition.toString)
      val begun = places.groupMap(_.topic)(at => at.partition.toString -> readTo(at))
      val lost = checkRecords(begun.transform((_, offsets) => offsets.toMap))
      val partitions = places.map { at =>
        val offset = readTo(at) + lost.getOrElse(at, 0L)
        LivePartition(at, offset, contentEndOf(at, offset))
      }
      val readers = math.min(options.readers, partitions.length)
      epochs.plan(epochMs, warmUpEpochs, table, readers, barriersMs)
      LiveConsumers.open(run)
      Array.tabulate(readers) { reader =>
        val read = partitions.indices.filter(_ % readers == reader).map(partitions)
        LivePartitions(read, LiveSource(planned.head), run, marksMs, table, reader)
      }
    }

    /** Where the initial content of a partition ends, if its marker may still be ahead. */
    private def contentEndOf(at: TopicPartition, from: Long): Option[Long] = {
      val end = for {
        offsets <- loaded.get(at.topic)
        end <- offsets.get(at.partition.toString) if end >= from
      } yield contentEnds.getOrElseUpdate(at, contentEnd(at, from, end))
      end.filter(_ >= from)
    }

    private def checkRecords(from: Ends): Map[TopicPartition, Long] = {
      guard.checkTopics()
      val lost = guard.checkRecords(from)
      if (lost.nonEmpty && !counted.contains(from)) {
        counted = Some(from)
        Counters.of(SparkContext.getOrCreate()).lost(query, table, lost.values.sum)
      }
      lost
    }

    override def mergeOffsets(offsets: Array[PartitionOffset]): Offset =
      kafka.mergeOffsets(offsets.flatMap(_.asInstanceOf[LiveOffsets].partitions))
    override def createReaderFactory(): PartitionReaderFactory = new GatedReaders(schema, checkpoint)
    override def metrics(latestConsumed: Optional[Offset]): util.Map[String, String] = kafka.metrics(latestConsumed)
    override def commit(end: Offset): Unit = kafka.commit(end)
    override def stop(): Unit = {
      if (alignment.isDefined) Alignment.forget(name)
      plan.foreach(BoundedScans.remove(query, _))
      LiveConsumers.end(run)
      guard.close()
      kafka.stop()
    }
    override def toString: String = table

    /** A partition of markers, if partitions of the topics become loaded in this epoch. */
    private def loadedBy(from: Ends, to: Ends): Option[InputPartition] = {
      val reached = for {
        (topic, offsets) <- loaded.toSeq
        (partition, offset) <- offsets
        if offsetAt(from, topic, partition) < offset && offsetAt(to, topic, partition) >= offset
      } yield LoadedMarker(topic, partition.toInt, offset)
      Option.when(reached.nonEmpty)(LoadedMarkers(reached))
    }

    /** Adds the topics that a pattern has matched since the first start. */
    private def withUnread(offset: Offset): Offset =
      if (starts.isEmpty) offset
      else {
        val read = parse(offset.json()).extract[Ends]
        val unread = starts -- read.keys
        if (unread.isEmpty) offset else kafka.deserializeOffset(compact(render(Extraction.decompose(read ++ unread))))
      }

    private def reachesEnds(offset: Offset): Boolean = {
      val at = parse(offset.json()).extract[Ends]
      ends.forall(_.forall { case (topic, offsets) =>
        offsets.forall { case (partition, end) => offsetAt(at, topic, partition) >= end }
      })
    }

    private def bounded(offset: Offset): Offset = ends.fold(offset) { ends =>
      val upTo = for {
        (topic, offsets) <- parse(offset.json()).extract[Ends]
        ended <- ends.get(topic)
      } yield topic -> offsets.collect { case (partition, at) if ended.contains(partition) =>
        partition -> math.min(at, ended(partition))
      }
      kafka.deserializeOffset(compact(render(Extraction.decompose(upTo))))
    }
  }

  private final case class LoadedMarker(topic: String, partition: Int, offset: Long)

  private final case class LoadedMarkers(markers: Seq[LoadedMarker]) extends InputPartition

  private val NoRecords = LoadedMarkers(Nil)

  /** Partitions that one task reads, one after the other. */
  private final case class Several(partitions: Seq[InputPartition]) extends InputPartition

  /** Readers of records, of markers, and of several partitions. */
  private final class GatedReaders(schema: StructType, checkpoint: String) extends PartitionReaderFactory {
    override def createReader(partition: InputPartition): PartitionReader[InternalRow] = partition match {
      case Several(partitions) => new SeveralReader(partitions.iterator.map(createReader))
      case LoadedMarkers(markers) =>
        new RowReader(markers.iterator.map(m => row(m.topic, m.partition, m.offset, Ingest.LoadedMarker)), schema)
      case live: LivePartitions =>
        def marker(at: TopicPartition, offset: Long, kind: Int) = toUnsafe(row(at.topic, at.partition, offset, kind))
        val epoch = LiveEpochs.of(checkpoint).running
        new LiveReader(live, epoch, epoch.stepsOf(live.table, live.reader), marker)
      case records => new PlannedRecords(records)
    }

    @transient private lazy val toUnsafe = UnsafeProjection.create(schema)

    private def row(topic: String, partition: Int, offset: Long, kind: Int): InternalRow =
      new GenericInternalRow(schema.fieldNames.map[Any] {
        case "topic" => UTF8String.fromString(topic)
        case "partition" => partition
        case "offset" => offset
        case "timestamp" => 0L
        case "timestampType" => kind
        case _ => null
      })
  }
}
