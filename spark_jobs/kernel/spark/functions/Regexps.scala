package org.apache.spark.sql.rejoin.functions

import java.util.concurrent.ConcurrentHashMap
import java.util.regex.{Pattern, PatternSyntaxException}

import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.unsafe.types.UTF8String

/** Functions of regular expressions with Flink's results: NULL where the expression is none. */
object Regexps {
  private final val Kept = 1000
  private val patterns = new ConcurrentHashMap[String, Option[Pattern]]
  private val similarPatterns = new ConcurrentHashMap[String, Pattern]

  def regexpCount(text: UTF8String, regexp: UTF8String): java.lang.Integer =
    pattern(regexp).map { found =>
      val matcher = found.matcher(text.toString)
      var count = 0
      while (matcher.find()) count += 1
      Int.box(count)
    }.orNull

  def regexpInstr(text: UTF8String, regexp: UTF8String): java.lang.Integer =
    pattern(regexp).map { found =>
      val matcher = found.matcher(text.toString)
      Int.box(if (matcher.find()) matcher.start + 1 else 0)
    }.orNull

  def regexpSubstr(text: UTF8String, regexp: UTF8String): UTF8String =
    pattern(regexp).map { found =>
      val matcher = found.matcher(text.toString)
      if (matcher.find()) UTF8String.fromString(matcher.group) else null
    }.orNull

  /** All matches of a group; NULL of a group that the expression does not have. */
  def regexpExtractAll(text: UTF8String, regexp: UTF8String, group: Int): ArrayData =
    pattern(regexp).map { found =>
      val matcher = found.matcher(text.toString)
      if (group < 0 || group > matcher.groupCount) null
      else {
        val all = Iterator.continually(matcher).takeWhile(_.find()).map(m => UTF8String.fromString(m.group(group)))
        new GenericArrayData(all.toArray[Any])
      }
    }.orNull

  /** SQL's SIMILAR TO, of the whole text; `escape` is empty if there is none. */
  def similar(text: UTF8String, form: UTF8String, escape: UTF8String): Boolean = {
    if (similarPatterns.size > Kept) similarPatterns.clear()
    val compiled = similarPatterns.computeIfAbsent(s"$escape $form", _ => {
      Pattern.compile(SimilarPattern.regexp(form.toString, escape.toString.headOption), Pattern.DOTALL)
    })
    compiled.matcher(text.toString).matches
  }

  private def pattern(regexp: UTF8String): Option[Pattern] = {
    if (patterns.size > Kept) patterns.clear()
    patterns.computeIfAbsent(regexp.toString, compiled)
  }

  private def compiled(regexp: String): Option[Pattern] =
    try Some(Pattern.compile(regexp))
    catch { case _: PatternSyntaxException => None }
}

/** SQL's regular expressions as Java's: `%` and `_` stand for any characters, `[:ALPHA:]` and its like for classes. */
private object SimilarPattern {
  private val classes = Map(
    "[:ALPHA:]" -> "\\p{Alpha}",
    "[:alpha:]" -> "\\p{Alpha}",
    "[:UPPER:]" -> "\\p{Upper}",
    "[:upper:]" -> "\\p{Upper}",
    "[:LOWER:]" -> "\\p{Lower}",
    "[:lower:]" -> "\\p{Lower}",
    "[:DIGIT:]" -> "\\d",
    "[:digit:]" -> "\\d",
    "[:SPACE:]" -> " ",
    "[:space:]" -> " ",
    "[:WHITESPACE:]" -> "\\s",
    "[:whitespace:]" -> "\\s",
    "[:ALNUM:]" -> "\\p{Alnum}",
    "[:alnum:]" -> "\\p{Alnum}")

  def regexp(form: String, escape: Option[Char]): String = {
    val found = new StringBuilder
    var isInClass = false
    var i = 0
    while (i < form.length) {
      val char = form.charAt(i)
      val named = classes.keys.find(form.startsWith(_, i))
      if (escape.contains(char) && i + 1 < form.length) {
        i += 1
        found.append(literal(form.charAt(i)))
      } else if (named.isDefined) {
        found.append(classes(named.get))
        i += named.get.length - 1
      } else {
        if (char == '[') isInClass = true else if (char == ']') isInClass = false
        found.append(char match {
          case '%' if !isInClass => "(?:.*)"
          case '_' if !isInClass => "."
          case '.' | '\\' | '$' | '^' if !isInClass => s"\\$char"
          case other => other.toString
        })
      }
      i += 1
    }
    found.toString
  }

  private def literal(char: Char): String = if (char.isLetterOrDigit) char.toString else s"\\$char"
}
