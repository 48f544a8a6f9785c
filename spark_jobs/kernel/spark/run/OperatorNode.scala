package org.apache.spark.sql.rejoin.run

import org.json4s.jackson.JsonMethods.{compact, parse, render}
import org.json4s.{DefaultFormats, Formats, JNothing, JNull, JValue}

import org.apache.spark.sql.types.{DataType, LongType, StructField, StructType}

import org.apache.spark.sql.rejoin.columns.{AggregateTypes, ElementColumns, InputColumns, SortColumn}
import rejoin.core.machine.{AggregateCallSpec, AggregateSpec, DeduplicateSpec, IntervalJoinSpec, JoinSpec,
  KeyChangesSpec, LookupJoinSpec, MultiJoinSpec, NormalizeSpec, OperatorSpec, RankSpec, RegularJoinSpec, SideSpec,
  SinkMaterializerSpec, TemporalJoinSpec, UnnestSpec}
import rejoin.core.time.{GateSpec, Timing, TopicTime}

/** The planner's JSON for a stateful operator (spark_jobs/plan/nodes/physical.py), read once on the driver: what
  * its machine has to know, and the types and expression texts that its machine's functions are made of.
  *
  * @param id
  *   its name within the query, which a checkpoint fixes
  * @param emitted
  *   columns of the packed left and right rows that the operator emits
  * @param order
  *   of the rows of a Top-N
  * @param elements
  *   of the collection that an UNNEST takes apart
  * @param inputs
  *   columns of the rows of each side, which it keeps
  */
final case class OperatorNode(
    id: String,
    spec: OperatorSpec,
    emitted: (StructType, StructType),
    inputs: Seq[InputColumns],
    join: JoinColumns,
    aggregate: Option[AggregateTypes],
    output: OutputTexts,
    order: Seq[SortColumn] = Nil,
    elements: Option[ElementColumns] = None) {

  /** What expressions over a result row are bound to; all columns are nullable, as padding makes them. */
  def joined: StructType = OperatorNode.joined(emitted)
}

/** @param filterNulls
  *   per column of the join key, whether NULL matches nothing (`=`) or NULL (`IS NOT DISTINCT FROM`)
  * @param residuals
  *   the residual predicate of each side from the second on, over the columns of all sides up to its own
  */
final case class JoinColumns(filterNulls: Seq[Boolean], residuals: Seq[Option[String]])

/** What happens to an operator's rows before they leave it: `Output` of spark_jobs/plan/nodes/parts.py. */
final case class OutputTexts(
    where: Option[String],
    pairBy: Option[Seq[String]],
    shown: Option[Seq[String]],
    timeZone: String,
    late: Option[LateTopic])

/** The topic for rows that an operator drops as late, and the operator's id. */
final case class LateTopic(topic: String, operator: String)

object OperatorNode {
  private implicit val formats: Formats = DefaultFormats
  private val NoColumns = StructType(Nil)

  def read(json: String): OperatorNode = read(parse(json))

  def read(node: JValue): OperatorNode = {
    val timing = timingOf(node)
    (node \ "kind").extract[String] match {
      case "normalize" =>
        def flag(name: String): Boolean = (node \ name).extract[Boolean]
        oneSided(node, NormalizeSpec(flag("positions"), flag("keyChanges"), timing))
      case "key-changes" => oneSided(node, KeyChangesSpec((node \ "waitMs").extract[Long], timing))
      case "regular-join" => twoSided(node, RegularJoinSpec(join(node), timing))
      case "interval-join" =>
        def ms(name: String): Long = (node \ name).extract[Long]
        val lateness = present(node \ "allowedLatenessMs").fold(0L)(_.extract[Long])
        val changes = present(node \ "changes").exists(_.extract[Boolean])
        val early = present(node \ "earlyFireMs").map(_.extract[Long])
        val spec = IntervalJoinSpec(
          join(node), isEventTime(node), ms("lowerMs"), ms("upperMs"), ms("minCleanupMs"), lateness, changes, early,
          timing)
        twoSided(node, spec)
      case "temporal-join" => twoSided(node, temporal(node, timing))
      case "lookup-join" =>
        val probeChanges = present(node \ "probeChanges").exists(_.extract[Boolean])
        twoSided(node, LookupJoinSpec(join(node), probeChanges, timing.copy(followsLeft = true)))
      case "multi-join" => multi(node, timing)
      case "deduplicate" =>
        def flag(name: String): Boolean = (node \ name).extract[Boolean]
        val keepsLast = (node \ "keep").extract[String] == "last"
        oneSided(
          node,
          DeduplicateSpec(keepsLast, isEventTime(node), flag("onWatermark"), flag("generateInsert"), timing))
      case "rank" => rank(node, timing)
      case "aggregate" => aggregate(node, timing)
      case "unnest" => unnest(node, timing)
      case "sink-materializer" =>
        val upsertKey = (node \ "upsertKey").extract[Seq[Int]]
        val spec = SinkMaterializerSpec((node \ "strategy").extract[String], upsertKey.nonEmpty, timing)
        oneSided(node, spec, upsertKey)
      case other => throw new IllegalArgumentException(s"the kernel has no operator '$other'")
    }
  }

  def joined(emitted: (StructType, StructType)): StructType =
    StructType((emitted._1 ++ emitted._2).map(_.copy(nullable = true)))

  private def rank(node: JValue, timing: Timing): OperatorNode = {
    val number = text(node \ "number").map(StructField(_, LongType, nullable = false))
    val bounds = Seq("first", "last").map(name => (node \ name).extract[Long])
    val spec = RankSpec(bounds(0), bounds(1), (node \ "appendOnly").extract[Boolean], number.isDefined, timing)
    val ranked = oneSided(node, spec)
    ranked.copy(
      emitted = (ranked.emitted._1, StructType(number.toSeq)),
      order = (node \ "order").extract[Seq[SortColumn]])
  }

  private def unnest(node: JValue, timing: Timing): OperatorNode = {
    def flag(name: String): Boolean = (node \ name).extract[Boolean]
    val ordinal = (node \ "collection").extract[Int]
    val columns = ElementColumns(schema(node \ "elements"), ordinal, flag("spreads"), flag("ordinality"))
    val rows = oneSided(node, UnnestSpec((node \ "joinType").extract[String] == "left", timing))
    rows.copy(
      emitted = (rows.emitted._1, columns.elements),
      join = JoinColumns(Nil, Seq(text(node \ "residual"))),
      elements = Some(columns))
  }

  private def oneSided(node: JValue, spec: OperatorSpec, uniqueKey: Seq[Int] = Nil): OperatorNode = {
    val columns = schema(node \ "schema")
    val input = InputColumns(columns, uniqueKey)
    OperatorNode(idOf(node), spec, (columns, NoColumns), Seq(input), JoinColumns(Nil, Nil), None, outputOf(node))
  }

  private def twoSided(node: JValue, spec: OperatorSpec): OperatorNode = {
    val sides = Seq(node \ "left", node \ "right").map(inputColumns)
    val emitted = (sides(0).schema, sides(1).schema)
    val join = JoinColumns(filterNulls(node), Seq(text(node \ "residual")))
    OperatorNode(idOf(node), spec, emitted, sides, join, None, outputOf(node))
  }

  private def multi(node: JValue, timing: Timing): OperatorNode = {
    val sides = (node \ "sides").children
    val spec = MultiJoinSpec((node \ "joinTypes").extract[Seq[String]], sides.map(side(node, _)), timing)
    val join = JoinColumns(filterNulls(node), (node \ "residuals").children.map(text))
    val emitted = (schema(node \ "schema"), NoColumns)
    OperatorNode(idOf(node), spec, emitted, sides.map(inputColumns), join, None, outputOf(node))
  }

  private def aggregate(node: JValue, timing: Timing): OperatorNode = {
    val calls = (node \ "calls").children
    val types = AggregateTypes(
      schema(node \ "inputSchema"),
      schema(node \ "key"),
      calls.map(call => DataType.fromJson(compact(render(call \ "type")))))
    val noInput = present(node \ "noInput").exists(_.extract[Boolean])
    oneSided(node, AggregateSpec(calls.map(call), noInput, timing)).copy(aggregate = Some(types))
  }

  private def idOf(node: JValue): String = (node \ "id").extract[String]

  private def join(node: JValue): JoinSpec = JoinSpec(
    (node \ "joinType").extract[String],
    side(node, node \ "left"),
    side(node, node \ "right"),
    text(node \ "residual").isDefined)

  private def side(join: JValue, node: JValue): SideSpec = SideSpec(
    (node \ "layout").extract[String],
    (node \ "upsert").extract[Boolean],
    text(join \ "inputFaults").contains("trust"))

  private def inputColumns(side: JValue): InputColumns =
    InputColumns(schema(side \ "schema"), (side \ "uniqueKey").extract[Seq[Int]])

  private def filterNulls(node: JValue): Seq[Boolean] = (node \ "filterNulls").extract[Seq[Boolean]]

  private def temporal(node: JValue, timing: Timing): TemporalJoinSpec = {
    val gate = node \ "gate"
    val gateSpec = GateSpec(
      (gate \ "kind").extract[String],
      (gate \ "atMs").extract[Long],
      (gate \ "timeoutMs").extract[Long],
      (gate \ "onTimeout").extract[String],
      (gate \ "table").extract[String],
      timing.inputs.drop(1).flatten)
    val joinsLate = text(node \ "lateProbe").contains("join")
    val followed = timing.copy(followsLeft = !isEventTime(node))
    val probeChanges = present(node \ "probeChanges").exists(_.extract[Boolean])
    TemporalJoinSpec(join(node), isEventTime(node), gateSpec, joinsLate, probeChanges, followed)
  }

  private def call(node: JValue): AggregateCallSpec =
    AggregateCallSpec(
      (node \ "function").extract[String],
      present(node \ "argument").map(_.extract[Int]),
      (node \ "distinct").extract[Boolean],
      present(node \ "filter").map(_.extract[Int]),
      takesNulls = present(node \ "takesNulls").exists(_.extract[Boolean]),
      separator = text(node \ "separator").getOrElse(""),
      appendOnly = present(node \ "appendOnly").exists(_.extract[Boolean]))

  private def isEventTime(node: JValue): Boolean = (node \ "time").extract[String] == "event"

  private def outputOf(node: JValue): OutputTexts =
    OutputTexts(
      text(node \ "output" \ "where"),
      present(node \ "output" \ "pairBy").map(_.extract[Seq[String]]),
      present(node \ "output" \ "shown").map(_.extract[Seq[String]]),
      (node \ "output" \ "timeZone").extract[String],
      text(node \ "output" \ "lateTopic").map(LateTopic(_, idOf(node))))

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

  /** A value of the planner's JSON, with null read as nothing. */
  def present(node: JValue): Option[JValue] = node match {
    case JNothing | JNull => None
    case value => Some(value)
  }
}
