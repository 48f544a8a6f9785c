package org.apache.spark.sql.rejoin.ingest

import java.{lang, util}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.{ConsumerRecord, OffsetOutOfRangeException}
import org.apache.kafka.common.TopicPartition

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.connector.read.streaming.{PartitionOffset, SupportsRealTimeRead}
import org.apache.spark.sql.kafka010.rejoin.{LiveConsumers, LiveOffsets, LiveSource}

/** A Kafka partition that is read until its epoch in real-time mode ends.
  *
  * @param from
  *   the first offset
  * @param loadedAt
  *   the offset behind the last record of the partition's initial content, where that was not complete before
  */
private[ingest] final case class LivePartition(at: TopicPartition, from: Long, loadedAt: Option[Long])

/** The partitions that one task reads.
  *
  * @param run
  *   this start of the query's scan, whose [[LiveConsumers]] read the partitions
  * @param marksMs
  *   how often marks are due while records come; 0 for only once the initial content is complete
  * @param reader
  *   the number of the task among those that read the table
  */
private[ingest] final case class LivePartitions(
    partitions: Seq[LivePartition],
    source: LiveSource,
    run: String,
    marksMs: Long,
    table: String,
    reader: Int)
    extends InputPartition

/** Kafka's records as they come, and markers among them: some time after a record marks are due, also when no other
  * record follows it.
  *
  * The epoch ends with its [[LiveEpoch]], or at a closed [[Gate]]. With `steps` it has barriers, and marks come with
  * them; it ends no earlier than with the steps that are repeated, and at once where the last of them ended it before.
  *
  * @param marker
  *   makes a marker's row of a partition, the offset behind its last record and the marker's timestamp type
  */
private[ingest] final class LiveReader(
    of: LivePartitions,
    epoch: LiveEpoch,
    steps: Option[ReaderSteps],
    marker: (TopicPartition, Long, Int) => InternalRow)
    extends SupportsRealTimeRead[InternalRow] {
  import LiveReader._

  private val consumer = LiveConsumers.take(of.run, of.partitions.map(_.at), of.source)
  private val all = of.partitions.map(new LiveProgress(_, of.source.hasHeaders))
  private val progress = all.map(each => each.at -> each).toMap
  private val isStepped = steps.isDefined
  private var unloaded = all.filter(_.isLoading)
  private var current = all.head // the partition that was read last
  private var records: util.Iterator[ConsumerRecord[Array[Byte], Array[Byte]]] = util.Collections.emptyIterator()
  private var row: InternalRow = _
  private var isUnmarked = false
  private var markedAt = 0L
  private var beganAt = 0L // when it first looked for a record; 0 before
  private var hasLooked = false

  override def nextWithTimeout(startMs: lang.Long, timeoutMs: lang.Long): RecordStatus = {
    val deadline = math.min(startMs + timeoutMs, epoch.endsAtMs)
    var found: RecordStatus = null
    while (found == null) {
      val now = System.currentTimeMillis()
      if (steps.exists(_.isOver)) found = NoRecord
      else if (unloaded.exists(_.isLoaded)) found = markLoaded()
      else if (isStepped && hasStepEnded(now)) found = endStep(isLast = false)
      else if (isUnmarked && now - markedAt >= of.marksMs) {
        isUnmarked = false
        markedAt = now
        found = mark(current, Ingest.MarksDue)
      } else if ((now >= deadline || Gate.isClosed) && !steps.exists(_.isRepeating))
        found = if (isStepped) endStep(isLast = true) else NoRecord
      else {
        val record = nextRecord()
        if (record == null) look(now, deadline)
        else {
          found = take(record)
          if (!hasLooked) noteLook(now, deadline)
        }
      }
    }
    found
  }

  /** The next record of the running step that has come; null if none has. */
  private def nextRecord(): ConsumerRecord[Array[Byte], Array[Byte]] = {
    var found = if (isStepped) all.iterator.map(_.takeHeld()).find(_ != null).orNull else null
    while (found == null && records.hasNext) {
      val record = records.next()
      if (!isStepped) found = record
      else {
        val at = progress(placeOf(record))
        if (at.holds(record)) consumer.pause(at.at) else found = record
      }
    }
    found
  }

  private def hasStepEnded(now: Long): Boolean = {
    val own = steps.get
    if (!own.isRepeating) own.endsAtMs <= now
    else {
      if (beganAt == 0L) begin(now)
      all.forall(each => each.hasAll(!records.hasNext && consumer.isAt(each.at, _)))
    }
  }

  private def endStep(isLast: Boolean): RecordStatus = {
    val own = steps.get
    all.foreach(_.endStep())
    if (own.isRepeating) consumer.resume()
    val barrier = own.end(LiveProgress.text(all), isLast)
    setEnds()
    row = marker(new TopicPartition(own.readers.toString, own.number), barrier, Ingest.Barrier)
    RecordStatus.newStatusWithoutArrivalTime(true)
  }

  /** Where the running step was noted before, partitions are read to where it ended, and not beyond. */
  private def setEnds(): Unit = steps.foreach(_.noted.map(LiveProgress.offsetsOf(of.table, _)) match {
    case Some(ends) => all.foreach(each => each.upTo = ends.getOrElse(each.at, each.next))
    case None => all.foreach(_.upTo = Long.MaxValue)
  })

  private def placeOf(record: ConsumerRecord[Array[Byte], Array[Byte]]): TopicPartition =
    if (record.partition == current.at.partition && record.topic == current.at.topic) current.at
    else new TopicPartition(record.topic, record.partition)

  private def look(now: Long, deadline: Long): Unit = {
    if (beganAt == 0L) begin(now)
    val until =
      if (isStepped) now + StepPollMs
      else if (isUnmarked) markedAt + of.marksMs
      else now + IdleMs
    records =
      try consumer.poll(math.max(math.min(deadline, until) - now, 1L))
      catch { case e: OffsetOutOfRangeException => throw deleted(e) }
    if (!hasLooked) noteLook(System.currentTimeMillis(), deadline)
  }

  /** All partitions have been looked at: each had a record, or none for a while, and the broker has said that there is
    * none, or has not answered.
    */
  private def noteLook(now: Long, deadline: Long): Unit = {
    val hasWaited = now - beganAt >= IdleMs || now >= deadline
    val hasNoAnswer = now - beganAt >= AnswerMs
    if (all.forall(each => each.hasRecords || hasWaited && (hasNoAnswer || consumer.isAtEnd(each.at)))) {
      hasLooked = true
      epoch.hasLooked()
    }
  }

  private def begin(now: Long): Unit = {
    beganAt = now
    consumer.seek(all.map(each => each.at -> each.next))
  }

  private def take(record: ConsumerRecord[Array[Byte], Array[Byte]]): RecordStatus = {
    if (record.partition != current.at.partition || record.topic != current.at.topic)
      current = progress(new TopicPartition(record.topic, record.partition))
    current.next = record.offset + 1
    row = current.rowOf(record)
    if (isStepped) steps.get.began(System.currentTimeMillis()) else isUnmarked = of.marksMs > 0
    RecordStatus.newStatusWithArrivalTimeMs(record.timestamp)
  }

  private def markLoaded(): RecordStatus = {
    val loaded = unloaded.find(_.isLoaded).get
    unloaded = unloaded.filter(_ != loaded)
    if (isStepped) steps.get.began(System.currentTimeMillis()) else isUnmarked = true
    mark(loaded, Ingest.LoadedMarker)
  }

  private def mark(partition: LiveProgress, kind: Int): RecordStatus = {
    row = marker(partition.at, partition.next, kind)
    RecordStatus.newStatusWithoutArrivalTime(true)
  }

  override def getOffset: PartitionOffset = LiveOffsets(all.map(each => each.at -> each.next))
  override def next(): Boolean = throw new UnsupportedOperationException("only in real-time mode")
  override def get(): InternalRow = row
  override def close(): Unit = {
    steps.foreach(_.close())
    LiveConsumers.giveBack(of.run, consumer)
  }

  setEnds()
}

private object LiveReader {
  private val NoRecord = RecordStatus.newStatusWithoutArrivalTime(false)

  /** How often a reader without records looks at the gate, and how long it looks for a first one. */
  private final val IdleMs = 100L

  /** How long a reader waits for records without a look at the barriers. */
  private final val StepPollMs = 5L

  /** A broker that does not answer for so long holds up no clock. */
  private final val AnswerMs = 5_000L

  /** Records are counted as lost where the query begins again. */
  private def deleted(cause: OffsetOutOfRangeException): DataLossException = {
    val from = cause.offsetOutOfRangePartitions.asScala.map { case (at, offset) =>
      s"${at.topic}[${at.partition}]: from offset $offset on"
    }
    new DataLossException(
      "SOURCE_DATA_LOST",
      s"records were deleted before they were read: ${from.toSeq.sorted.mkString(", ")}")
  }
}
