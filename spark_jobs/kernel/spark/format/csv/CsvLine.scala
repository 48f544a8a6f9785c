package org.apache.spark.sql.rejoin.format.csv

import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}

/** Splits the first line of a text into fields, by the rules of the parser that Flink uses (Jackson's).
  *
  * A field in quotes begins with the quote; spaces may stand between its end and the separator. What follows
  * the line is no part of the row.
  */
private[rejoin] final class CsvLine(options: CsvOptions, columns: Int) {
  private val fields = new Array[String](columns)
  private val field = new java.lang.StringBuilder
  private var text: String = _
  private var at = 0
  private var count = 0

  /** How many columns the line has a field for. */
  def size: Int = math.min(count, columns)

  def apply(column: Int): String = fields(column)

  def read(line: String): Unit = {
    text = line
    at = 0
    count = 0
    if (options.allowComments) skipComments()
    if (at == text.length) fail("the record is empty")
    while (readField()) keep()
    keep()
    if (count > columns && !mayFollow) fail(s"more than $columns fields")
    if (count < columns && (options.failOnMissing || !options.ignoreParseErrors))
      fail(s"$count fields where $columns are expected")
  }

  private def keep(): Unit = {
    if (count < columns) fields(count) = field.toString
    count += 1
  }

  /** Whether fields after those of the columns are allowed; `field` is the last one. */
  private def mayFollow: Boolean =
    options.ignoreTrailing ||
      options.allowTrailingComma && count == columns + 1 && field.toString.trim.isEmpty

  /** Reads the next field; whether another one follows. */
  private def readField(): Boolean = {
    field.setLength(0)
    if (options.trimSpaces) skipSpaces()
    if (isAt(options.quote)) readQuoted() else readPlain()
  }

  private def readPlain(): Boolean = {
    var end = CsvOptions.NoChar
    while (end == CsvOptions.NoChar && at < text.length) {
      val c = next()
      if (c == options.separator || isLineEnd(c)) end = c.toInt else append(c)
    }
    if (options.trimSpaces) trimEnd()
    end == options.separator
  }

  private def readQuoted(): Boolean = {
    at += 1
    readToQuote()
    while (isAt(options.quote)) {
      field.append(next())
      readToQuote()
    }
    var end = CsvOptions.NoChar
    while (end == CsvOptions.NoChar && at < text.length) {
      val c = next()
      if (c == options.separator || isLineEnd(c)) end = c.toInt
      else if (c > ' ') fail(s"'$c' after a closing quote")
    }
    end == options.separator
  }

  private def readToQuote(): Unit = {
    while (at < text.length && text.charAt(at) != options.quote) append(next())
    if (at == text.length) fail("a closing quote is missing")
    at += 1
  }

  private def append(c: Char): Unit = field.append(if (c == options.escape) unescaped() else c)

  private def unescaped(): Char = {
    if (at == text.length) fail("nothing follows the escape character")
    next() match {
      case '0' => '\u0000'
      case 'n' => '\n'
      case 'r' => '\r'
      case 't' => '\t'
      case other => other
    }
  }

  /** Skips lines of comments, empty lines, and spaces before the row. */
  private def skipComments(): Unit =
    while (at < text.length && (text.charAt(at) == '#' || text.charAt(at) == ' ' || isLineEnd(text.charAt(at))))
      if (next() == '#') while (at < text.length && !isLineEnd(text.charAt(at))) at += 1

  private def skipSpaces(): Unit =
    while (at < text.length && text.charAt(at) <= ' ' && text.charAt(at) != options.separator &&
      !isLineEnd(text.charAt(at))) at += 1

  private def trimEnd(): Unit =
    while (field.length > 0 && field.charAt(field.length - 1) <= ' ') field.setLength(field.length - 1)

  private def next(): Char = {
    at += 1
    text.charAt(at - 1)
  }

  private def isAt(c: Int): Boolean = at < text.length && text.charAt(at) == c

  private def isLineEnd(c: Char): Boolean = c == '\n' || c == '\r'

  private def fail(problem: String): Nothing = throw new BadRecord(Reason.CsvMalformed, problem)
}
