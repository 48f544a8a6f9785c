package rejoin.core.row

import java.nio.ByteBuffer

/** A mark as an operator passes it on: its time in place of the left row, its source in place of the hash. */
object Mark {
  def emit(kind: Byte, source: Int, timeMs: Long, out: Output): Unit =
    out.emit(kind, source, ByteBuffer.allocate(8).putLong(timeMs).array, null)

  /** Passes the batch's marks of loaded partitions on to the next operator. */
  def passLoaded(batch: GroupBatch, out: Output): Unit =
    batch.marks.foreach { mark =>
      if (mark.kind == RowKind.Loaded) emit(mark.kind, mark.source, mark.time, out)
    }

  /** The barrier behind a step as one task of an operator passes it on: it is a reader for the next operator.
    *
    * @param readers
    *   how many tasks do so
    */
  def barrier(reader: Int, readers: Int, step: Long): Changelog =
    Changelog(RowKind.Barrier, reader, ByteBuffer.allocate(12).putLong(step).putInt(readers).array, null)

  /** The mark that an operator passed on, for one group of the next operator. */
  def envelope(passed: Changelog, group: Int, side: Byte): Envelope =
    if (passed.kind == RowKind.Barrier)
      Envelope.barrier(group, side, passed.hash, ByteBuffer.wrap(passed.left).getInt(8), timeOf(passed.left))
    else Envelope.mark(passed.kind, group, side, passed.hash, timeOf(passed.left), passed.recordMs)

  def timeOf(left: Array[Byte]): Long = ByteBuffer.wrap(left).getLong
}
