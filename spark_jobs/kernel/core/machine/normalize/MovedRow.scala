package rejoin.core.machine.normalize

import rejoin.core.row.{CellReader, Lack, Unhealed}
import rejoin.core.state.{KeyedState, StateCell}

/** A row whose primary key has changed, and which lacks values that the row under its old key has, or may have.
  *
  * {{{
  * cell 'K' + primary key : version, row, lack, events to be rejected if the values are lost
  * }}}
  */
private final class MovedRow(val key: Array[Byte], state: KeyedState) {
  private val cell = new StateCell(MovedRow.Tag)
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

  read(cell.open(key, state))

  private def read(in: CellReader): Unit = if (in != null) {
    set(in.blob(), Lack.read(in))
    unhealed = Seq.fill(in.int())(Unhealed.read(in))
  }

  def isStored: Boolean = cell.isStored

  def set(row: Array[Byte], lack: Lack): Unit = {
    this.row = row
    this.lack = lack
  }

  def save(): Unit =
    if (lack == null) cell.save(state, isEmpty = true)
    else {
      val out = cell.write().blob(row)
      Lack.write(lack, out)
      out.varLong(unhealed.size.toLong)
      unhealed.foreach(_.write(out))
      cell.save(state)
    }
}

private object MovedRow {
  final val Tag = 'K'
}
