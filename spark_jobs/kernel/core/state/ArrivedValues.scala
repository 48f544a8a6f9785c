package rejoin.core.state

import java.nio.ByteBuffer
import java.util.Arrays

import rejoin.core.row.{CellReader, CellWriter}

/** The values of one aggregated column in one group, as far as functions need them whose results go by the order of
  * arrival. Values are opaque bytes, equal where the values are.
  */
sealed trait ArrivedValues {
  def add(value: Array[Byte]): Unit

  /** Takes out the first of the equal values, if there is one. */
  def remove(value: Array[Byte]): Unit

  /** The value that came first of those that are there, or null. */
  def first: Array[Byte]

  /** The value that came last, or null. */
  def last: Array[Byte]

  /** Visits the values in the order of their arrival. */
  def foreach(visit: Array[Byte] => Unit): Unit

  def reset(key: Array[Byte], state: KeyedState): Unit
  def clear(): Unit
  def read(in: CellReader): Unit
  def write(out: CellWriter): Unit
}

/** All values.
  *
  * {{{
  * pages: 0 + number of the arrival                  -> value
  *        1 + length + value + number of the arrival -> nothing; where values are taken back
  * }}}
  * A change costs a page per level and index, however many values there are.
  *
  * @param appendOnly
  *   whether no value is ever taken back
  */
final class ValueList(pageTag: Char, appendOnly: Boolean) extends ArrivedValues {
  import ValueList._

  private val entries = new SortedPages(pageTag)
  private var arrivals = 0L

  def add(value: Array[Byte]): Unit = {
    entries.put(arrival(arrivals), value)
    if (!appendOnly) entries.put(place(value, arrivals), NoBytes)
    arrivals += 1
  }

  def remove(value: Array[Byte]): Unit = {
    val sought = place(value, 0)
    val found = entries.ceiling(sought)
    val length = sought.length - NumberBytes
    if (found != null && found.length == sought.length && Arrays.equals(found, 0, length, sought, 0, length)) {
      entries.remove(found)
      entries.remove(arrival(ByteBuffer.wrap(found).getLong(length)))
    }
  }

  def first: Array[Byte] = valueAt(entries.first)

  def last: Array[Byte] = valueAt(entries.lower(Array(ByValue)))

  def foreach(visit: Array[Byte] => Unit): Unit = {
    var at = entries.first
    while (isArrival(at)) {
      visit(entries.get(at))
      at = entries.ceiling(at :+ 0.toByte)
    }
  }

  private def valueAt(key: Array[Byte]): Array[Byte] = if (isArrival(key)) entries.get(key) else null

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    entries.reset(key, state)
    arrivals = 0L
  }

  def clear(): Unit = {
    entries.clear()
    arrivals = 0L
  }

  def read(in: CellReader): Unit = {
    arrivals = in.varLong()
    entries.read(in)
  }

  def write(out: CellWriter): Unit = entries.write(out.varLong(arrivals))
}

private object ValueList {
  private val ByArrival: Byte = 0
  private val ByValue: Byte = 1
  private val NumberBytes = 8
  private val NoBytes = Array.emptyByteArray

  private def arrival(number: Long): Array[Byte] =
    ByteBuffer.allocate(1 + NumberBytes).put(ByArrival).putLong(number).array

  /** The length in front keeps the entries of a value together, whatever values begin alike. */
  private def place(value: Array[Byte], number: Long): Array[Byte] =
    ByteBuffer
      .allocate(5 + value.length + NumberBytes)
      .put(ByValue)
      .putInt(value.length)
      .put(value)
      .putLong(number)
      .array

  private def isArrival(key: Array[Byte]): Boolean = key != null && key(0) == ByArrival
}

/** The first or the last of values of which none is ever taken back. */
final class OneValue(keepsFirst: Boolean) extends ArrivedValues {
  private var value: Array[Byte] = _

  def add(value: Array[Byte]): Unit = if (this.value == null || !keepsFirst) this.value = value

  def remove(value: Array[Byte]): Unit = ()

  def first: Array[Byte] = value

  def last: Array[Byte] = value

  def foreach(visit: Array[Byte] => Unit): Unit = if (value != null) visit(value)

  def reset(key: Array[Byte], state: KeyedState): Unit = clear()

  def clear(): Unit = value = null

  def read(in: CellReader): Unit = value = in.nullable()

  def write(out: CellWriter): Unit = out.nullable(value)
}
