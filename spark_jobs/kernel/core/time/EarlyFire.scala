package rejoin.core.time

/** When an interval join pads rows of an outer side that have no partner, although one may still come.
  *
  * Which rows have been padded follows from time alone, so that nothing is stored for it: at the end of a batch, those
  * without a partner whose delay is over.
  *
  * @param delayMs
  *   how long after its time a row is padded; None: only once no partner can come any more
  */
final class EarlyFire(delayMs: Option[Long]) {
  import EarlyFire._

  require(delayMs.forall(_ > 0), s"a row is padded at least 1 ms after its time, found $delayMs")
  private val ms = delayMs.getOrElse(Never)

  /** Rows up to this time have been padded once the operator's time is this one; Long.MinValue: none. */
  def firedUpTo(operatorTime: Long): Long =
    if (ms == Never) Long.MinValue
    else if (operatorTime == Long.MaxValue) operatorTime
    else IntervalBounds.minus(operatorTime, ms)

  /** When the operator's time reaches it, a row of this time is padded; Long.MaxValue: never early. */
  def fireTime(time: Long): Long = if (ms == Never) Long.MaxValue else IntervalBounds.plus(time, ms)
}

object EarlyFire {
  private final val Never = 0L
}
