package rejoin.core.state

import java.nio.ByteBuffer
import java.util.Arrays

import net.jpountz.xxhash.XXHashFactory

import rejoin.core.row.{CellReader, CellWriter}

/** The rows of one sink key in the order in which they were added; each has a place.
  *
  * {{{
  * pages 'O' : place -> row
  * pages 'I' : hash of the row's identity, place          (once the rows need more than one page)
  * }}}
  *
  * @param identity
  *   distinguishes rows: the upsert key, or the row itself
  * @param isUnique
  *   whether a row takes the place of one with its identity
  */
final class SinkRows(identity: Array[Byte] => Array[Byte], isUnique: Boolean) {
  import SinkRows._

  private val rows = new SortedPages('O')
  private val places = new SortedPages('I')
  private var hasPlaces = false
  private var next = 0L

  /** Number of rows. */
  var size = 0L

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    rows.reset(key, state)
    places.reset(key, state)
    hasPlaces = false
    next = 0L
    size = 0L
  }

  def isEmpty: Boolean = size == 0

  /** The row at a place. */
  def at(place: Long): Array[Byte] = rows.get(bytes(place))

  /** Rows by their places, in order. */
  def foreach(visit: (Long, Array[Byte]) => Unit): Unit =
    rows.foreach((place, row) => visit(ByteBuffer.wrap(place).getLong, row))

  /** The place of the newest row; only where there is one. */
  def lastPlace: Long = ByteBuffer.wrap(rows.last).getLong

  /** Adds a row behind the others, or in the place of its identity; gives the place. */
  def add(row: Array[Byte]): Long = {
    val id = identity(row)
    val known = if (isUnique) find(id) else NoPlace
    val place = if (known == NoPlace) next else known
    rows.put(bytes(place), row)
    if (known == NoPlace) {
      next += 1
      size += 1
      if (hasPlaces) places.put(entry(id, place), Nothing)
      else if (!rows.isOnePage) indexAll()
    }
    place
  }

  /** Removes the oldest row with this row's identity; gives its place or [[SinkRows.NoPlace]]. */
  def remove(row: Array[Byte]): Long = {
    val id = identity(row)
    val place = find(id)
    if (place != NoPlace) {
      rows.remove(bytes(place))
      size -= 1
      if (hasPlaces) {
        places.remove(entry(id, place))
        if (rows.isOnePage) dropIndex()
      }
      if (isEmpty) next = 0L
    }
    place
  }

  def clear(): Unit = {
    rows.clear()
    if (hasPlaces) dropIndex()
    next = 0L
    size = 0L
  }

  private def find(id: Array[Byte]): Long = if (hasPlaces) findByHash(id) else findInPage(id)

  private def findInPage(id: Array[Byte]): Long = {
    var found = NoPlace
    rows.foreach { (place, row) =>
      if (found == NoPlace && Arrays.equals(identity(row), id)) found = ByteBuffer.wrap(place).getLong
    }
    found
  }

  private def findByHash(id: Array[Byte]): Long = {
    var candidate = places.ceiling(entry(id, 0))
    val hash = hashOf(id)
    var found = NoPlace
    while (found == NoPlace && candidate != null && ByteBuffer.wrap(candidate).getLong == hash) {
      val place = ByteBuffer.wrap(candidate).getLong(8)
      if (Arrays.equals(identity(at(place)), id)) found = place
      else candidate = places.ceiling(entry(id, place + 1))
    }
    found
  }

  private def indexAll(): Unit = {
    hasPlaces = true
    rows.foreach((place, row) => places.put(entry(identity(row), ByteBuffer.wrap(place).getLong), Nothing))
  }

  private def dropIndex(): Unit = {
    hasPlaces = false
    places.clear()
  }

  def read(in: CellReader): Unit = {
    size = in.varLong()
    next = in.varLong()
    hasPlaces = in.byte() == 1
    rows.read(in)
    places.read(in)
  }

  def write(out: CellWriter): Unit = {
    out.varLong(size).varLong(next).byte(if (hasPlaces) 1 else 0)
    rows.write(out)
    places.write(out)
  }
}

object SinkRows {
  final val NoPlace = -1L
  private val Nothing = new Array[Byte](0)
  private val HashSeed = 42L
  private val Hash = XXHashFactory.fastestJavaInstance.hash64

  private def bytes(place: Long): Array[Byte] = ByteBuffer.allocate(8).putLong(place).array

  private def entry(id: Array[Byte], place: Long): Array[Byte] =
    ByteBuffer.allocate(16).putLong(hashOf(id)).putLong(place).array

  private def hashOf(id: Array[Byte]): Long =
    Hash.hash(id, 0, id.length, HashSeed)
}
