package org.apache.spark.sql.rejoin

import org.json4s.{DefaultFormats, Formats, JNothing, JNull, JValue}
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.sql.types.{DataType, StructType}

/** The planner's JSON for stateful operators (spark_jobs/plan/physical.py), read once on the driver. */
sealed trait OperatorSpec

final case class NormalizeSpec(schema: StructType, key: Seq[Int], filter: Option[String], updateBefore: Boolean)
    extends OperatorSpec

/** What is known of one input of a join.
  *
  * @param layout
  *   one of the three of seed 001: join-key-contains-unique-key, has-unique-key, no-unique-key
  * @param upsert
  *   rows come without their old rows; the join finds those in its own state
  */
final case class SideSpec(schema: StructType, layout: String, uniqueKey: Seq[Int], upsert: Boolean)

object SideSpec {
  val JoinKeyContainsUniqueKey = "join-key-contains-unique-key"
  val HasUniqueKey = "has-unique-key"
  val NoUniqueKey = "no-unique-key"
}

/** What both kinds of join share.
  *
  * @param filterNulls
  *   per column of the join key, whether NULL matches nothing (`=`) or NULL (`IS NOT DISTINCT FROM`)
  * @param pairBy
  *   the sink's key over left and right columns; set for upsert sinks
  */
final case class JoinSpec(
    joinType: String,
    left: SideSpec,
    right: SideSpec,
    keySize: Int,
    filterNulls: Seq[Boolean],
    residual: Option[String],
    where: Option[String],
    pairBy: Option[Seq[String]],
    timeZone: String) {
  require(JoinSpec.Types.contains(joinType), s"join type $joinType is not one of ${JoinSpec.Types.mkString(", ")}")

  def leftIsOuter: Boolean = joinType == "left" || joinType == "full"
  def rightIsOuter: Boolean = joinType == "right" || joinType == "full"
  def hasResidual: Boolean = residual.isDefined
  def joined: StructType = StructType(left.schema.fields ++ right.schema.fields)
}

object JoinSpec {
  private val Types = Seq("inner", "left", "right", "full")
}

final case class RegularJoinSpec(join: JoinSpec) extends OperatorSpec

final case class TemporalJoinSpec(join: JoinSpec, watermarkRule: WatermarkRule) extends OperatorSpec

object OperatorSpec {
  private implicit val formats: Formats = DefaultFormats

  def read(json: String): OperatorSpec = {
    val node = parse(json)
    (node \ "kind").extract[String] match {
      case "normalize" =>
        NormalizeSpec(
          schema(node \ "schema"),
          (node \ "key").extract[Seq[Int]],
          text(node \ "filter"),
          (node \ "updateBefore").extract[Boolean])
      case "regular-join" => RegularJoinSpec(join(node))
      case "temporal-join" => TemporalJoinSpec(join(node), watermarkRule(node))
      case other => throw new IllegalArgumentException(s"the kernel has no operator '$other'")
    }
  }

  private def join(node: JValue): JoinSpec =
    JoinSpec(
      (node \ "joinType").extract[String],
      side(node \ "left"),
      side(node \ "right"),
      schema(node \ "key").size,
      (node \ "filterNulls").extract[Seq[Boolean]],
      text(node \ "residual"),
      text(node \ "where"),
      present(node \ "pairBy").map(_.extract[Seq[String]]),
      text(node \ "timeZone").getOrElse(Expressions.DefaultTimeZone))

  private def side(node: JValue): SideSpec =
    SideSpec(
      schema(node \ "schema"),
      text(node \ "layout").getOrElse(SideSpec.NoUniqueKey),
      present(node \ "uniqueKey").fold(Seq.empty[Int])(_.extract[Seq[Int]]),
      present(node \ "upsert").exists(_.extract[Boolean]))

  private def watermarkRule(node: JValue): WatermarkRule =
    WatermarkRule(
      Seq((node \ "leftTopics").extract[Seq[Int]], (node \ "rightTopics").extract[Seq[Int]]),
      (node \ "watermarkPolicy").extract[String],
      (node \ "idleTimeoutMs").extract[Long])

  def schema(node: JValue): StructType = DataType.fromJson(compact(render(node))).asInstanceOf[StructType]

  private def text(node: JValue): Option[String] = present(node).map(_.extract[String])

  /** What the planner has said, with null read as nothing. */
  def present(node: JValue): Option[JValue] = node match {
    case JNothing | JNull => None
    case value => Some(value)
  }
}
