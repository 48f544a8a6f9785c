package org.apache.spark.sql.rejoin.run

import scala.collection.mutable
import scala.util.Using

import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.rejoin.columns.{Packed, RowJson}
import rejoin.core.results.Overflow
import rejoin.core.row.{Envelope, KeptRow}
import rejoin.core.state.Cell
import rejoin.core.time.GroupState

/** One operator's committed state as JSON for people; nothing can be written through it.
  *
  * Sides are numbered as the operator's inputs are. Rows are arrays of values ([[RowJson]]) of the
  * columns of `OperatorNode.inputs`, keys of [[KeyColumns]].
  */
final class StateReader(stored: StoredOperator, nodeJson: String) {
  import StateReader._

  private val operator = Operator.read(nodeJson)
  private val machine = operator.machine(Overflow.inMemory)
  private val schemas = operator.node.inputs.map(_.schema)
  private val key = KeyColumns.of(parse(nodeJson))
  private val packKey = new RowJson.Packer(key)

  def partitions: Int = stored.partitions

  /** The columns of the join key as Spark's JSON schema. */
  def keySchema: String = key.json

  /** Of a partition: `keys`, `cells`, `bytes` of names and values, and `rows`: of the first input, of the others. */
  def size(partition: Int): String = Using.resource(stored.open(partition)) { open =>
    var keys, cells, bytes = 0L
    val rows = new Array[Long](2)
    open.cells.foreach { case (group, cell, value) =>
      cells += 1
      bytes += cell.length + value.length
      if (Cell.hasTag(cell, machine.keyTag)) keys += 1
      if (cell.sameElements(Cell.Group)) {
        val counted = GroupState.load(open.group(group)).rows
        rows.indices.foreach(side => rows(side) += counted(side))
      }
    }
    text(JObject("keys" -> JInt(keys), "cells" -> JInt(cells), "bytes" -> JInt(bytes), "rows" -> numbers(rows.toSeq)))
  }

  /** Per side, the keys of a partition with the most rows: key, `rows`, and `oldest` and `newest` time where
    * rows have one, in milliseconds.
    */
  def top(partition: Int, limit: Int): String = Using.resource(stored.open(partition)) { open =>
    val best = schemas.map(_ => new Largest(limit))
    open.cells.foreach { case (group, cell, _) =>
      if (Cell.hasTag(cell, machine.keyTag)) {
        val found = Cell.keyOf(cell)
        val rows = machine.look(found, open.group(group)).counts
        rows.indices.foreach(side => if (rows(side) > 0) best(side).add(Large(rows(side), group, found)))
      }
    }
    text(JArray(best.zipWithIndex.map { case (side, number) =>
      JArray(side.descending.map(large => describe(large, number, open)).toList)
    }.toList))
  }

  private def describe(large: Large, side: Int, open: StoredPartition): JValue = {
    val contents = machine.look(large.key, open.group(large.group))
    val times = new Span
    if (contents.hasTimes) contents.foreach(row => if (row.side == side) times.add(row.timeMs))
    JObject(List("key" -> values(large.key, key), "rows" -> JInt(large.rows)) ++ times.json)
  }

  /** What is stored of a key, an array of values: its `group`, `partition`, and per side `rows` and at most
    * `limit` of them as `kept`.
    */
  def get(keyJson: String, limit: Int): String = {
    val packed = packKey(parse(keyJson).asInstanceOf[JArray])
    val group = machine.groupOf(packed, groups)
    val partition = stored.partitionOf(group)
    Using.resource(stored.open(partition)) { open =>
      val contents = machine.look(packed, open.group(group))
      val kept = schemas.map(_ => new mutable.ListBuffer[JValue])
      contents.foreach { row =>
        if (kept(row.side).size < limit) kept(row.side) += json(row, schemas)
      }
      val sides = contents.counts.zip(kept).map { case (rows, shown) =>
        JObject("rows" -> JInt(rows), "kept" -> JArray(shown.toList))
      }
      text(JObject("group" -> JInt(group), "partition" -> JInt(partition), "sides" -> JArray(sides.toList)))
    }
  }

  private def groups: Int = {
    implicit val formats: Formats = DefaultFormats
    ((parse(nodeJson) \ "inputs").children.head \ "groups").extract[Int]
  }

}

private object StateReader {

  /** A key and how many rows it has on one side. */
  final case class Large(rows: Long, group: Int, key: Array[Byte])

  /** The `limit` keys with the most rows of those that were added. */
  final class Largest(limit: Int) {
    private val kept = mutable.PriorityQueue.empty[Large](Ordering.by[Large, Long](_.rows).reverse)

    def add(large: Large): Unit =
      if (kept.size < limit) kept += large
      else if (large.rows > kept.head.rows) {
        kept.dequeue()
        kept += large
      }

    def descending: Seq[Large] = kept.toSeq.sortBy(-_.rows)
  }

  /** The first and the last of the times that were added. */
  final class Span {
    private var oldest = Long.MaxValue
    private var newest = Long.MinValue

    def add(timeMs: Long): Unit = if (timeMs != Envelope.NoTime) {
      oldest = math.min(oldest, timeMs)
      newest = math.max(newest, timeMs)
    }

    def json: List[(String, JValue)] =
      if (oldest > newest) Nil else List("oldest" -> JInt(oldest), "newest" -> JInt(newest))
  }

  def values(packed: Array[Byte], schema: StructType): JArray = RowJson.write(Packed.view(packed, schema.size), schema)

  /** A row of an operator whose sides have these columns. */
  def json(kept: KeptRow, schemas: Seq[StructType]): JValue = {
    val row = if (kept.row == null) JNull else values(kept.row, schemas(kept.side))
    val time = if (kept.timeMs == Envelope.NoTime) Nil else List("time" -> JInt(kept.timeMs))
    JObject(List("row" -> row) ++ time ++ kept.facts.map { case (name, value) => name -> fact(value, schemas) })
  }

  private def fact(value: Any, schemas: Seq[StructType]): JValue = value match {
    case b: Boolean => JBool(b)
    case n: Long => JInt(n)
    case rows: Seq[_] => JArray(rows.collect { case kept: KeptRow => values(kept.row, schemas(kept.side)) }.toList)
    case other => JString(other.toString)
  }

  def numbers(values: Seq[Long]): JArray = JArray(values.map(JInt(_)).toList)

  def text(value: JValue): String = compact(render(value))
}
