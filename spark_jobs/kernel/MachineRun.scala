package org.apache.spark.sql.rejoin

import scala.collection.mutable.ArrayBuffer

import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{LongType, StructType, TimestampNTZType}

/** One state machine over state in memory, driven by events: what the oracle and the operator cases test.
  *
  * Events are `["left"|"right"|"input", "+I", [values]]`, `["watermark_left"|"watermark_right", ms]`
  * and `["clock", ms]`. All rows go to one key group; each input is one partition. The node is the
  * planner's JSON, with `leftKey`/`rightKey` (ordinals of the join key) and, for temporal joins,
  * `leftTime`/`rightTime` (ordinals of the row time) besides.
  */
final class MachineRun(nodeJson: String) {
  private implicit val formats: Formats = DefaultFormats
  private val node = parse(nodeJson)
  private val isJoin = (node \ "kind").extract[String] != "normalize"
  private val operator = Operator.read(nodeJson)
  private val inputs =
    if (isJoin) Vector(input("left", "leftKey", "leftTime"), input("right", "rightKey", "rightTime"))
    else Vector(new MachineInput(OperatorSpec.schema(node \ "schema"), (node \ "key").extract[Seq[Int]], None))
  private val output = new JoinedBytes(inputs(0).schema.size, if (isJoin) inputs(1).schema.size else 0)
  private val outputSchema = StructType(inputs.flatMap(_.schema.fields))
  private var state = new MemoryState
  private var machine = operator.machine()
  private var seq = 0L
  private var isFirst = true

  private def input(side: String, key: String, time: String): MachineInput =
    new MachineInput(
      OperatorSpec.schema(node \ side \ "schema"),
      (node \ key).extract[Seq[Int]],
      (node \ time).extractOpt[Int])

  /** Runs batches of events; gives per batch the rows `[kind, values...]` that it emitted. */
  def run(batchesJson: String): String =
    compact(render(JArray(parse(batchesJson).children.map(batch => JArray(runBatch(batch.children))))))

  private def runBatch(events: List[JValue]): List[JValue] = {
    val batch = new GroupBatch
    if (isFirst && isJoin) Clock.marks(ClockOffset(0, Map(0 -> 1, 1 -> 1), ended = false), 1).foreach(batch.add)
    isFirst = false
    events.foreach(event => batch.add(envelope(event)))
    val emitted = new ArrayBuffer[JValue]
    Machine.run(machine, batch, state, (kind, _, left, right) => emitted += row(kind, left, right))
    emitted.toList
  }

  private def envelope(event: JValue): Envelope = {
    seq += 1
    event match {
      case JArray(List(JString("watermark_left"), JInt(ms))) => mark(RowKind.Watermark, ms.toLong, 0)
      case JArray(List(JString("watermark_right"), JInt(ms))) => mark(RowKind.Watermark, ms.toLong, 1 << 16)
      case JArray(List(JString("clock"), JInt(ms))) => mark(RowKind.Clock, ms.toLong, 0).copy(seq = 1)
      case JArray(List(JString(side), JString(kind), values: JArray)) =>
        val index = if (side == "right") 1 else 0
        inputs(index).envelope(index, RowKind.parse(kind), seq, values)
      case other => throw new IllegalArgumentException(s"no event: ${other}")
    }
  }

  private def mark(kind: Byte, time: Long, source: Int): Envelope =
    Envelope(0, 0, kind, time, source, seq, Array.emptyByteArray, Array.emptyByteArray)

  private def row(kind: Byte, left: Array[Byte], right: Array[Byte]): JValue =
    JArray(JString(RowKind.name(kind)) :: RowJson.write(output(left, right), outputSchema).arr)

  /** Goes on with a new machine on the state as it is stored. */
  def restart(): Unit = {
    state = state.snapshot()
    machine = operator.machine()
  }

  /** Rows that the machine says it stores, by side. */
  def stateRows(): String = GroupState.load(state).rows.mkString("[", ",", "]")

  /** Cells in the state, the group's own among them. */
  def stateCells(): Int = state.size
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
    Envelope(0, side.toByte, kind, time.fold(0L)(timeOf), side << 16, seq, Packed(packKey(view)), row)
  }

  private def timeOf(ordinal: Int): Long =
    if (view.isNullAt(ordinal)) Long.MinValue
    else
      schema(ordinal).dataType match {
        case LongType => view.getLong(ordinal)
        case TimestampNTZType => Math.floorDiv(view.getLong(ordinal), 1000L)
        case other => throw new IllegalArgumentException(s"${other.sql} is no time")
      }
}
