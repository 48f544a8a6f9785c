package rejoin.core.machine

import rejoin.core.time.{GateSpec, Timing}

/** What the planner has decided for a stateful operator, as far as its machine has to know: no column types,
  * no expressions. Those reach a machine as functions over packed rows ([[JoinFunctions]], [[OutputFunctions]]).
  */
sealed trait OperatorSpec {
  def timing: Timing
}

/** What is known of one input of a join.
  *
  * @param layout
  *   one of the three of seed 001: join-key-contains-unique-key, has-unique-key, no-unique-key
  * @param upsert
  *   rows come without their old rows; the join finds those in its own state
  * @param trusted
  *   what comes is taken at its word, as Flink does: a retraction is emitted whether or not the row
  *   is known, and a second row of a unique key overwrites the first one, whose results stay
  */
final case class SideSpec(layout: String, upsert: Boolean, trusted: Boolean)

object SideSpec {
  val JoinKeyContainsUniqueKey = "join-key-contains-unique-key"
  val HasUniqueKey = "has-unique-key"
  val NoUniqueKey = "no-unique-key"
}

/** What all joins of two inputs share. */
final case class JoinSpec(joinType: String, left: SideSpec, right: SideSpec, hasResidual: Boolean) {
  require(JoinSpec.Types.contains(joinType), s"join type $joinType is not one of ${JoinSpec.Types.mkString(", ")}")

  def leftIsOuter: Boolean = joinType == "left" || joinType == "full"
  def rightIsOuter: Boolean = joinType == "right" || joinType == "full"
  def isSemi: Boolean = joinType == "semi"
  def isAnti: Boolean = joinType == "anti"
}

object JoinSpec {
  private val Types = Seq("inner", "left", "right", "full", "semi", "anti")
}

/** @param positions
  *   rows carry their [[rejoin.core.row.SourcePosition]]
  * @param keyChanges
  *   the next operator is [[KeyChanges]], and gets news of the rows whose primary key changes
  */
final case class NormalizeSpec(positions: Boolean, keyChanges: Boolean, timing: Timing) extends OperatorSpec

/** @param waitMs
  *   how long one half of a key change waits for the other
  */
final case class KeyChangesSpec(waitMs: Long, timing: Timing) extends OperatorSpec

final case class RegularJoinSpec(join: JoinSpec, timing: Timing) extends OperatorSpec

/** @param lowerMs
  *   a pair matches where left time is in [right time + lowerMs, right time + upperMs]
  * @param minCleanupMs
  *   how much longer than its window a row is kept; the watermark does not wait for it
  * @param allowedLatenessMs
  *   the same, but the watermark that goes on is held back by it
  * @param changes
  *   whether rows are also updated and deleted, so that results are taken back
  * @param earlyFireMs
  *   how long after its time an outer row without a partner is padded, if not only when no partner can come any more
  */
final case class IntervalJoinSpec(
    join: JoinSpec,
    isEventTime: Boolean,
    lowerMs: Long,
    upperMs: Long,
    minCleanupMs: Long,
    allowedLatenessMs: Long,
    changes: Boolean,
    earlyFireMs: Option[Long],
    timing: Timing)
    extends OperatorSpec

/** @param joinsLate
  *   whether late probe rows are joined at the next watermark, rather than dropped
  * @param probeChanges
  *   whether probe rows are also updated and deleted, so that what each was joined with has to be remembered
  */
final case class TemporalJoinSpec(
    join: JoinSpec,
    isEventTime: Boolean,
    gate: GateSpec,
    joinsLate: Boolean,
    probeChanges: Boolean,
    timing: Timing)
    extends OperatorSpec

/** @param probeChanges
  *   as of [[TemporalJoinSpec]]
  */
final case class LookupJoinSpec(join: JoinSpec, probeChanges: Boolean, timing: Timing) extends OperatorSpec

/** @param joinTypes
  *   inner or left, of the sides from the second on
  */
final case class MultiJoinSpec(joinTypes: Seq[String], sides: Seq[SideSpec], timing: Timing) extends OperatorSpec

final case class DeduplicateSpec(
    keepLast: Boolean,
    isEventTime: Boolean,
    onWatermark: Boolean,
    generateInsert: Boolean,
    timing: Timing)
    extends OperatorSpec

/** @param first
  *   place of the first row that shows, from 1
  * @param appendOnly
  *   whether only insertions come, so that rows behind the last place are never needed
  * @param numbered
  *   whether each row leaves with its place
  */
final case class RankSpec(first: Long, last: Long, appendOnly: Boolean, numbered: Boolean, timing: Timing)
    extends OperatorSpec

/** @param argument
  *   ordinal in the input row; none for COUNT(*)
  * @param filter
  *   ordinal of a BOOLEAN column that must be true
  * @param takesNulls
  *   whether NULLs are elements of ARRAY_AGG
  * @param separator
  *   between the texts of LISTAGG
  * @param appendOnly
  *   whether rows are only inserted, so that no value has to be found again
  */
final case class AggregateCallSpec(
    function: String,
    argument: Option[Int],
    distinct: Boolean,
    filter: Option[Int],
    takesNulls: Boolean = false,
    separator: String = "",
    appendOnly: Boolean = false) {
  import AggregateCallSpec._

  def isExtremum: Boolean = function == "MIN" || function == "MAX"

  /** Whether the result goes by the order in which values came. */
  def goesByArrival: Boolean = ByArrival.contains(function)

  /** Whether the call needs to know how often each value of its column is there. */
  def countsValues: Boolean = argument.isDefined && (distinct || isExtremum)

  /** Which values a call that goes by arrival keeps. */
  def kept: String = if (appendOnly) ByArrival(function) else All
}

object AggregateCallSpec {
  val All = "all"
  val First = "first"
  private val Last = "last"

  /** With the values that are needed where none is taken back. */
  private val ByArrival = Map("FIRST_VALUE" -> First, "LAST_VALUE" -> Last, "ARRAY_AGG" -> All, "LISTAGG" -> All)
}

/** @param noInput
  *   whether no row ever comes to the one group of all rows: its result is one constant row
  */
final case class AggregateSpec(calls: Seq[AggregateCallSpec], noInput: Boolean, timing: Timing) extends OperatorSpec

/** @param isOuter
  *   whether a row without an element stays
  */
final case class UnnestSpec(isOuter: Boolean, timing: Timing) extends OperatorSpec

/** @param isUnique
  *   whether the query's upsert key tells the rows of a sink key apart, rather than all columns
  */
final case class SinkMaterializerSpec(strategy: String, isUnique: Boolean, timing: Timing) extends OperatorSpec
