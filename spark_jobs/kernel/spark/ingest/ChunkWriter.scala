package org.apache.spark.sql.rejoin.ingest

import org.apache.spark.sql.catalyst.InternalRow

import rejoin.core.row.{CellWriter, Envelope, RowChunks}

/** Packs the data rows of one task into chunks, each an envelope made by [[Envelope.rows]].
  *
  * Spark's exchange then moves, sorts and decodes chunks of some kB instead of rows; per row it would cost
  * as much as the join itself. Marks and rejects are not packed.
  */
final class ChunkWriter(groups: Int, side: Byte) {
  private val writers = new Array[CellWriter](groups)
  private val counts = new Array[Int](groups)
  private val recordMs = new Array[Long](groups) // of the first row of the chunk

  /** Adds a row of a step; returns the chunk if it is full now. */
  def add(envelope: InternalRow, step: Long): Iterator[InternalRow] = {
    val group = envelope.getInt(EnvelopeRow.Group)
    var writer = writers(group)
    if (writer == null) {
      writer = new CellWriter
      writers(group) = writer
    }
    if (counts(group) == 0) recordMs(group) = envelope.getLong(EnvelopeRow.RecordMs)
    RowChunks.write(
      envelope.getByte(EnvelopeRow.Kind),
      envelope.getLong(EnvelopeRow.Time),
      envelope.getInt(EnvelopeRow.Source),
      envelope.getLong(EnvelopeRow.Seq),
      envelope.getBinary(EnvelopeRow.Key),
      envelope.getBinary(EnvelopeRow.Row),
      envelope.getLong(EnvelopeRow.RecordMs) - recordMs(group),
      writer)
    counts(group) += 1
    if (writer.length < ChunkWriter.FullBytes) Iterator.empty else Iterator.single(take(group, step))
  }

  /** The chunks that are not full yet. */
  def drain(step: Long): Iterator[InternalRow] = (0 until groups).iterator.filter(counts(_) > 0).map(take(_, step))

  private def take(group: Int, step: Long): InternalRow = {
    val chunk = Envelope.rows(group, side, counts(group), writers(group).result(), recordMs(group), step)
    writers(group).reset()
    counts(group) = 0
    EnvelopeRow(chunk)
  }
}

object ChunkWriter {
  private val FullBytes = 16384
}
