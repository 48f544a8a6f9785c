package org.apache.spark.sql.rejoin.run

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.ingest.{ChunkWriter, EnvelopeRow}
import rejoin.core.row.{Changelog, Envelope, RowKind}

/** One task's changes as envelopes that say of which step they are, in real-time mode with transactions.
  *
  * Rows of a step wait for its end, packed; the barrier behind them goes to each group.
  */
private[run] final class RekeyedSteps(rekeyer: Rekeyer, spec: RekeySpec) {
  private val chunks = new ChunkWriter(spec.groups, spec.side)
  private var step = 0L // of the rows that wait

  def apply(change: Changelog): Iterator[InternalRow] =
    if (change.kind == RowKind.Barrier) chunks.drain(step) ++ rekeyer(change).map(EnvelopeRow(_))
    else {
      val left = if (TaskSteps.running == step) Iterator.empty else chunks.drain(step).toVector.iterator
      step = TaskSteps.running
      left ++ rekeyer(change).flatMap { envelope =>
        if (RowKind.isRow(envelope.kind)) chunks.add(EnvelopeRow(envelope), step)
        else Iterator.single(EnvelopeRow(ofStep(envelope)))
      }
    }

  private def ofStep(envelope: Envelope): Envelope =
    if (RowKind.isMark(envelope.kind)) envelope.copy(seq = step) else envelope.copy(time = step)
}
