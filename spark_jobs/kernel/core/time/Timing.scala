package rejoin.core.time

/** A stream of watermarks: a topic of the plan, or another operator's (from [[Timing.Forwarded]] on). */
final case class TopicTime(topic: Int, idleTimeoutMs: Long)

/** How time reaches an operator and leaves it; see `Timing` in physical.py.
  *
  * @param inputs
  *   per side, the streams whose watermarks count
  * @param forward
  *   the topic index under which the operator's own watermark goes on
  * @param ttlMs
  *   state TTL per side, 0 for ever
  * @param followsLeft
  *   whether the left side's watermark alone is the operator's own
  */
final case class Timing(
    inputs: Seq[Seq[TopicTime]],
    policy: String,
    forward: Option[Int],
    tickMs: Option[Long],
    ttlMs: Seq[Long],
    followsLeft: Boolean = false) {
  def usesClock: Boolean = tickMs.isDefined

  /** The inputs that make up the operator's own watermark. */
  def ruling: Seq[Seq[TopicTime]] = if (followsLeft) inputs.take(1) else inputs
}

object Timing {
  val Min = "min"
  val Max = "max"

  /** Topic indexes from here on are operators; each has one partition. */
  final val Forwarded = 1 << 14
}
