package org.apache.spark.sql.rejoin.run

import java.util.HexFormat

import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import rejoin.core.state.{BatchCells, KeyedState, MemoryState}

/** The cells of batches over a store that notes what it is asked to write; `mostBytes` as [[BatchCells]] has it. */
final class BatchCellsRun(mostBytes: Long) {
  private val hex = HexFormat.of()
  private val memory = new MemoryState
  private var writes = List.empty[JValue]

  private object store extends KeyedState {
    def get(cell: Array[Byte]): Array[Byte] = memory.get(cell)
    def put(cell: Array[Byte], value: Array[Byte]): Unit = {
      writes ::= JArray(List(JString(hex.formatHex(cell)), JString(hex.formatHex(value))))
      memory.put(cell, value)
    }
    def remove(cell: Array[Byte]): Unit = {
      writes ::= JArray(List(JString(hex.formatHex(cell)), JNull))
      memory.remove(cell)
    }
    def names(tag: Char): Seq[Array[Byte]] = memory.names(tag)
  }

  /** Runs a batch of `["get", name]`, `["put", name, value]`, `["remove", name]` and `["names", tag]`, names and values in
    * hexadecimal; gives what the gets and names found, and what was written.
    */
  def run(batchJson: String): String = {
    writes = Nil
    val cells = new BatchCells(store, mostBytes = mostBytes)
    val found = parse(batchJson).children.flatMap {
      case JArray(List(JString("get"), JString(name))) =>
        val value = cells.get(hex.parseHex(name))
        Some(if (value == null) JNull else JString(hex.formatHex(value)))
      case JArray(List(JString("put"), JString(name), JString(value))) =>
        cells.put(hex.parseHex(name), hex.parseHex(value))
        None
      case JArray(List(JString("remove"), JString(name))) =>
        cells.remove(hex.parseHex(name))
        None
      case JArray(List(JString("names"), JString(tag))) =>
        Some(JArray(cells.names(tag.head).map(name => JString(hex.formatHex(name))).toList))
      case other => throw new IllegalArgumentException(s"no step: $other")
    }
    cells.store()
    compact(render(JArray(List(JArray(found), JArray(writes.reverse)))))
  }
}
