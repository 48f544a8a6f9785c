package rejoin.core.machine.join

import rejoin.core.row.{CellReader, CellWriter}

/** The version that a probe row has met by event time, as [[ProbeMemory]] keeps it: the row's time, and the version
  * or nothing. Whether the two pass the residual predicate is decided anew each time.
  */
object MetVersion {
  def pack(time: Long, version: Array[Byte]): Array[Byte] =
    new CellWriter().signed(time).nullable(version).result()

  def timeOf(met: Array[Byte]): Long = new CellReader(met).signed()

  /** Null where there was no version. */
  def rowOf(met: Array[Byte]): Array[Byte] = {
    val in = new CellReader(met)
    in.signed()
    in.nullable()
  }
}
