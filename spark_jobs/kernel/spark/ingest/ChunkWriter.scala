package org.apache.spark.sql.rejoin.ingest

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow

import rejoin.core.row.{CellWriter, Envelope, RowChunks, RowKind}

/** Packs the data rows of one task into chunks, each an envelope of kind [[RowKind.Rows]].
  *
  * The exchange then moves, sorts and decodes a chunk of some kB where it would a row: what Spark
  * spends per row there is as much as the join itself. Marks and rejects travel as they are.
  */
final class ChunkWriter(groups: Int, side: Byte) {
  private val writers = new Array[CellWriter](groups)
  private val counts = new Array[Int](groups)
  private val out = new SpecificInternalRow(EnvelopeRows.Types)

  /** Takes a row in; gives the chunk that is thereby full. */
  def add(envelope: InternalRow): Iterator[InternalRow] = {
    val group = envelope.getInt(0)
    var writer = writers(group)
    if (writer == null) {
      writer = new CellWriter
      writers(group) = writer
    }
    RowChunks.write(
      envelope.getByte(2),
      envelope.getLong(3),
      envelope.getInt(4),
      envelope.getLong(5),
      envelope.getBinary(6),
      envelope.getBinary(7),
      writer)
    counts(group) += 1
    if (writer.length < ChunkWriter.FullBytes) Iterator.empty else Iterator.single(take(group))
  }

  /** The chunks that are not full yet. */
  def drain(): Iterator[InternalRow] = (0 until groups).iterator.filter(counts(_) > 0).map(take)

  private def take(group: Int): InternalRow = {
    out.setInt(0, group)
    out.setByte(1, side)
    out.setByte(2, RowKind.Rows)
    out.setLong(3, Envelope.NoTime)
    out.setInt(4, 0)
    out.setLong(5, counts(group).toLong)
    out.update(6, ChunkWriter.NoKey)
    out.update(7, writers(group).result())
    writers(group).reset()
    counts(group) = 0
    out
  }
}

object ChunkWriter {
  private val FullBytes = 16384
  private val NoKey = new Array[Byte](0)
}
