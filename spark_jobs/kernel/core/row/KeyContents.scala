package rejoin.core.row

/** What a machine keeps of one key, to look at: counts from the key's header cell, rows on demand.
  *
  * @param counts
  *   rows per side, copies counted
  * @param hasTimes
  *   whether rows carry a time, so that it pays to read them for it
  */
abstract class KeyContents(val counts: Seq[Long], val hasTimes: Boolean) {
  def foreach(visit: KeptRow => Unit): Unit
}

object KeyContents {

  /** Of a machine with one row, or none, in the key's only cell; a trace of a deleted row is none. */
  def apply(kept: Option[KeptRow], isDeleted: Boolean = false): KeyContents =
    new KeyContents(Seq(if (isDeleted) 0L else kept.size.toLong), kept.exists(_.timeMs != Envelope.NoTime)) {
      def foreach(visit: KeptRow => Unit): Unit = kept.foreach(visit)
    }
}

/** A row in state.
  *
  * @param row
  *   packed, or null where only a trace of a row is kept
  * @param timeMs
  *   its event time, else its last write where it expires, else [[Envelope.NoTime]]
  * @param facts
  *   what else is known of it, by name
  */
final case class KeptRow(
    side: Int,
    row: Array[Byte],
    timeMs: Long = Envelope.NoTime,
    facts: Seq[(String, Any)] = Nil)
