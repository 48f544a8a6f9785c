package rejoin.core.row

/** Data rows of one group, packed one behind the other in an envelope of kind [[RowKind.Rows]].
  *
  * `sinceMs` is from the chunk's own record timestamp to that of the row: a byte or two.
  */
object RowChunks {
  def write(
      kind: Byte,
      time: Long,
      source: Int,
      seq: Long,
      key: Array[Byte],
      row: Array[Byte],
      sinceMs: Long,
      out: CellWriter): Unit =
    out.byte(kind.toInt).signed(time).varLong(source.toLong).varLong(seq).blob(key).blob(row).signed(sinceMs)

  /** The rows of a chunk, in the order in which they were added. */
  def foreach(chunk: Envelope)(visit: Envelope => Unit): Unit = {
    val in = new CellReader(chunk.row)
    while (in.hasMore) {
      val kind = in.byte().toByte
      visit(Envelope(
        chunk.group,
        chunk.side,
        kind,
        in.signed(),
        in.int(),
        in.varLong(),
        in.blob(),
        in.blob(),
        chunk.recordMs + in.signed()))
    }
  }
}
