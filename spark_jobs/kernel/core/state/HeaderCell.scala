package rejoin.core.state

import java.util.Arrays

import rejoin.core.row.{CellReader, CellWriter, Codec}

/** The header cell of one key at a time: read when the key is visited, written if its content has changed. */
final class HeaderCell(tag: Char) {
  private val out = new CellWriter
  private var name: Array[Byte] = _
  private var stored: Array[Byte] = _

  /** Turns to a key; gives what follows the version in its cell, or null where there is no cell. */
  def open(key: Array[Byte], state: KeyedState): CellReader = {
    name = Cell.key(tag, key)
    stored = state.get(name)
    if (stored == null) null else new CellReader(stored).version()
  }

  /** Whether the key had a cell when it was opened. */
  def isStored: Boolean = stored != null

  /** Begins the new content; the version stands there already. */
  def write(): CellWriter = out.reset().byte(Codec.Version)

  /** Stores the new content, or removes the cell of a key of which nothing is left. */
  def save(state: KeyedState, isEmpty: Boolean = false): Unit =
    if (isEmpty) {
      if (isStored) state.remove(name)
    } else {
      val value = out.result()
      if (!Arrays.equals(value, stored)) state.put(name, value)
    }
}
