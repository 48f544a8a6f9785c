package rejoin.core.machine

import rejoin.core.row.{CellReader, CellWriter, Codec, Lack, Unhealed}
import rejoin.core.state.{Cell, KeyedState}

/** The row of a key that lacks values which its old row has, or may have.
  *
  * {{{
  * cell 'K' + primary key : version, row, lack, events to be rejected if nobody has the values
  * }}}
  */
private final class MovedRow(val key: Array[Byte], val isStored: Boolean) {
  var row: Array[Byte] = _
  var lack: Lack = _
  var unhealed: Seq[Unhealed] = Nil

  /** The complete row as it was shown before the batch; null for none. */
  var before: Array[Byte] = _

  /** Whether the normaliser has reported the row in this batch. */
  var isReported = false

  /** The complete row as it is now; null for none. */
  var healed: Array[Byte] = _

  /** Whether it is certain that no row has the values that this one lacks. */
  var valuesAreLost = false

  def set(row: Array[Byte], lack: Lack): Unit = {
    this.row = row
    this.lack = lack
  }

  def save(state: KeyedState): Unit = {
    val name = Cell.key(MovedRow.Tag, key)
    if (lack != null) {
      val out = new CellWriter().byte(Codec.Version).blob(row)
      Lack.write(lack, out)
      out.varLong(unhealed.size.toLong)
      unhealed.foreach(_.write(out))
      state.put(name, out.result())
    } else if (isStored) state.remove(name)
  }
}

private object MovedRow {
  final val Tag = 'K'

  def load(key: Array[Byte], state: KeyedState): MovedRow = {
    val stored = state.get(Cell.key(Tag, key))
    val found = new MovedRow(key, stored != null)
    if (stored != null) {
      val in = new CellReader(stored).version()
      found.set(in.blob(), Lack.read(in))
      found.unhealed = Seq.fill(in.int())(Unhealed.read(in))
    }
    found
  }
}
