package org.apache.spark.sql.rejoin.functions

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.spark.unsafe.types.UTF8String

/** Flink's JSON functions over texts.
  *
  * JSON_VALUE, JSON_QUERY and JSON_EXISTS give a letter that says what was found, before the text of a value: the
  * planner's text chooses what ON EMPTY and ON ERROR say. A path is `lax` or `strict`, which it is without a word.
  */
object JsonTexts {
  private final val Value = "V"
  private final val Empty = UTF8String.fromString("E")
  private final val Error = UTF8String.fromString("X")
  private final val Kept = 1000
  private val mapper: ObjectMapper = JsonMapper.builder()
    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
    .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
    .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
    .build()
  private val paths = new ConcurrentHashMap[String, JsonPath]

  /** The scalar at a path: as a text, `E` where there is none, `X` of an error. */
  def jsonValue(json: UTF8String, path: UTF8String): UTF8String = find(json, path) match {
    case Failed => Error
    case Found(null) => Empty
    case Found(node) if node.isContainerNode && isLax(path) => Empty
    case Found(node) if node.isContainerNode => Error
    case Found(node) => UTF8String.fromString(Value + scalar(node))
  }

  /** The object or array at a path, in the array that `wrapper` asks for. */
  def jsonQuery(json: UTF8String, path: UTF8String, wrapper: UTF8String): UTF8String = find(json, path) match {
    case Failed => Error
    case Found(null) => Empty
    case Found(node) =>
      val wrapped = wrapper.toString match {
        case "UNCONDITIONAL" => mapper.createArrayNode.add(node)
        case "CONDITIONAL" if !node.isArray => mapper.createArrayNode.add(node)
        case _ => node
      }
      if (wrapped.isContainerNode) UTF8String.fromString(Value + written(wrapped))
      else if (isLax(path)) Empty
      else Error
  }

  def jsonExists(json: UTF8String, path: UTF8String): UTF8String = find(json, path) match {
    case Failed => Error
    case Found(node) => UTF8String.fromString(if (node == null) "F" else "T")
  }

  /** `kind`: VALUE, OBJECT, ARRAY or SCALAR. */
  def isJson(text: UTF8String, kind: UTF8String): Boolean = {
    val node = read(text)
    node != null && (kind.toString match {
      case "OBJECT" => node.isObject
      case "ARRAY" => node.isArray
      case "SCALAR" => !node.isContainerNode
      case _ => true
    })
  }

  /** The text without blanks.
    *
    * Raises IllegalArgumentException if it is not JSON.
    */
  def jsonFormat(text: UTF8String): UTF8String = {
    val node = read(text)
    if (node == null) throw new IllegalArgumentException(s"not JSON: $text")
    UTF8String.fromString(written(node))
  }

  /** A JSON string of ASCII characters. */
  def jsonQuote(text: UTF8String): UTF8String = {
    val found = new StringBuilder("\"")
    text.toString.foreach {
      case '"' => found.append("\\\"")
      case '\\' => found.append("\\\\")
      case '/' => found.append("\\/")
      case '\b' => found.append("\\b")
      case '\f' => found.append("\\f")
      case '\n' => found.append("\\n")
      case '\r' => found.append("\\r")
      case '\t' => found.append("\\t")
      case char if char < ' ' || char > '~' => found.append(f"\\u${char.toInt}%04x")
      case char => found.append(char)
    }
    UTF8String.fromString(found.append('"').toString)
  }

  /** The text of a JSON string; any other text stays as it is. */
  def jsonUnquote(text: UTF8String): UTF8String = {
    val isQuoted = text.numChars > 1 && text.toString.startsWith("\"") && text.toString.endsWith("\"")
    val node = if (isQuoted) read(text) else null
    if (node != null && node.isTextual) UTF8String.fromString(node.textValue) else text
  }

  /** A text as a JSON string. */
  def jsonString(text: UTF8String): UTF8String = UTF8String.fromString(mapper.writeValueAsString(text.toString))

  private def scalar(node: JsonNode): String = if (node.isTextual) node.textValue else written(node)

  private def written(node: JsonNode): String = mapper.writeValueAsString(sorted(node))

  /** Objects with their names in order, as Flink writes them. */
  private def sorted(node: JsonNode): JsonNode = node match {
    case fields: ObjectNode =>
      val found = mapper.createObjectNode
      fields.fieldNames.asScala.toSeq.sorted.foreach(name => found.set[JsonNode](name, sorted(fields.get(name))))
      found
    case items: ArrayNode =>
      val found = mapper.createArrayNode
      items.forEach(item => found.add(sorted(item)))
      found
    case other => other
  }

  private sealed trait Outcome
  private case object Failed extends Outcome
  private final case class Found(node: JsonNode) extends Outcome

  /** What a path leads to; a null node where nothing is there or `null` is. */
  private def find(json: UTF8String, text: UTF8String): Outcome = {
    val path = compiled(text)
    val root = read(json)
    if (root == null) { if (path.isLax) Found(null) else Failed }
    else if (root.isNull) Failed
    else
      try {
        val nodes = path.find(root)
        if (!path.isDefinite) {
          val all = mapper.createArrayNode
          nodes.foreach(node => all.add(node))
          Found(all)
        } else if (nodes.headOption.exists(!_.isNull)) Found(nodes.head)
        else if (path.isLax) Found(null)
        else Failed
      } catch { case _: NoSuchElementException => Failed }
  }

  private def isLax(path: UTF8String): Boolean = compiled(path).isLax

  private def compiled(path: UTF8String): JsonPath = {
    if (paths.size > Kept) paths.clear()
    paths.computeIfAbsent(path.toString, JsonPath(_))
  }

  private def read(json: UTF8String): JsonNode =
    try {
      val node = mapper.readTree(json.getBytes)
      if (node == null || node.isMissingNode) null else node
    } catch { case _: JsonProcessingException => null }
}
