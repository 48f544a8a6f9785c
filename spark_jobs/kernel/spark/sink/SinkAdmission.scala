package org.apache.spark.sql.rejoin.sink

import java.nio.charset.StandardCharsets.UTF_8
import java.util.HexFormat

import org.apache.spark.sql.rejoin.ingest.{DeadLetter, ErrorText, Reason}
import org.apache.spark.sql.rejoin.run.Counters
import rejoin.core.row.OnError

/** A result that is too large for its topic, under `rejoin.on-error` = `fail`. */
final class OversizedRecordException(message: String) extends RuntimeException(message)

/** Checks each record before it is sent: completes dead-letter records, and makes every record fit its topic.
  *
  * A dead-letter record is always written: parts that are too large are left out, and headers say so. For a result
  * that is too large, the sink's policy decides. One instance per producer.
  *
  * @param writer
  *   id of the producer
  */
final class SinkAdmission(spec: SinkSpec, writer: String, sizes: RecordSizes) {
  import SinkAdmission._
  private var plainLimit = -1

  /** The record to send; null where the policy leaves it out. */
  def apply(record: SinkRecord, epoch: Long, counters: Counters): SinkRecord = {
    if (plainLimit < 0) plainLimit = math.max(sizes.surelyFits(spec.topic), 0)
    if (record.headers == null && size(record.key) + size(record.value) <= plainLimit) record
    else if (record.isDeadLetter) fitting(located(record, epoch))
    else
      sizes.tooLarge(record) match {
        case None => record
        case Some(found) => refused(record, found, epoch, counters)
      }
  }

  /** Adds headers with the query and epoch. The source partition takes the place of the hash, and thereby chooses
    * the partition of the dead-letter topic: records of one source partition keep their order.
    */
  private def located(record: SinkRecord, epoch: Long): SinkRecord = {
    val partition = lastText(record, DeadLetter.PartitionHeader)
    record.copy(
      hash = partition.fold(record.hash)(_.toInt),
      headers = record.headers ++ Seq(
        header("__connect.errors.connector.name", spec.name),
        header("__connect.errors.task.id", writer),
        header("rejoin.query", spec.name),
        header("rejoin.epoch", epoch.toString)))
  }

  /** Leaves out the value, then also the original headers, then also the key, until the record fits. */
  private def fitting(record: SinkRecord): SinkRecord = {
    val parts = LazyList[SinkRecord => SinkRecord](withoutValue, withoutHeaders, withoutKey)
    val made = parts.scanLeft(record)((smaller, without) => without(smaller))
    made.find(sizes.tooLarge(_).isEmpty).getOrElse {
      val found = sizes.tooLarge(made.last).get
      throw new OversizedRecordException(
        s"a dead-letter record without key and value takes ${found.bytes} bytes, " +
          s"more than the ${found.limit} of ${found.limitName}")
    }
  }

  private def withoutValue(record: SinkRecord): SinkRecord =
    if (record.value == null) record
    else record.copy(value = null, headers = record.headers :+ header(ValueOmitted, record.value.length.toString))

  private def withoutKey(record: SinkRecord): SinkRecord =
    if (record.key == null) record
    else record.copy(key = null, headers = record.headers :+ header("rejoin.key.omitted", record.key.length.toString))

  private def withoutHeaders(record: SinkRecord): SinkRecord = {
    val (original, own) = record.headers.splitAt(record.headers.lastIndexWhere(_.key == DeadLetter.FirstHeader).max(0))
    if (original.isEmpty) record
    else record.copy(headers = own :+ header("rejoin.headers.omitted", original.size.toString))
  }

  private def refused(record: SinkRecord, found: TooLarge, epoch: Long, counters: Counters): SinkRecord = {
    val message = s"sink ${spec.table}: the result with key ${shown(record.key)} takes ${found.bytes} bytes, " +
      s"more than the ${found.limit} of ${found.limitName}"
    if (spec.onError == OnError.Fail) throw new OversizedRecordException(message)
    counters.unwritten(spec.name, Reason.TooLarge)
    if (spec.onError == OnError.Skip) null
    else {
      val topic = spec.deadLetterTopic.getOrElse(
        throw new IllegalArgumentException(s"sink ${spec.table} has no dead-letter topic"))
      val own = Seq(
        DeadLetter.FirstHeader -> spec.topic,
        "__connect.errors.stage" -> "KAFKA_PRODUCE",
        "__connect.errors.exception.class.name" -> ExceptionClass,
        DeadLetter.MessageHeader -> ErrorText(message),
        DeadLetter.ReasonHeader -> Reason.TooLarge,
        DeadLetter.TableHeader -> spec.table)
      val original = if (record.headers == null) Nil else record.headers
      val headers = original ++ own.map { case (k, v) => header(k, v) }
      fitting(located(record.copy(topic = topic, headers = headers, isDeadLetter = true), epoch))
    }
  }
}

private object SinkAdmission {
  /** The value of a header, which readers may compare: it stays when the class is renamed. */
  final val ExceptionClass = "org.apache.spark.sql.rejoin.OversizedRecordException"
  final val ValueOmitted = "rejoin.value.omitted"
  private final val MostShown = 100

  def size(bytes: Array[Byte]): Int = if (bytes == null) 0 else bytes.length

  def header(name: String, text: String): SinkHeader = SinkHeader(name, text.getBytes(UTF_8))

  def lastText(record: SinkRecord, name: String): Option[String] =
    record.headers.reverseIterator.find(_.key == name).map(h => new String(h.value, UTF_8))

  /** A record key for messages: as text if it is text, else in hex. */
  def shown(key: Array[Byte]): String =
    if (key == null) "none"
    else {
      val text = new String(key, UTF_8)
      val isText = !text.exists(c => c.isControl || c == '\ufffd')
      val all = if (isText) text else HexFormat.of.formatHex(key)
      if (all.length > MostShown) all.take(MostShown) + "..." else all
    }
}
