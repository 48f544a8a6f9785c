package rejoin.core.row

/** Receives the rows of a state machine, ready for the SELECT list. */
trait Output {
  def emit(kind: Byte, hash: Int, left: Array[Byte], right: Array[Byte]): Unit
}
