package org.apache.spark.sql.rejoin.run

import java.util.HexFormat

import scala.collection.mutable

import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import rejoin.core.state.CellCache

/** A cache of cells with a map as the store behind it. */
final class CellCacheRun(bytes: Long, isNew: Boolean) {
  private val cache = new CellCache(bytes, isNew)
  private val hex = HexFormat.of()
  private val store = new mutable.HashMap[(Int, String), String]
  private var writes = 0
  cache.writesTo(new CellCache.Store {
    def begin(count: Int): Boolean = count % 2 == 0
    def add(group: Int, name: Array[Byte], value: Array[Byte]): Unit =
      toStore(group, hex.formatHex(name), hex.formatHex(value))
    def flush(): Unit = ()
  })

  private def toStore(group: Int, name: String, value: String): Unit = {
    store((group, name)) = value
    writes += 1
  }

  /** Puts `[group, name, value]`, names and values in hexadecimal, or removes where the value is null. */
  def write(writesJson: String): Unit = parse(writesJson).children.foreach {
    case JArray(List(JInt(group), JString(name), JString(value))) =>
      if (!cache.put(group.toInt, hex.parseHex(name), hex.parseHex(value))) toStore(group.toInt, name, value)
    case JArray(List(JInt(group), JString(name), _)) =>
      if (cache.remove(group.toInt, hex.parseHex(name))) store -= ((group.toInt, name))
    case other => throw new IllegalArgumentException(s"no write: $other")
  }

  /** `[group, name, value]` of what the store has. */
  def stored(): String = compact(render(JArray(store.toList.map { case ((group, name), value) =>
    JArray(List(JInt(group), JString(name), JString(value)))
  })))

  /** How many cells were written to the store. */
  def written(): Int = writes

  def writeAll(): Unit = cache.writeAll()
  def closeGaps(): Unit = cache.closeGaps()
  def isAhead: Boolean = cache.isAhead

  /** Reads `[group, name]` from a store where they are not kept; `storedJson` has `[group, name, value]` of all its cells. */
  def readThrough(storedJson: String): Unit = parse(storedJson).children.foreach {
    case JArray(List(JInt(group), JString(name), JString(value))) =>
      val bytes = hex.parseHex(name)
      if (cache.get(group.toInt, bytes) == null) cache.putFound(group.toInt, bytes, hex.parseHex(value))
    case other => throw new IllegalArgumentException(s"no cell: $other")
  }

  /** What is kept of each `[group, name]`. */
  def read(cellsJson: String): String = compact(render(JArray(parse(cellsJson).children.map {
    case JArray(List(JInt(group), JString(name))) =>
      Option(cache.get(group.toInt, hex.parseHex(name))).fold[JValue](JNull)(found => JString(hex.formatHex(found)))
    case other => throw new IllegalArgumentException(s"no cell: $other")
  })))

  /** Of which `[group, name]` it does not say that the store has none. */
  def mayLack(cellsJson: String): String = compact(render(JArray(parse(cellsJson).children.filter {
    case JArray(List(JInt(group), JString(name))) => cache.mayLack(group.toInt, hex.parseHex(name))
    case other => throw new IllegalArgumentException(s"no cell: $other")
  })))

  def isComplete: Boolean = cache.isComplete
  def narrow(bytes: Long): Boolean = cache.narrow(bytes)
  def close(): Unit = cache.free()
}
