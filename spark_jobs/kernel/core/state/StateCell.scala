package rejoin.core.state

import java.util.Arrays

import rejoin.core.row.{CellReader, CellWriter, Codec}

/** One cell of the state at a time, such as the header cell of the key in hand: read when it is opened, written if
  * its content has changed.
  *
  * @param newest
  *   the highest version that is read
  */
final class StateCell(tag: Char, newest: Byte = Codec.Version) {
  private val out = new CellWriter
  private var name: Array[Byte] = _
  private var stored: Array[Byte] = _
  private var wasStored = false

  /** The version of the stored content. */
  var version: Byte = Codec.Version

  /** Turns to a key; gives what follows the version in its cell, or null where there is no cell. */
  def open(key: Array[Byte], state: KeyedState): CellReader = {
    name = Cell.key(tag, key)
    stored = state.get(name)
    wasStored = stored != null
    if (stored == null) null
    else {
      val in = new CellReader(stored)
      if (newest > Codec.Version) version = in.version(newest) else in.version()
      in
    }
  }

  /** Whether there was a cell when it was opened. */
  def isStored: Boolean = wasStored

  /** Begins the new content; the version stands there already. */
  def write(version: Byte = Codec.Version): CellWriter = out.reset().byte(version.toInt)

  /** Stores the new content, or removes the cell where nothing is left to keep. */
  def save(state: KeyedState, isEmpty: Boolean = false): Unit =
    if (isEmpty) {
      if (stored != null) state.remove(name)
      stored = null
    } else {
      val value = out.result()
      if (!Arrays.equals(value, stored)) state.put(name, value)
      stored = value
    }
}
