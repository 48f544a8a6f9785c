package rejoin.core.time

/** The times that follow from the bounds of an interval join; sides are 0 (left) and 1 (right).
  *
  * A pair matches where left time is in [right time + lowerMs, right time + upperMs]. Sums that no
  * Long holds become the nearest one, so that a bound or a time far away is never taken for a near one.
  */
final class IntervalBounds(lowerMs: Long, upperMs: Long, minCleanupMs: Long) {
  import IntervalBounds._

  /** How long after its time a row of each side may still change: as long as partners may come, at least until
    * the watermark has reached it.
    */
  private val reachMs = Array(math.max(minus(0L, lowerMs), 0L), math.max(upperMs, 0L))

  /** How long after its time a row of each side may be joined with one that can still change. */
  private val partnersMs = Array(
    if (lowerMs <= 0L) plus(minus(0L, lowerMs), reachMs(1)) else minus(upperMs, lowerMs),
    if (upperMs >= 0L) plus(upperMs, reachMs(0)) else minus(upperMs, lowerMs))

  /** Whether no pair can match. */
  val isEmpty: Boolean = lowerMs > upperMs

  /** By how much a row may be older than the watermark when its last match leaves. */
  val outputDelayMs: Long = if (isEmpty) 0L else math.max(minus(0L, lowerMs), upperMs)

  /** The same where rows are padded early: what takes a padding back comes as long as its row is kept. */
  def earlyDelayMs: Long = if (isEmpty) 0L else plus(plus(outputDelayMs, minCleanupMs), 1L)

  /** By how much a row whose results are corrected may be older than the watermark. */
  def changeDelayMs: Long = if (isEmpty) 0L else plus(math.max(partnersMs(0), partnersMs(1)), minCleanupMs)

  def matches(leftTime: Long, rightTime: Long): Boolean = {
    val difference = leftTime - rightTime
    val overflows = ((leftTime ^ rightTime) & (leftTime ^ difference)) < 0
    !overflows && lowerMs <= difference && difference <= upperMs
  }

  /** The earliest time of the other side that a row of this side matches. */
  def qualifiedLowerBound(side: Int, time: Long): Long = if (side == 0) minus(time, upperMs) else plus(time, lowerMs)

  /** The latest time of the other side that a row of this side matches. */
  def qualifiedUpperBound(side: Int, time: Long): Long = if (side == 0) minus(time, lowerMs) else plus(time, upperMs)

  /** Rows of this side up to this time find no more partners. */
  def expirationTime(side: Int, operatorTime: Long): Long =
    if (operatorTime == Long.MaxValue) operatorTime
    else if (side == 0) plus(minus(operatorTime, 1L), lowerMs)
    else minus(minus(operatorTime, 1L), upperMs)

  /** When the operator's time reaches it, a row of this side leaves the state. */
  def cleanupTime(side: Int, time: Long): Long = plus(plus(qualifiedUpperBound(side, time), minCleanupMs), 1L)

  /** Rows of this side up to this time are past their cleanup time. */
  def cleanedUpTo(side: Int, operatorTime: Long): Long =
    expirationTime(side, if (operatorTime == Long.MaxValue) operatorTime else minus(operatorTime, minCleanupMs))

  /** Where rows change: those of this side up to this time can no more be changed, nor new ones come in time. */
  def closedUpTo(side: Int, operatorTime: Long): Long = before(operatorTime, reachMs(side))

  /** The same: when the operator's time reaches it, a row of this side can no more be changed. */
  def closingTime(side: Int, time: Long): Long = after(time, reachMs(side))

  /** Where rows change: those of this side up to this time are joined with no row that can be changed. */
  def forgottenUpTo(side: Int, operatorTime: Long): Long = before(operatorTime, partnersMs(side))

  /** The same: when the operator's time reaches it, a row of this side leaves the state. */
  def forgettingTime(side: Int, time: Long): Long = after(time, partnersMs(side))

  private def before(operatorTime: Long, ms: Long): Long =
    if (operatorTime == Long.MaxValue) operatorTime else minus(minus(operatorTime, ms), minCleanupMs)

  private def after(time: Long, ms: Long): Long = plus(plus(time, ms), minCleanupMs)
}

object IntervalBounds {
  private[time] def plus(a: Long, b: Long): Long = {
    val sum = a + b
    if (((a ^ sum) & (b ^ sum)) >= 0) sum else if (a < 0) Long.MinValue else Long.MaxValue
  }

  private[time] def minus(a: Long, b: Long): Long = {
    val difference = a - b
    if (((a ^ b) & (a ^ difference)) >= 0) difference else if (a < 0) Long.MinValue else Long.MaxValue
  }
}
