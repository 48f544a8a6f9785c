package rejoin.core.machine

import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats, JNothing, JNull, JValue}

import org.apache.spark.sql.types.{DataType, StructType}

/** The planner's JSON for stateful operators (spark_jobs/plan/physical.py), read once on the driver. */
sealed trait OperatorSpec {
  def timing: Timing
  def output: OutputSpec

  /** Columns of the packed left and right rows that the operator emits. */
  def emitted: (StructType, StructType)

  /** Columns of the rows that it keeps, by side. */
  def stored: Seq[StructType] = Seq(emitted._1)
}

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

  val Timeless: Timing = Timing(Nil, Min, None, None, Seq(0L, 0L))
}

/** What becomes of an operator's rows before they leave it; see `Output` in physical.py. */
final case class OutputSpec(
    where: Option[String],
    pairBy: Option[Seq[String]],
    timeZone: String,
    late: Option[LateSpec])

/** Where the rows go that an operator, known by its id, drops for being late. */
final case class LateSpec(topic: String, operator: String)

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
final case class SideSpec(
    schema: StructType,
    layout: String,
    uniqueKey: Seq[Int],
    upsert: Boolean,
    trusted: Boolean)

object SideSpec {
  val JoinKeyContainsUniqueKey = "join-key-contains-unique-key"
  val HasUniqueKey = "has-unique-key"
  val NoUniqueKey = "no-unique-key"
}

/** What all joins of two inputs share.
  *
  * @param filterNulls
  *   per column of the join key, whether NULL matches nothing (`=`) or NULL (`IS NOT DISTINCT FROM`)
  */
final case class JoinSpec(
    joinType: String,
    left: SideSpec,
    right: SideSpec,
    keySize: Int,
    filterNulls: Seq[Boolean],
    residual: Option[String],
    output: OutputSpec) {
  require(JoinSpec.Types.contains(joinType), s"join type $joinType is not one of ${JoinSpec.Types.mkString(", ")}")

  def leftIsOuter: Boolean = joinType == "left" || joinType == "full"
  def rightIsOuter: Boolean = joinType == "right" || joinType == "full"
  def isSemi: Boolean = joinType == "semi"
  def isAnti: Boolean = joinType == "anti"
  def hasResidual: Boolean = residual.isDefined
  def stored: Seq[StructType] = Seq(left.schema, right.schema)
  def joined: StructType = StructType(left.schema.fields ++ right.schema.fields)
}

object JoinSpec {
  private val Types = Seq("inner", "left", "right", "full", "semi", "anti")
}

/** @param positions
  *   rows carry their [[SourcePosition]]
  * @param keyChanges
  *   [[KeyChanges]] follows, and hears of rows whose key changes
  */
final case class NormalizeSpec(
    schema: StructType,
    key: Seq[Int],
    positions: Boolean,
    keyChanges: Boolean,
    output: OutputSpec,
    timing: Timing)
    extends OperatorSpec {
  def emitted: (StructType, StructType) = (schema, OperatorSpec.NoColumns)
}

/** @param waitMs
  *   how long one half of a key change waits for the other
  */
final case class KeyChangesSpec(schema: StructType, waitMs: Long, output: OutputSpec, timing: Timing)
    extends OperatorSpec {
  def emitted: (StructType, StructType) = (schema, OperatorSpec.NoColumns)
}

final case class RegularJoinSpec(join: JoinSpec, timing: Timing) extends OperatorSpec {
  def output: OutputSpec = join.output
  def emitted: (StructType, StructType) = (join.left.schema, join.right.schema)
  override def stored: Seq[StructType] = join.stored
}

/** @param lowerMs
  *   a pair matches where left time is in [right time + lowerMs, right time + upperMs]
  */
final case class IntervalJoinSpec(
    join: JoinSpec,
    isEventTime: Boolean,
    lowerMs: Long,
    upperMs: Long,
    minCleanupMs: Long,
    timing: Timing)
    extends OperatorSpec {
  def output: OutputSpec = join.output
  def emitted: (StructType, StructType) = (join.left.schema, join.right.schema)
  override def stored: Seq[StructType] = join.stored
}

/** When probe rows may look at the build side: `none`, `loaded`, or `watermark` at `atMs`.
  *
  * @param table
  *   the build side's name, for people
  * @param build
  *   the streams whose marks open the gate
  */
final case class GateSpec(
    kind: String,
    atMs: Long,
    timeoutMs: Long,
    onTimeout: String,
    table: String,
    build: Seq[TopicTime])

/** @param joinsLate
  *   whether late probe rows are joined at the next watermark, rather than dropped
  */
final case class TemporalJoinSpec(
    join: JoinSpec,
    isEventTime: Boolean,
    gate: GateSpec,
    joinsLate: Boolean,
    timing: Timing)
    extends OperatorSpec {
  def output: OutputSpec = join.output
  def emitted: (StructType, StructType) = (join.left.schema, join.right.schema)
  override def stored: Seq[StructType] = join.stored
}

/** @param joinTypes
  *   inner or left, of the sides from the second on, like `residuals`, each of which is over the
  *   columns of all sides up to its own
  */
final case class MultiJoinSpec(
    joinTypes: Seq[String],
    sides: Seq[SideSpec],
    schema: StructType,
    keySize: Int,
    filterNulls: Seq[Boolean],
    residuals: Seq[Option[String]],
    output: OutputSpec,
    timing: Timing)
    extends OperatorSpec {
  def emitted: (StructType, StructType) = (schema, OperatorSpec.NoColumns)
  override def stored: Seq[StructType] = sides.map(_.schema)
}

final case class DeduplicateSpec(
    keepLast: Boolean,
    isEventTime: Boolean,
    onWatermark: Boolean,
    generateInsert: Boolean,
    schema: StructType,
    output: OutputSpec,
    timing: Timing)
    extends OperatorSpec {
  def emitted: (StructType, StructType) = (schema, OperatorSpec.NoColumns)
}

/** @param argument
  *   ordinal in the input row; none for COUNT(*)
  * @param filter
  *   ordinal of a BOOLEAN column that must be true
  */
final case class AggregateCallSpec(
    function: String,
    argument: Option[Int],
    distinct: Boolean,
    filter: Option[Int],
    dataType: DataType)

/** @param schema
  *   the key's columns, then one per call
  */
final case class AggregateSpec(
    inputSchema: StructType,
    keySchema: StructType,
    calls: Seq[AggregateCallSpec],
    schema: StructType,
    output: OutputSpec,
    timing: Timing)
    extends OperatorSpec {
  def emitted: (StructType, StructType) = (schema, OperatorSpec.NoColumns)
}

/** @param upsertKey
  *   ordinals that tell the rows of a sink key apart; empty for all columns
  */
final case class SinkMaterializerSpec(
    strategy: String,
    upsertKey: Seq[Int],
    schema: StructType,
    output: OutputSpec,
    timing: Timing)
    extends OperatorSpec {
  def emitted: (StructType, StructType) = (schema, OperatorSpec.NoColumns)
}

object OperatorSpec {
  private implicit val formats: Formats = DefaultFormats
  private[rejoin] val NoColumns = StructType(Nil)

  def read(json: String): OperatorSpec = read(parse(json))

  def read(node: JValue): OperatorSpec = {
    val output = outputOf(node)
    val timing = timingOf(node)
    (node \ "kind").extract[String] match {
      case "normalize" =>
        def flag(name: String): Boolean = present(node \ name).exists(_.extract[Boolean])
        val key = (node \ "key").extract[Seq[Int]]
        NormalizeSpec(schema(node \ "schema"), key, flag("positions"), flag("keyChanges"), output, timing)
      case "key-changes" => KeyChangesSpec(schema(node \ "schema"), (node \ "waitMs").extract[Long], output, timing)
      case "regular-join" => RegularJoinSpec(join(node, output), timing)
      case "interval-join" =>
        IntervalJoinSpec(
          join(node, output),
          isEventTime(node),
          (node \ "lowerMs").extract[Long],
          (node \ "upperMs").extract[Long],
          (node \ "minCleanupMs").extract[Long],
          timing)
      case "temporal-join" => temporal(node, join(node, output), timing)
      case "multi-join" =>
        MultiJoinSpec(
          (node \ "joinTypes").extract[Seq[String]],
          (node \ "sides").children.map(side(node, _)),
          schema(node \ "schema"),
          schema(node \ "key").size,
          (node \ "filterNulls").extract[Seq[Boolean]],
          (node \ "residuals").children.map(text),
          output,
          timing)
      case "deduplicate" =>
        DeduplicateSpec(
          (node \ "keep").extract[String] == "last",
          isEventTime(node),
          (node \ "onWatermark").extract[Boolean],
          (node \ "generateInsert").extract[Boolean],
          schema(node \ "schema"),
          output,
          timing)
      case "aggregate" =>
        AggregateSpec(
          schema(node \ "inputSchema"),
          schema(node \ "key"),
          (node \ "calls").children.map(call),
          schema(node \ "schema"),
          output,
          timing)
      case "sink-materializer" =>
        SinkMaterializerSpec(
          (node \ "strategy").extract[String],
          (node \ "upsertKey").extract[Seq[Int]],
          schema(node \ "schema"),
          output,
          timing)
      case other => throw new IllegalArgumentException(s"the kernel has no operator '$other'")
    }
  }

  private def join(node: JValue, output: OutputSpec): JoinSpec =
    JoinSpec(
      (node \ "joinType").extract[String],
      side(node, node \ "left"),
      side(node, node \ "right"),
      schema(node \ "key").size,
      (node \ "filterNulls").extract[Seq[Boolean]],
      text(node \ "residual"),
      output)

  private def side(join: JValue, node: JValue): SideSpec =
    SideSpec(
      schema(node \ "schema"),
      (node \ "layout").extract[String],
      (node \ "uniqueKey").extract[Seq[Int]],
      (node \ "upsert").extract[Boolean],
      text(join \ "inputFaults").contains("trust"))

  private def temporal(node: JValue, join: JoinSpec, timing: Timing): TemporalJoinSpec = {
    val joinsLate = text(node \ "lateProbe").contains("join")
    val gate = node \ "gate"
    val gateSpec = GateSpec(
      (gate \ "kind").extract[String],
      (gate \ "atMs").extract[Long],
      (gate \ "timeoutMs").extract[Long],
      (gate \ "onTimeout").extract[String],
      text(gate \ "table").getOrElse("?"),
      timing.inputs.drop(1).flatten)
    TemporalJoinSpec(join, isEventTime(node), gateSpec, joinsLate, timing.copy(followsLeft = !isEventTime(node)))
  }

  private def call(node: JValue): AggregateCallSpec =
    AggregateCallSpec(
      (node \ "function").extract[String],
      present(node \ "argument").map(_.extract[Int]),
      (node \ "distinct").extract[Boolean],
      present(node \ "filter").map(_.extract[Int]),
      DataType.fromJson(compact(render(node \ "type"))))

  private def isEventTime(node: JValue): Boolean = (node \ "time").extract[String] == "event"

  private def outputOf(node: JValue): OutputSpec =
    OutputSpec(
      text(node \ "output" \ "where"),
      present(node \ "output" \ "pairBy").map(_.extract[Seq[String]]),
      (node \ "output" \ "timeZone").extract[String],
      text(node \ "output" \ "lateTopic").map(LateSpec(_, text(node \ "id").getOrElse(""))))

  private def timingOf(node: JValue): Timing = {
    val timing = node \ "timing"
    Timing(
      (timing \ "inputs").children.map(_.children.map { stream =>
        TopicTime((stream \ "topic").extract[Int], (stream \ "idleTimeoutMs").extract[Long])
      }),
      (timing \ "policy").extract[String],
      present(timing \ "forward").map(_.extract[Int]),
      present(timing \ "tickMs").map(_.extract[Long]),
      (timing \ "ttlMs").extract[Seq[Long]])
  }

  def schema(node: JValue): StructType = DataType.fromJson(compact(render(node))).asInstanceOf[StructType]

  private def text(node: JValue): Option[String] = present(node).map(_.extract[String])

  /** What the planner has said, with null read as nothing. */
  def present(node: JValue): Option[JValue] = node match {
    case JNothing | JNull => None
    case value => Some(value)
  }
}
