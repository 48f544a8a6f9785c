package rejoin.core.machine

import rejoin.core.results.{ArrivalOrder, Changes, Overflow}
import rejoin.core.row.{Envelope, Output}

/** What decides about the rows that an operator emits. One instance serves one task.
  *
  * @param accepts
  *   whether a result row passes the WHERE clause; true where there is none
  * @param pairBy
  *   the sink's key of a result row; null where retractions are always emitted
  * @param shown
  *   what the SELECT list makes of a result row; null where rows differ if and only if their columns do
  * @param lateRows
  *   what takes the late rows that are dropped; none where the job keeps none
  * @param overflow
  *   where rows wait that do not fit into memory
  */
final class OutputFunctions(
    val accepts: (Array[Byte], Array[Byte]) => Boolean,
    val pairBy: (Array[Byte], Array[Byte]) => Array[Byte],
    val shown: (Array[Byte], Array[Byte]) => Array[Byte],
    val lateRows: Option[LateRows],
    val overflow: Overflow) {
  def changes(): Changes = new Changes(accepts, pairBy, shown, overflow)

  def arrivalOrder(): ArrivalOrder = new ArrivalOrder(accepts, pairBy, overflow)
}

/** Sets aside the rows that an operator drops for being late. */
trait LateRows {

  /** @param hash
    *   of the join key, see [[rejoin.core.row.Changelog]]
    */
  def emit(late: Envelope, watermark: Long, hash: Int, out: Output): Unit
}
