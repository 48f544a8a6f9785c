package org.apache.spark.sql.rejoin.run

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.collection.mutable.ArrayBuffer

import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{LongType, StructType, TimestampNTZType}

import org.apache.spark.sql.rejoin.columns.{JoinedBytes, Packed, RowJson}
import org.apache.spark.sql.rejoin.format.SqlTypes
import org.apache.spark.sql.rejoin.ingest.{DeadLetter, Reason}
import rejoin.core.machine.{LiveGroup, Machine}
import rejoin.core.results.{Overflow, Results}
import rejoin.core.row.{Changelog, Envelope, GroupBatch, Mark, OnError, Output, PartialRow, RowKind, SourcePosition,
  Unhealed}
import rejoin.core.state.{BatchCells, MemoryState}
import rejoin.core.time.GroupState

/** One state machine over state in memory, driven by events: what the oracle and the operator cases test.
  *
  * Events, one JSON array each:
  * {{{
  * [input, "+I", [values]]        a row; input is "left", "right", or a number from 0
  * [input, "+I", [values], ms]    the same, with its time, where no column of it holds that
  * [input, "+U", [values], {..}]  a row of which more is to be said, each of it if need be: `missing`
  *                                (ordinals that it lacks: a partial row), `position` ([log, ms] or [log, within, ms]),
  *                                `partition`, `half` (the row before is of the same record)
  * ["truncate", input, {..}]      the table is emptied; `position`, `partition` as above
  * ["watermark", input, ms]       from the input's only partition
  * ["loaded", input]              its initial content is complete
  * ["idle", input]                the operator that feeds the input waits for nothing
  * ["clock", ms]
  * ["resumed", ms, isStart]       nothing was read until then; in front of a "clock" of real-time mode
  * ["end"]
  * }}}
  * All rows go to one key group; input i is topic i with one partition. The node is the planner's
  * JSON and, besides, `rows`: per input its `schema`, the ordinals of its `key`, and of its row `time`
  * where it has one.
  *
  * @param maxBytes
  *   of rows that each part of the machine may keep in memory
  */
final class MachineRun(nodeJson: String, maxBytes: Long) {
  private implicit val formats: Formats = DefaultFormats
  private val node = parse(nodeJson)
  private val operator = Operator.read(nodeJson)
  private val inputs = (node \ "rows").children.map { input =>
    new MachineInput(
      OperatorNode.schema(input \ "schema"),
      (input \ "key").extract[Seq[Int]],
      OperatorNode.present(input \ "time").map(_.extract[Int]))
  }.toVector
  private val (left, right) = operator.node.emitted
  private val output = new JoinedBytes(left.size, right.size)
  private val outputSchema = StructType(left.fields ++ right.fields)
  private val files = new ArrayBuffer[File]
  private val overflow = new Overflow(maxBytes, () => {
    files += Files.createTempFile("rejoin-overflow", null).toFile
    files.last
  })
  private var state = new MemoryState
  private var machine = operator.machine(overflow)
  private var seq = 0L
  private var isFirst = true
  private var isByKey = false // in every other batch: the results have to be the same
  private var clockMs = Long.MinValue

  /** Runs batches of events; gives per batch the rows `[kind, values...]` that it emitted.
    *
    * A watermark that the operator passes on is `["watermark", ms]`, the word that its inputs are
    * loaded `["loaded"]` or idle `["idle"]`, a record that it sets aside `["reject", topic, reason, value]`.
    */
  def run(batchesJson: String): String =
    compact(render(JArray(parse(batchesJson).children.map(batch => JArray(runBatch(batch.children))))))

  private def runBatch(events: List[JValue]): List[JValue] = {
    val batch = new GroupBatch(Option.when(isByKey)(_ => ()))
    isByKey = !isByKey
    if (isFirst) clockMarks.foreach(batch.add)
    isFirst = false
    events.foreach(event => batch.add(envelope(event)))
    val results = new Results(overflow)
    val out: Output = (kind, hash, left, right) => results.add(Changelog(kind, hash, left, right))
    val cells = new BatchCells(state)
    Machine.run(machine, operator.spec.timing, 0, batch, cells, out)
    cells.store()
    results.iterator.map(change => row(change.kind, change.left, change.right)).toList
  }

  /** Runs each batch as an epoch of real-time mode, in which its events come one by one.
    *
    * @param hearsEnd
    *   as [[LiveGroup]] has it
    * @param after
    *   how many events of an epoch come after the first of its two tasks has ended
    */
  def runLive(batchesJson: String, hearsEnd: Boolean, after: Int): String =
    compact(render(JArray(parse(batchesJson).children.map(batch => JArray(runEpoch(batch.children, hearsEnd, after))))))

  private def runEpoch(events: List[JValue], hearsEnd: Boolean, after: Int): List[JValue] = {
    val group = new LiveGroup(machine, operator.spec.timing, 0, state, hearsEnd)
    val emitted = new ArrayBuffer[JValue]
    val out: Output = (kind, _, left, right) => emitted += row(kind, left, right)
    def add(envelope: Envelope): Unit = group.add(envelope, _ => out, _ => ())
    clockMarks.foreach(add)
    val (before, rest) = events.splitAt(events.size - after)
    for (ofTask <- Seq(before, rest)) {
      ofTask.foreach(event => add(envelope(event)))
      add(Envelope.epochEnd(0, 0))
    }
    emitted.toList
  }

  private def clockMarks: Iterator[Envelope] = {
    val known = ClockOffset(clockMs, inputs.indices.map(_ -> 1).toMap, ended = false)
    Clock.marks(known.copy(partitions = Map.empty), known, 1, Map.empty)
  }

  private def envelope(event: JValue): Envelope = {
    val isHalf = event match {
      case JArray(List(_, _, _, details: JObject)) => (details \ "half").extractOpt[Boolean].contains(true)
      case _ => false
    }
    if (!isHalf) seq += 1
    event match {
      case JArray(List(JString("watermark"), input, JInt(ms))) => Envelope.watermark(0, 0, source(input), ms.toLong)
      case JArray(List(JString("watermark"), input, JInt(ms), JInt(partition))) =>
        Envelope.watermark(0, 0, Envelope.source(number(input), partition.toInt), ms.toLong)
      case JArray(List(JString("loaded"), input)) => Envelope.loaded(0, 0, source(input))
      case JArray(List(JString("idle"), input)) =>
        Mark.envelope(Changelog(RowKind.Idle, source(input), new Array[Byte](8), null), 0, 0)
      case JArray(List(JString("clock"), JInt(ms))) =>
        clockMs = math.max(clockMs, ms.toLong)
        Envelope.clock(0, 0, 1, ms.toLong)
      case JArray(List(JString("resumed"), JInt(ms), JBool(isStart))) => Envelope.resumed(0, ms.toLong, isStart)
      case JArray(List(JString("end"))) => Envelope.end(0)
      case JArray(List(JString("truncate"), input, details: JObject)) =>
        positioned(Envelope.truncate(0, 0, source(input), seq, Array.emptyByteArray), number(input), details)
      case JArray(List(input, JString(kind), values: JArray, details: JObject)) =>
        val row = inputs(number(input)).envelope(number(input), RowKind.parse(kind), seq, values)
        lacking(positioned(row, number(input), details), values, details)
      case JArray(List(input, JString(kind), values: JArray)) =>
        inputs(number(input)).envelope(number(input), RowKind.parse(kind), seq, values)
      case JArray(List(input, JString(kind), values: JArray, JInt(ms))) =>
        inputs(number(input)).envelope(number(input), RowKind.parse(kind), seq, values).copy(time = ms.toLong)
      case other => throw new IllegalArgumentException(s"no event: ${other}")
    }
  }

  private def positioned(envelope: Envelope, input: Int, details: JObject): Envelope = {
    val partition = (details \ "partition").extractOpt[Int].getOrElse(0)
    val row = OperatorNode.present(details \ "position").map(_.extract[Seq[Long]]) match {
      case Some(Seq(log, ms)) => position(log, Envelope.NoTime, ms).append(envelope.row)
      case Some(Seq(log, within, ms)) => position(log, within, ms).append(envelope.row)
      case _ => envelope.row
    }
    envelope.copy(source = Envelope.source(input, partition), row = row)
  }

  private def position(log: Long, within: Long, ms: Long): SourcePosition = {
    val found = new SourcePosition
    found.set(log, within, ms)
    found
  }

  private def lacking(envelope: Envelope, values: JArray, details: JObject): Envelope =
    OperatorNode.present(details \ "missing").map(_.extract[Seq[Int]]) match {
      case None => envelope
      case Some(missing) =>
        val ordinals = new java.util.BitSet
        missing.foreach(ordinals.set)
        val headers = Seq("rejoin.reason" -> Reason.Unavailable)
        val letter = DeadLetter.pack("rejects", compact(render(values)).getBytes(UTF_8), None, headers)
        val partial = new PartialRow(envelope.row, ordinals, new Unhealed("t", OnError.DeadLetter, letter))
        envelope.copy(kind = RowKind.Partial, row = PartialRow.pack(partial))
    }

  private def number(input: JValue): Int = input match {
    case JInt(n) => n.toInt
    case JString("left") => 0
    case JString("right") => 1
    case other => throw new IllegalArgumentException(s"no input: $other")
  }

  private def source(input: JValue): Int = Envelope.source(number(input), 0)

  private def row(kind: Byte, left: Array[Byte], right: Array[Byte]): JValue =
    if (kind == RowKind.Watermark) JArray(List(JString("watermark"), JInt(Mark.timeOf(left))))
    else if (kind == RowKind.Loaded) JArray(List(JString("loaded")))
    else if (kind == RowKind.Idle) JArray(List(JString("idle")))
    else if (kind == RowKind.Reject) MachineRun.reject(DeadLetter.unpack(left))
    else JArray(JString(RowKind.name(kind)) :: RowJson.write(output(left, right), outputSchema).arr)

  /** Goes on with a new machine on the state as it is stored. */
  def restart(): Unit = {
    state = state.snapshot()
    machine = operator.machine(overflow)
  }

  /** Rows that the machine says it stores, by side. */
  def stateRows(): String = GroupState.load(state).rows.mkString("[", ",", "]")

  /** What is stored of a key, as the state reader shows it. */
  def kept(keyJson: String): String = {
    val packKey = new RowJson.Packer(OperatorNode.schema(node \ "key"))
    val found = new ArrayBuffer[JValue]
    machine.look(packKey(parse(keyJson).asInstanceOf[JArray]), state).foreach { row =>
      found += StateReader.json(row, operator.node.inputs.map(_.schema))
    }
    compact(render(JArray(found.toList)))
  }

  /** Rows that the machine says it dropped because they came late. */
  def lateRows(): Long = GroupState.load(state).lateRows

  /** Retractions of rows that the machine says it did not know. */
  def unknownRetractions(): Long = GroupState.load(state).unknownRetractions

  /** Files that rows have waited in, and those of them that are still there. */
  def overflowFiles(): String = s"[${files.size},${files.count(_.exists)}]"

  /** Cells in the state, the group's own among them. */
  def stateCells(): Int = state.size

  /** Bytes of the state, names of cells included. */
  def stateBytes(): Long = state.bytes

  /** Cells read, cells written, bytes read, bytes written since the start or restart. */
  def stateTraffic(): String =
    s"[${state.cellsRead},${state.cellsWritten},${state.bytesRead},${state.bytesWritten}]"
}

private object MachineRun {
  def reject(letter: UnsafeRow): JValue = {
    val headers = letter.getArray(4)
    val reason = (0 until headers.numElements()).map(headers.getStruct(_, 2)).collectFirst {
      case header if header.getUTF8String(0).toString == "rejoin.reason" => new String(header.getBinary(1), UTF_8)
    }
    val value = new String(letter.getBinary(2), UTF_8)
    JArray(List("reject", letter.getUTF8String(0).toString, reason.getOrElse(""), value).map(JString(_)))
  }
}

/** One input of a [[MachineRun]]: packs values, key and time out of a JSON row. */
private final class MachineInput(val schema: StructType, key: Seq[Int], time: Option[Int]) {
  private val pack = new RowJson.Packer(schema)
  private val packKey =
    UnsafeProjection.create(key.map(i => BoundReference(i, schema(i).dataType, nullable = true)))
  private val view = new UnsafeRow(schema.size)

  def envelope(side: Int, kind: Byte, seq: Long, values: JArray): Envelope = {
    val row = pack(values)
    view.pointTo(row, row.length)
    val source = Envelope.source(side, 0)
    Envelope(0, side.toByte, kind, time.fold(Envelope.NoTime)(timeOf), source, seq, Packed(packKey(view)), row)
  }

  private def timeOf(ordinal: Int): Long =
    if (view.isNullAt(ordinal)) Envelope.NoTime
    else
      schema(ordinal).dataType match {
        case LongType => view.getLong(ordinal)
        case TimestampNTZType => Math.floorDiv(view.getLong(ordinal), 1000L)
        case other => throw new IllegalArgumentException(s"${SqlTypes.text(other)} is no time")
      }
}
