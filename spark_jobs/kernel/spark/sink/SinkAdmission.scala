package org.apache.spark.sql.rejoin.sink

import java.nio.charset.StandardCharsets.UTF_8
import java.util.HexFormat

import org.apache.spark.sql.rejoin.ingest.{DeadLetter, ErrorText, Reason}
import org.apache.spark.sql.rejoin.run.Counters
import rejoin.core.row.OnError

/** A result that is too large for its topic, under `rejoin.on-error` = `fail`. */
final class OversizedRecordException(message: String) extends RuntimeException(message)

/** The last look at a record before it is sent: completes dead letters, and makes each record fit.
  *
  * A dead letter always arrives: what is too large of it stays out, and headers say so. A result
  * that is too large follows its table's policy. One instance serves one producer.
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
    else if (DeadLetter.is(record)) fitting(located(record, epoch))
    else
      sizes.tooLarge(record) match {
        case None => record
        case Some(found) => refused(record, found, epoch, counters)
      }
  }

  /** Which query and epoch wrote it; `hash` becomes its source partition, whose order it keeps. */
  private def located(letter: SinkRecord, epoch: Long): SinkRecord = {
    val partition = lastText(letter, DeadLetter.PartitionHeader)
    letter.copy(
      hash = partition.fold(letter.hash)(_.toInt),
      headers = letter.headers ++ Seq(
        header("__connect.errors.connector.name", spec.name),
        header("__connect.errors.task.id", writer),
        header("rejoin.query", spec.name),
        header("rejoin.epoch", epoch.toString)))
  }

  /** Without its value, then without its original headers, then without its key. */
  private def fitting(letter: SinkRecord): SinkRecord = {
    val stages = LazyList[SinkRecord => SinkRecord](
      identity, withoutValue, letter => withoutHeaders(withoutValue(letter)),
      letter => withoutKey(withoutHeaders(withoutValue(letter))))
    val made = stages.map(_(letter))
    made.find(sizes.tooLarge(_).isEmpty).getOrElse {
      val found = sizes.tooLarge(made.last).get
      throw new OversizedRecordException(
        s"a dead letter without key and value takes ${found.bytes} bytes, " +
          s"more than the ${found.limit} of ${found.whose}")
    }
  }

  private def withoutValue(letter: SinkRecord): SinkRecord =
    if (letter.value == null) letter
    else letter.copy(value = null, headers = letter.headers :+ header(ValueOmitted, letter.value.length.toString))

  private def withoutKey(letter: SinkRecord): SinkRecord =
    if (letter.key == null) letter
    else letter.copy(key = null, headers = letter.headers :+ header("rejoin.key.omitted", letter.key.length.toString))

  private def withoutHeaders(letter: SinkRecord): SinkRecord = {
    val (original, own) = letter.headers.splitAt(letter.headers.lastIndexWhere(_.key == DeadLetter.FirstHeader).max(0))
    if (original.isEmpty) letter
    else letter.copy(headers = own :+ header("rejoin.headers.omitted", original.size.toString))
  }

  private def refused(record: SinkRecord, found: TooLarge, epoch: Long, counters: Counters): SinkRecord = {
    val told = s"sink ${spec.table}: the result with key ${shown(record.key)} takes ${found.bytes} bytes, " +
      s"more than the ${found.limit} of ${found.whose}"
    if (spec.onError == OnError.Fail) throw new OversizedRecordException(told)
    counters.unwritten(spec.name, Reason.TooLarge)
    if (spec.onError == OnError.Skip) null
    else {
      val topic = spec.deadLetterTopic.getOrElse(
        throw new IllegalArgumentException(s"sink ${spec.table} has no dead-letter topic"))
      val own = Seq(
        DeadLetter.FirstHeader -> spec.topic,
        "__connect.errors.stage" -> "KAFKA_PRODUCE",
        "__connect.errors.exception.class.name" -> ExceptionClass,
        DeadLetter.MessageHeader -> ErrorText(told),
        DeadLetter.ReasonHeader -> Reason.TooLarge,
        DeadLetter.TableHeader -> spec.table)
      val original = if (record.headers == null) Nil else record.headers
      val letter = record.copy(topic = topic, headers = original ++ own.map { case (k, v) => header(k, v) })
      fitting(located(letter, epoch))
    }
  }
}

private object SinkAdmission {
  /** Part of the dead-letter record's form, wherever the class itself may stand. */
  final val ExceptionClass = "org.apache.spark.sql.rejoin.OversizedRecordException"
  final val ValueOmitted = "rejoin.value.omitted"
  private final val MostShown = 100

  def size(bytes: Array[Byte]): Int = if (bytes == null) 0 else bytes.length

  def header(name: String, text: String): SinkHeader = SinkHeader(name, text.getBytes(UTF_8))

  def lastText(letter: SinkRecord, name: String): Option[String] =
    letter.headers.reverseIterator.find(_.key == name).map(h => new String(h.value, UTF_8))

  /** Text where it is text, else hex; for people. */
  def shown(key: Array[Byte]): String =
    if (key == null) "none"
    else {
      val text = new String(key, UTF_8)
      val isText = !text.exists(c => c.isControl || c == '\ufffd')
      val all = if (isText) text else HexFormat.of.formatHex(key)
      if (all.length > MostShown) all.take(MostShown) + "..." else all
    }
}
