package org.apache.spark.sql.rejoin.ingest

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, Generator, UnsafeProjection}
import org.apache.spark.sql.classic.{DataFrame, ExpressionUtils}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.rejoin.columns.Expressions
import org.apache.spark.sql.rejoin.format.{Decoded, RecordReader, SourceRecord}
import org.apache.spark.sql.rejoin.run.Counters
import rejoin.core.row.{Envelope, OnError, RejectedRecordException, Unhealed}

/** Makes envelopes of the Kafka records of one table, as a select with the generator as its only column. */
object Ingest {
  private val Columns =
    Seq("topic", "partition", "offset", "timestamp", "timestampType", "key", "value")

  /** A timestamp type of its own: the record is a marker, the partition's initial content is complete. */
  final val LoadedMarker = -2

  /** The record is a marker: it is time for marks of what was read so far. Comes in real-time mode only. */
  final val MarksDue = -3

  /** The record is a marker: a step ends here. Its topic says how many readers the epoch has, its partition which of
    * them this one is, and its offset is the barrier.
    */
  final val Barrier = -4

  /** The record's timestamp; unknown if the record has none. */
  def recordMs(record: SourceRecord): Long = if (record.timestampMs < 0) Envelope.NoTime else record.timestampMs

  /** `records` has the columns of Spark's Kafka source, with or without headers. */
  def apply(records: DataFrame, spec: IngestSpec, counters: Counters, query: String): DataFrame = {
    val names = Columns ++ records.columns.find(_ == "headers")
    val found = records.queryExecution.analyzed.output
    val inputs = names.map(name => found.find(_.name == name).get)
    val run = java.util.UUID.randomUUID.toString
    records.select(ExpressionUtils.column(IngestGenerator(inputs, IngestPlan(spec), counters, query, run)))
  }
}

/** A scan's expressions, bound on the driver. */
final case class IngestPlan(
    spec: IngestSpec,
    facts: Seq[Expression],
    key: Seq[Expression],
    row: Seq[Expression]) {
  override def toString: String = s"table ${spec.table}"
}

object IngestPlan {
  def apply(spec: IngestSpec): IngestPlan = {
    def bind(texts: Seq[String]): Seq[Expression] =
      Expressions.bind(texts, spec.columnSchema, spec.timeZone)
    val facts = Seq(
      spec.filter.getOrElse("true"),
      spec.rowtime.getOrElse("cast(null as timestamp_ntz)"),
      spec.watermark.getOrElse("cast(null as timestamp_ntz)"))
    val row = Expressions.bindAs(spec.row, spec.columnSchema, spec.schema, spec.timeZone)
    IngestPlan(spec, bind(facts), bind(spec.key), row)
  }
}

/** [[IngestRunner]] as an expression; `terminate` returns the marks of a task, after its last row.
  *
  * @param run
  *   identifies one start of the query's scan: its tasks share a [[RejectWindow]]
  */
final case class IngestGenerator(
    children: Seq[Expression],
    plan: IngestPlan,
    counters: Counters,
    query: String,
    run: String)
    extends Generator
    with CodegenFallback {
  @transient private lazy val runner = new IngestRunner(plan, counters, query, RejectWindow.of(run, plan.spec))
  @transient private lazy val record = new SourceRecord
  @transient private lazy val columns = children.collect { case BoundReference(ordinal, _, _) => ordinal }.toArray
  @transient private lazy val isOfColumns = columns.length == children.size
  @transient private lazy val inOrder = UnsafeProjection.create(children)

  override def elementSchema: StructType = EnvelopeRow.schema

  override def eval(input: InternalRow): IterableOnce[InternalRow] = {
    if (isOfColumns) read(input, columns) else read(inOrder(input), IngestGenerator.InOrder)
    runner.add(record)
  }

  private def read(row: InternalRow, at: Array[Int]): Unit = {
    record.topic = row.getUTF8String(at(0))
    record.partition = row.getInt(at(1))
    record.offset = row.getLong(at(2))
    record.timestampMs = Math.floorDiv(row.getLong(at(3)), 1000L)
    record.timestampType = row.getInt(at(4))
    record.key = row.getBinary(at(5))
    record.value = row.getBinary(at(6))
    if (children.size > 7) record.headers = row.getArray(at(7))
  }

  override def terminate(): IterableOnce[InternalRow] = runner.finish()

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): Expression =
    copy(children = newChildren)
}

object IngestGenerator {
  private val InOrder = Array.range(0, 8)
}

/** How far a task has read one source partition. */
private final class PartitionProgress(val source: Int) {
  var watermark: Long = Envelope.NoTime
  var recordMs: Long = Envelope.NoTime // of the newest record
  var hasRecords = false
  var isLoaded = false

  /** Begins anew once marks were sent: the next ones speak of what comes from here on. */
  def startMarks(): Unit = {
    hasRecords = false
    isLoaded = false
  }
}

/** Turns records of one table into envelopes, without Spark's engine. One instance serves one task at a time.
  *
  * The rows that it returns are reused: read them before the next call.
  */
final class IngestRunner(plan: IngestPlan, counters: Counters, query: String, rejects: RejectWindow) {
  def this(spec: IngestSpec, counters: Counters, query: String) =
    this(IngestPlan(spec), counters, query, RejectWindow(spec))

  private val spec = plan.spec
  private val reader = new RecordReader(spec)
  private val rows = new EnvelopeRows(plan)
  private val followsKeys = spec.debezium.followsKeys
  private val chunks = if (spec.chunked) new ChunkWriter(spec.groups, spec.side) else null
  private val partitions = mutable.LinkedHashMap.empty[(String, Int), PartitionProgress]
  private var current: PartitionProgress = _
  private var currentTopic: UTF8String = _
  private var currentPartition = -1
  private var rowCount = 0L
  private var partialCount = 0L
  private var step = 0L // between two barriers of real-time mode
  private var unreported = 0 // records that the window of rejects has not counted yet

  /** Begins another task. */
  def start(): Unit = {
    partitions.clear()
    step = 0L
    current = null
    currentPartition = -1
  }

  /** The envelopes of one record: none, one, the two halves of an update, those of several rows; or the
    * chunks now full. */
  def add(record: SourceRecord): Iterator[InternalRow] =
    if (record.timestampType == Ingest.Barrier) endStep(record) else addTo(progressOf(record), record)

  private def addTo(progress: PartitionProgress, record: SourceRecord): Iterator[InternalRow] =
    if (record.timestampType == Ingest.LoadedMarker) {
      progress.isLoaded = true
      Iterator.empty
    } else if (record.timestampType == Ingest.MarksDue) marks()
    else
      try {
        unreported += 1
        progress.hasRecords = true
        progress.recordMs = math.max(progress.recordMs, Ingest.recordMs(record))
        if (unreported == RejectWindow.ReportEvery) report()
        rows.start()
        val decoded = reader.read(record)
        rows.at(decoded)
        if (decoded.truncates) ofStep(rows.truncate(record, progress))
        else {
          addRows(decoded, record, progress)
          while (reader.hasMore) addRows(reader.readMore(record), record, progress)
          if (followsKeys && decoded.isOneChange) rows.follow(record.headers)
          rowCount += rows.size
          if (chunks == null) rows.iterator()
          else if (spec.realTime && !spec.steps) leaving()
          else if (rows.size == 1) chunks.add(rows.first, step)
          else rows.iterator().flatMap(chunks.add(_, step))
        }
      } catch {
        case bad: BadRecord => reject(record, progress, bad)
      }

  /** What is left of a step, and the barrier behind it for each key group. */
  private def endStep(record: SourceRecord): Iterator[InternalRow] = {
    val (readers, reader, barrier) = (record.topic.toString.toInt, record.partition, record.offset)
    val left = (chunks.drain(step) ++ marks()).toVector
    step = if (barrier == Barriers.Last) barrier else barrier + 1
    left.iterator ++ Iterator.range(0, spec.groups).map { group =>
      EnvelopeRow(Envelope.barrier(group, spec.side, reader, readers, barrier))
    }
  }

  /** Rows that are not packed say themselves of which step they are. */
  private def ofStep(rows: Iterator[InternalRow]): Iterator[InternalRow] =
    if (spec.steps) rows.map { row =>
      row.setLong(EnvelopeRow.Time, step)
      row
    }
    else rows

  /** The rows of one record, of which those for one key group stay together: an update is one change of its key. */
  private def leaving(): Iterator[InternalRow] =
    if (rows.size <= 1) rows.iterator()
    else {
      val full = rows.iterator().flatMap(chunks.add(_, step)).toVector
      full.iterator ++ chunks.drain(step)
    }

  private def addRows(decoded: Decoded, record: SourceRecord, progress: PartitionProgress): Unit = {
    if (decoded.beforeKind != Decoded.Absent) rows.add(decoded.beforeKind, decoded.before, record, progress)
    if (decoded.afterKind != Decoded.Absent) addAfter(decoded, record, progress)
  }

  private def addAfter(decoded: Decoded, record: SourceRecord, progress: PartitionProgress): Unit =
    if (decoded.missing.isEmpty) rows.add(decoded.afterKind, decoded.after, record, progress)
    else {
      partialCount += 1
      rows.addPartial(decoded.after, decoded.missing, unhealed(record, _), record, progress)
    }

  /** What a state machine needs if it finds no row from which to take the missing values. */
  private def unhealed(record: SourceRecord, bad: BadRecord): Unhealed = {
    val content = spec.onError match {
      case OnError.Fail => text(record, bad).getBytes(UTF_8)
      case OnError.Skip => Array.emptyByteArray
      case _ => DeadLetter.pack(deadLetterTopic, record, spec.table, bad)
    }
    new Unhealed(spec.table, spec.onError, content)
  }

  /** Returns the last chunks, then the marks of each partition for each key group. */
  def finish(): Iterator[InternalRow] = {
    counters.rows(query, spec.table, rowCount)
    rowCount = 0
    if (partialCount > 0) counters.partial(query, partialCount)
    partialCount = 0
    report()
    if (chunks == null) marks() else chunks.drain(step) ++ marks() ++ epochEnds()
  }

  private def epochEnds(): Iterator[InternalRow] =
    if (!spec.realTime) Iterator.empty
    else Iterator.range(0, spec.groups).map(group => EnvelopeRow(Envelope.epochEnd(group, spec.side)))

  /** The marks of what was read since the last ones. */
  private def marks(): Iterator[InternalRow] =
    partitions.valuesIterator.flatMap { progress =>
      val isActive = spec.marks && spec.watermark.isDefined && progress.hasRecords
      val isLoaded = progress.isLoaded
      progress.startMarks()
      for {
        group <- Iterator.range(0, spec.groups)
        mark <- Option.when(isActive)(
          Envelope.watermark(group, spec.side, progress.source, progress.watermark, progress.recordMs)) ++
          Option.when(isLoaded)(Envelope.loaded(group, spec.side, progress.source, progress.recordMs))
      } yield EnvelopeRow(if (spec.steps) mark.copy(seq = step) else mark)
    }

  private def progressOf(record: SourceRecord): PartitionProgress =
    if (record.partition == currentPartition && record.topic == currentTopic) current
    else {
      val topic = record.topic.toString
      val index = spec.topics.getOrElse(
        topic,
        throw new IllegalArgumentException(s"table ${spec.table} does not read topic $topic"))
      current = partitions.getOrElseUpdate(
        (topic, record.partition),
        new PartitionProgress(Envelope.source(index, record.partition)))
      currentTopic = record.topic.copy()
      currentPartition = record.partition
      current
    }

  private def report(): Unit = {
    rejects.passed(unreported)
    unreported = 0
  }

  private def reject(
      record: SourceRecord,
      progress: PartitionProgress,
      bad: BadRecord): Iterator[InternalRow] = {
    val policy = if (reader.skips(bad)) OnError.Skip else spec.onError
    if (policy == OnError.Fail)
      throw new RejectedRecordException(text(record, bad))
    counters.reject(query, spec.table, bad.reason)
    rejects.rejected(unreported, bad.reason, s"${record.at}: ${ErrorText(bad.getMessage)}")
    unreported = 0
    if (policy == OnError.Skip) Iterator.empty
    else ofStep(rows.reject(DeadLetter.pack(deadLetterTopic, record, spec.table, bad), record.offset, progress.source))
  }

  private def text(record: SourceRecord, bad: BadRecord): String =
    s"table ${spec.table}: ${record.at}: ${bad.reason}: ${ErrorText(bad.getMessage)}"

  private def deadLetterTopic: String =
    spec.deadLetterTopic.getOrElse(throw new IllegalArgumentException(s"table ${spec.table} has no dead-letter topic"))
}
