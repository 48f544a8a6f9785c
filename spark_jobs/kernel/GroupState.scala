package org.apache.spark.sql.rejoin

import java.util

/** What one key group knows besides its rows: row counts per side, watermarks, what is due.
  *
  * {{{
  * cell 'G' : version, rows left, rows right, late rows, unknown retractions, watermarks, due slots
  * }}}
  */
final class GroupState private (stored: Array[Byte]) {

  /** Stored rows of each side, copies counted. */
  val rows = new Array[Long](2)

  /** Rows that came behind the watermark and were dropped. */
  var lateRows = 0L

  /** Retractions of rows that were never added, ignored. */
  var unknownRetractions = 0L
  val watermarks = new Watermarks
  val due = new DueIndex

  if (stored != null) {
    val in = new CellReader(stored).version()
    rows(0) = in.varLong()
    rows(1) = in.varLong()
    lateRows = in.varLong()
    unknownRetractions = in.varLong()
    watermarks.read(in)
    due.read(in)
  }

  def save(state: KeyedState): Unit = {
    val out = new CellWriter().byte(Codec.Version)
    out.varLong(rows(0)).varLong(rows(1)).varLong(lateRows).varLong(unknownRetractions)
    watermarks.write(out)
    due.write(out)
    val value = out.result()
    if (!util.Arrays.equals(value, stored)) state.put(Cell.Group, value)
  }
}

object GroupState {
  def load(state: KeyedState): GroupState = new GroupState(state.get(Cell.Group))
}
