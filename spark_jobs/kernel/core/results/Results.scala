package rejoin.core.results

import rejoin.core.row.{CellReader, CellWriter, Changelog}

/** What an operator emits in one batch of a group, in order. */
final class Results(overflow: Overflow) extends OverflowQueue[Changelog](overflow) {
  import Results._

  override protected def sizeOf(row: Changelog): Long =
    RowBytes + (if (row.left == null) 0 else row.left.length) + (if (row.right == null) 0 else row.right.length)

  override protected def write(row: Changelog, out: CellWriter): Unit =
    out.byte(row.kind.toInt).signed(row.hash.toLong).nullable(row.left).nullable(row.right).signed(row.recordMs)

  override protected def read(in: CellReader): Changelog =
    Changelog(in.byte().toByte, in.signed().toInt, in.nullable(), in.nullable(), in.signed())
}

private object Results {

  /** About what a row takes in memory besides its columns. */
  private final val RowBytes = 96L
}
