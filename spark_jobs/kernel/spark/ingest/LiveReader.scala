package org.apache.spark.sql.rejoin.ingest

import java.lang

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.connector.read.streaming.{PartitionOffset, SupportsRealTimeRead}

/** A Kafka partition that is read until its epoch in real-time mode ends.
  *
  * @param marksMs
  *   how often marks are due while records come; 0 for only once the initial content is complete
  * @param from
  *   the first offset
  * @param loadedAt
  *   the offset behind the last record of the partition's initial content, where that was not complete before
  */
private[ingest] final case class LivePartition(
    planned: InputPartition,
    marksMs: Long,
    from: Long,
    loadedAt: Option[Long])
    extends InputPartition {
  override def preferredLocations(): Array[String] = planned.preferredLocations()
}

/** Kafka's records as they come, and markers among them: some time after a record marks are due, also when no other
  * record follows it.
  *
  * The epoch ends with its [[LiveEpoch]], or at a closed [[Gate]].
  *
  * @param marker
  *   makes a marker's row of the offset behind the last record and the marker's timestamp type
  */
private[ingest] final class LiveReader(
    kafka: SupportsRealTimeRead[InternalRow],
    partition: LivePartition,
    epoch: LiveEpoch,
    marker: (Long, Int) => InternalRow)
    extends SupportsRealTimeRead[InternalRow] {
  import LiveReader._

  private var row: InternalRow = _
  private var nextOffset = partition.from // the offset behind the last record
  private var isUnmarked = false
  private var markedAt = 0L
  private var loadedAt = partition.loadedAt
  private var hasLooked = false

  override def nextWithTimeout(startMs: lang.Long, timeoutMs: lang.Long): RecordStatus = {
    val deadline = math.min(startMs + timeoutMs, epoch.endsAtMs)
    var found: RecordStatus = null
    while (found == null) {
      val now = System.currentTimeMillis()
      if (isLoadedNow) found = mark(Ingest.LoadedMarker)
      else if (isUnmarked && now - markedAt >= partition.marksMs) {
        isUnmarked = false
        markedAt = now
        found = mark(Ingest.MarksDue)
      } else if (now >= deadline || Gate.isClosed) found = NoRecord
      else {
        val until = if (isUnmarked) markedAt + partition.marksMs else now + IdleMs
        val status = kafka.nextWithTimeout(now, math.max(math.min(deadline, until) - now, 1L))
        if (!hasLooked) epoch.hasLooked()
        hasLooked = true
        if (status.hasRecord) found = take(status)
      }
    }
    found
  }

  private def take(status: RecordStatus): RecordStatus = {
    row = kafka.get()
    nextOffset = row.getLong(OffsetOrdinal) + 1
    isUnmarked = partition.marksMs > 0
    status
  }

  private def isLoadedNow: Boolean = loadedAt.exists(nextOffset >= _) && {
    loadedAt = None
    isUnmarked = true
    true
  }

  private def mark(kind: Int): RecordStatus = {
    row = marker(nextOffset, kind)
    RecordStatus.newStatusWithoutArrivalTime(true)
  }

  override def getOffset: PartitionOffset = kafka.getOffset
  override def next(): Boolean = throw new UnsupportedOperationException("only in real-time mode")
  override def get(): InternalRow = row
  override def currentMetricsValues(): Array[CustomTaskMetric] = kafka.currentMetricsValues()
  override def close(): Unit = kafka.close()
}

private object LiveReader {
  private val NoRecord = RecordStatus.newStatusWithoutArrivalTime(false)

  /** How often a reader without records looks at the gate. */
  private final val IdleMs = 100L

  /** The place of the offset among Kafka's columns: key, value, topic, partition, offset. */
  private final val OffsetOrdinal = 4
}
