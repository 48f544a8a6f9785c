package org.apache.spark.sql.rejoin

import java.nio.charset.StandardCharsets
import java.util.Base64

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.unsafe.types.UTF8String

/** A physical plan in memory: the same ingest, machines and encoders as in Spark, one micro-batch per step.
  *
  * For tests that need exact rows in milliseconds; state is [[MemoryState]] per operator and key group.
  */
final class LocalRun(planJson: String) {
  private implicit val formats: Formats = DefaultFormats
  private val root = parse(planJson)
  private def input(node: JValue): JValue = node \ "input"
  private val scans = new mutable.LinkedHashMap[JValue, LocalScan]
  private val operators = new mutable.LinkedHashMap[JValue, LocalOperator]
  private val partitions = new mutable.HashMap[Int, Int]
  private val project = if ((root \ "kind").extract[String] == "kafka-sink") input(root) else root
  private val emitter = new Emitter(EmitSpec.read(root))
  private var clockMs = 0L
  private var clockMoved = true
  private var ended = false

  /** Queues records of a table: `[{"partition","offset","timestamp","key","value","headers"}]`, bytes in base64. */
  def feed(table: String, recordsJson: String): Unit = {
    val records = parse(recordsJson).children.map(LocalRecord.read)
    planned(root)
    scans.values.filter(_.spec.table == table).foreach { scan =>
      scan.queue ++= records
      for ((_, topic) <- scan.spec.topics; record <- records)
        partitions(topic) = math.max(partitions.getOrElse(topic, 1), record.partition + 1)
    }
  }

  /** Moves processing time. */
  def advance(clockMs: Long): Unit = {
    this.clockMs = math.max(this.clockMs, clockMs)
    clockMoved = true
  }

  /** Runs one micro-batch over what was fed; gives `{"rows","records","rejects"}`. */
  def step(): String = {
    planned(root)
    val output = new LocalOutput(emitter)
    changes(input(project)).foreach(output.add)
    clockMoved = false
    output.json
  }

  /** Runs the last micro-batch of a bounded run, in which the clock delivers the end mark. */
  def end(): String = {
    ended = true
    clockMoved = true
    step()
  }

  /** Goes on with new machines on the state as it is stored. */
  def restart(): Unit = operators.values.foreach(_.restart())

  /** Stored rows per operator, `[left, right]`. */
  def counters(): String =
    compact(render(JArray(operators.values.toList.map(op => JArray(op.rows.toList.map(JInt(_)))))))

  /** Builds scans and operators once, the scans first so that they can be fed. */
  private def planned(node: JValue): Unit = {
    (node \ "kind").extractOpt[String] match {
      case Some("kafka-scan") =>
        val isOnly = node == input(project)
        scans.getOrElseUpdate(node, new LocalScan(IngestSpec.read(node).copy(chunked = !isOnly)))
      case Some("normalize" | "regular-join" | "temporal-join") =>
        operators.getOrElseUpdate(node, new LocalOperator(compact(render(node))))
      case _ => ()
    }
    (input(node) :: inputs(node)).foreach(below => if (below != JNothing) planned(below))
  }

  private def inputs(node: JValue): List[JValue] = (node \ "inputs").children

  private def changes(node: JValue): Seq[Changelog] = (node \ "kind").extract[String] match {
    case "kafka-scan" =>
      scans(node).take().filter(e => e.kind <= RowKind.Delete || e.kind == RowKind.Reject).map { e =>
        Changelog(e.kind, KeyGroup.hash(e.key), e.row, null)
      }
    case "normalize" => operators(node).run(envelopes(input(node)))
    case "regular-join" => operators(node).run(inputs(node).flatMap(envelopes))
    case "temporal-join" => operators(node).run(inputs(node).flatMap(envelopes) ++ clock())
  }

  private def envelopes(node: JValue): Seq[Envelope] = (node \ "kind").extract[String] match {
    case "kafka-scan" => scans(node).take()
    case "rekey" =>
      val rekeyer = new Rekeyer(RekeySpec.read(compact(render(node))))
      changes(input(node)).flatMap(rekeyer(_))
  }

  private def clock(): Seq[Envelope] = {
    val known = scans.values.flatMap(_.spec.topics.values).map(topic => topic -> partitions.getOrElse(topic, 1)).toMap
    val groups = scans.values.map(_.spec.groups).max
    if (clockMoved) Clock.marks(ClockOffset(clockMs, known, ended), groups).toSeq else Nil
  }
}

private final class LocalRecord(
    val partition: Int,
    offset: Long,
    timestampMs: Long,
    key: Array[Byte],
    value: Array[Byte],
    headers: Seq[(String, Array[Byte])]) {
  def into(record: SourceRecord): Unit = {
    record.partition = partition
    record.offset = offset
    record.timestampMs = timestampMs
    record.key = key
    record.value = value
    record.headers = new GenericArrayData(headers.map { case (name, value) =>
      new GenericInternalRow(Array[Any](UTF8String.fromString(name), value))
    }.toArray[Any])
  }
}

private object LocalRecord {
  private implicit val formats: Formats = DefaultFormats

  def read(node: JValue): LocalRecord =
    new LocalRecord(
      (node \ "partition").extract[Int],
      (node \ "offset").extract[Long],
      (node \ "timestamp").extract[Long],
      bytes(node \ "key"),
      bytes(node \ "value"),
      (node \ "headers").children.map(h => (h \ "key").extract[String] -> bytes(h \ "value")))

  private def bytes(node: JValue): Array[Byte] = node match {
    case JString(text) => Base64.getDecoder.decode(text)
    case _ => null
  }
}

/** One operator's machine and its state, by key group. */
private final class LocalOperator(nodeJson: String) {
  private val operator = Operator.read(nodeJson)
  private val states = new mutable.TreeMap[Int, MemoryState]
  private var machine = operator.machine()

  def run(envelopes: Seq[Envelope]): Seq[Changelog] = {
    val results = new ArrayBuffer[Changelog]
    envelopes.groupBy(_.group).toSeq.sortBy(_._1).foreach { case (group, rows) =>
      val batch = new GroupBatch
      rows.foreach(batch.add)
      val state = states.getOrElseUpdate(group, new MemoryState)
      Machine.run(machine, batch, state, (kind, hash, left, right) => results += Changelog(kind, hash, left, right))
    }
    results.toSeq
  }

  def restart(): Unit = {
    states.mapValuesInPlace((_, state) => state.snapshot())
    machine = operator.machine()
  }

  def rows: Array[Long] = {
    val groups = states.values.map(GroupState.load(_).rows)
    Array(groups.map(_(0)).sum, groups.map(_(1)).sum)
  }
}

/** One table's queue of records and its ingest. */
private final class LocalScan(val spec: IngestSpec) {
  val queue = new ArrayBuffer[LocalRecord]

  /** What the queued records become, marks included: the work of one task. */
  def take(): Seq[Envelope] = {
    val runner = new IngestRunner(spec, new Counters)
    val record = new SourceRecord
    record.topic = UTF8String.fromString(spec.topics.keys.min)
    val rows = queue.iterator.flatMap { given =>
      given.into(record)
      runner.add(record)
    } ++ runner.finish()
    val envelopes = rows.map(LocalScan.envelope).toVector
    queue.clear()
    envelopes
  }
}

private object LocalScan {
  private def envelope(row: InternalRow): Envelope =
    Envelope(
      row.getInt(0),
      row.getByte(1),
      row.getByte(2),
      row.getLong(3),
      row.getInt(4),
      row.getLong(5),
      row.getBinary(6),
      row.getBinary(7))
}

/** What one step gives out: result rows, encoded records, and dead letters with their reasons. */
private final class LocalOutput(emitter: Emitter) {
  private val rows = new ArrayBuffer[JValue]
  private val records = new ArrayBuffer[JValue]
  private val rejects = new ArrayBuffer[JValue]

  def add(change: Changelog): Unit =
    if (change.kind == RowKind.Reject) rejects += LocalOutput.reject(DeadLetter.unpack(change.left))
    else {
      val values = RowJson.write(emitter.values(change), emitter.spec.schema).arr
      rows += JArray(JString(RowKind.name(change.kind)) :: values)
      if (emitter.spec.sink.isDefined) records += LocalOutput.record(emitter.record(change))
    }

  def json: String =
    compact(
      render(
        JObject(
          "rows" -> JArray(rows.toList),
          "records" -> JArray(records.toList),
          "rejects" -> JArray(rejects.toList))))
}

private object LocalOutput {
  private def record(record: InternalRow): JValue =
    JObject(
      "topic" -> JString(record.getUTF8String(0).toString),
      "key" -> bytes(record.getBinary(1)),
      "value" -> bytes(record.getBinary(2)))

  private def reject(deadLetter: InternalRow): JValue = {
    val headers = deadLetter.getArray(4)
    val byName = (0 until headers.numElements()).map { i =>
      val header = headers.getStruct(i, 2)
      header.getUTF8String(0).toString -> header.getBinary(1)
    }.toMap
    JObject(
      "topic" -> JString(deadLetter.getUTF8String(0).toString),
      "reason" -> JString(new String(byName("rejoin.reason"), StandardCharsets.UTF_8)),
      "key" -> bytes(deadLetter.getBinary(1)),
      "value" -> bytes(deadLetter.getBinary(2)))
  }

  private def bytes(value: Array[Byte]): JValue =
    if (value == null) JNull else JString(Base64.getEncoder.encodeToString(value))
}
