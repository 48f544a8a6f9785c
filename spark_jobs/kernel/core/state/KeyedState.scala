package rejoin.core.state

/** The state of one key group as a machine sees it: cells, bytes by name.
  *
  * In Spark it is one transformWithState map per operator, in tests a [[MemoryState]]. An array that `get` returns
  * belongs to the caller; one that was given to `put` or `write` no longer does.
  */
trait KeyedState {

  /** The cell's value, or null where there is none. */
  def get(cell: Array[Byte]): Array[Byte]
  def put(cell: Array[Byte], value: Array[Byte]): Unit
  def remove(cell: Array[Byte]): Unit

  /** Puts many cells, by name and value; where the value is null, removes them. */
  def write(cells: Iterator[(Array[Byte], Array[Byte])]): Unit = cells.foreach {
    case (cell, null) => remove(cell)
    case (cell, value) => put(cell, value)
  }

  /** The names of all cells with this tag. It reads the whole group: for what concerns every key of it. */
  def names(tag: Char): Seq[Array[Byte]]
}
