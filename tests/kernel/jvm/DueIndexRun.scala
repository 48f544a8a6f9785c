package org.apache.spark.sql.rejoin.run

import java.nio.charset.StandardCharsets.UTF_8
import java.util.HexFormat

import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import rejoin.core.state.{Cell, MemoryState, StateCell}
import rejoin.core.time.DueIndex

/** A due index alone over state in memory; its lists are the cell 'Q', its own cells begin with 'F'. */
final class DueIndexRun {
  private val state = new MemoryState
  private val hex = HexFormat.of()

  /** Runs batches `[last, [[slot, key], ...]]`: takes the slots up to `last` (null: none), then registers keys.
    *
    * Per batch `[keys taken, cells read, cells written, bytes read, bytes written]`.
    */
  def run(batchesJson: String): String =
    compact(render(JArray(parse(batchesJson).children.map { case JArray(List(last, keys)) =>
      runBatch(last, keys.children)
    case other => throw new IllegalArgumentException(s"no batch: $other")
    })))

  private def runBatch(last: JValue, keys: List[JValue]): JValue = {
    val before = traffic
    val cell = new StateCell('Q', DueIndex.PagedVersion)
    val index = new DueIndex('F')
    Option(cell.open(Cell.NoKey, state)).foreach(index.read(_, cell.version))
    val taken = last match {
      case JInt(slot) => index.take(slot.toLong, state).map(key => JString(new String(key, UTF_8))).toList
      case _ => Nil
    }
    keys.foreach {
      case JArray(List(JInt(slot), JString(key))) => index.register(slot.toLong, key.getBytes(UTF_8))
      case other => throw new IllegalArgumentException(s"no key: $other")
    }
    index.flush(state)
    val version = DueIndex.versionOf(index)
    index.write(cell.write(version), version)
    cell.save(state, isEmpty = index.isEmpty)
    JArray(JArray(taken) :: traffic.zip(before).map { case (now, then) => JInt(now - then) })
  }

  private def traffic: List[Long] = List(state.cellsRead, state.cellsWritten, state.bytesRead, state.bytesWritten)

  /** Stores a cell as another release wrote it. */
  def put(cell: String, value: String): Unit = state.put(hex.parseHex(cell), hex.parseHex(value))

  /** Names and values of all cells. */
  def cells(): String =
    compact(render(JObject(state.all.map { case (cell, value) =>
      hex.formatHex(cell) -> JString(hex.formatHex(value))
    }.toList)))
}
