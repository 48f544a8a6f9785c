package rejoin.core.machine

import rejoin.core.row.Output
import java.nio.ByteBuffer
import java.util.{HashMap => JavaMap}

import scala.collection.mutable.ArrayBuffer


/** What leaves a Top-N: the difference between the rows that showed and those that show now.
  *
  * With numbers, or where one row shows, it is one of rows at a place. Otherwise rows come and go, and a row
  * that moves among those that show is no change.
  */
final class RankResult(spec: RankSpec, columns: RankColumns, outputs: OutputFunctions) {
  private val result = new KeyedResult(outputs)

  def emit(before: ArrayBuffer[Ranked], now: ArrayBuffer[Ranked], hash: Int, out: Output): Unit =
    if (spec.numbered || spec.first == spec.last) emitPlaces(before, now, hash, out)
    else emitRows(before, now, hash, out)

  private def emitPlaces(before: ArrayBuffer[Ranked], now: ArrayBuffer[Ranked], hash: Int, out: Output): Unit =
    (0 until math.max(before.size, now.size)).foreach { i =>
      val number = if (spec.numbered) columns.number(spec.first + i) else null
      result.emit(at(before, i), at(now, i), repeats = false, hash, out, number)
    }

  private def at(rows: ArrayBuffer[Ranked], i: Int): Array[Byte] = if (i < rows.size) rows(i).row else null

  /** Of rows with one key of an upsert sink that follows, the old one is replaced by the new one. */
  private def emitRows(before: ArrayBuffer[Ranked], now: ArrayBuffer[Ranked], hash: Int, out: Output): Unit = {
    val come = without(now, before)
    val gone = without(before, now)
    val replaced = new JavaMap[ByteBuffer, Array[Byte]]
    if (outputs.pairBy != null) come.foreach(row => replaced.putIfAbsent(sinkKey(row), row))
    gone.foreach { row =>
      val by = if (outputs.pairBy == null) null else replaced.remove(sinkKey(row))
      if (by != null) come -= by
      result.emit(row, by, repeats = false, hash, out)
    }
    come.foreach(result.emit(null, _, repeats = false, hash, out))
  }

  private def sinkKey(row: Array[Byte]): ByteBuffer = ByteBuffer.wrap(outputs.pairBy(row, null))

  /** The rows that are not among the others, copies counted. */
  private def without(rows: ArrayBuffer[Ranked], others: ArrayBuffer[Ranked]): ArrayBuffer[Array[Byte]] = {
    val counts = new JavaMap[ByteBuffer, Int]
    others.foreach(other => counts.merge(ByteBuffer.wrap(other.row), 1, (a, b) => a + b))
    rows.map(_.row).filter { row =>
      val left = counts.getOrDefault(ByteBuffer.wrap(row), 0)
      if (left > 0) counts.put(ByteBuffer.wrap(row), left - 1)
      left == 0
    }
  }
}
