package org.apache.spark.sql.rejoin.functions

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

/** A path such as `lax $.a[0].b`, without filters, scripts and functions.
  *
  * It is definite if it can lead to one value only. Where a step finds nothing, a `lax` path finds nothing, as does a
  * path that was indefinite before; a `strict` one fails with NoSuchElementException.
  */
final class JsonPath(steps: Seq[JsonPath.Step], val isLax: Boolean) {
  import JsonPath._

  val isDefinite: Boolean = steps.forall(_.isDefinite)

  def find(root: JsonNode): Seq[JsonNode] = {
    val found = walk(root, steps, isStrict = !isLax)
    if (found.isEmpty && isDefinite && !isLax) throw new NoSuchElementException
    found
  }

  private def walk(node: JsonNode, rest: Seq[Step], isStrict: Boolean): Seq[JsonNode] =
    if (rest.isEmpty) Seq(node)
    else {
      val (step, after) = (rest.head, rest.tail)
      val found = step.from(node)
      if (isStrict && found.isEmpty && needed(step, node, after)) throw new NoSuchElementException
      found.flatMap(walk(_, after, isStrict && step.isDefinite))
    }

  /** Names that lead on, and any step into a value of another kind, have to be there. */
  private def needed(step: Step, node: JsonNode, after: Seq[Step]): Boolean = step match {
    case _: Names => !node.isObject || after.nonEmpty
    case _: Items => !node.isArray
    case _ => false
  }
}

object JsonPath {

  sealed trait Step {
    def isDefinite: Boolean
    def from(node: JsonNode): Seq[JsonNode]
  }

  private final case class Names(names: Seq[String]) extends Step {
    def isDefinite: Boolean = names.size == 1
    def from(node: JsonNode): Seq[JsonNode] =
      if (node.isObject) names.flatMap(name => Option(node.get(name))) else Nil
  }

  private final case class Items(indexes: Seq[Int]) extends Step {
    def isDefinite: Boolean = indexes.size == 1
    def from(node: JsonNode): Seq[JsonNode] =
      if (node.isArray) indexes.flatMap(i => Option(node.get(if (i < 0) node.size + i else i))) else Nil
  }

  private final case class Slice(from: Option[Int], to: Option[Int]) extends Step {
    def isDefinite = false
    def from(node: JsonNode): Seq[JsonNode] = if (!node.isArray) Nil
    else {
      def place(i: Int) = (if (i < 0) node.size + i else i).max(0).min(node.size)
      (place(from.getOrElse(0)) until place(to.getOrElse(node.size))).map(node.get)
    }
  }

  private case object All extends Step {
    def isDefinite = false
    def from(node: JsonNode): Seq[JsonNode] = node.elements.asScala.toSeq
  }

  /** The value itself and everything in it, from the outside to the inside. */
  private case object Deep extends Step {
    def isDefinite = false
    def from(node: JsonNode): Seq[JsonNode] = node +: node.elements.asScala.toSeq.flatMap(from)
  }

  private val mode = raw"(?is)\s*(lax|strict)\s+(.*)".r
  private val token =
    (raw"""(\.\.)|\.?\s*\[\s*(\*)\s*\]|\.(\*)|""" +
      raw"""\.?\[\s*('[^']*'(?:\s*,\s*'[^']*')*|"[^"]*"(?:\s*,\s*"[^"]*")*)\s*\]|""" +
      raw"""\[\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*\]|\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]|""" +
      raw"""\.?([^\s.\[\]()?*'"]+)""").r
  private val quoted = """'([^']*)'|"([^"]*)"""".r

  /** Raises IllegalArgumentException for a path that is none, or that has a filter. */
  def apply(text: String): JsonPath = text match {
    case mode(word, path) => new JsonPath(steps(path.trim), word.equalsIgnoreCase("lax"))
    case path => new JsonPath(steps(path.trim), isLax = false)
  }

  private def steps(path: String): Seq[Step] = {
    def wrong = throw new IllegalArgumentException(s"not a JSON path: $path")
    if (!path.startsWith("$")) wrong
    var at = 1
    val found = Seq.newBuilder[Step]
    while (at < path.length) {
      val next = token.findPrefixMatchOf(path.substring(at)).getOrElse(wrong)
      found += step(next)
      at += next.end
    }
    found.result()
  }

  private def step(found: scala.util.matching.Regex.Match): Step = {
    def number(group: Int) = Option(found.group(group)).filter(_.nonEmpty).map(_.toInt)
    if (found.group(1) != null) Deep
    else if (found.group(2) != null || found.group(3) != null) All
    else if (found.group(4) != null)
      Names(quoted.findAllMatchIn(found.group(4)).map(m => Option(m.group(1)).getOrElse(m.group(2))).toSeq)
    else if (found.group(5) != null) Items(found.group(5).split(",").map(_.trim.toInt).toSeq)
    else if (found.group(8) != null) Names(Seq(found.group(8)))
    else Slice(number(6), number(7))
  }
}
