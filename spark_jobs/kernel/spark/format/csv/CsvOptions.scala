package org.apache.spark.sql.rejoin.format.csv

import org.apache.commons.text.StringEscapeUtils

import org.apache.spark.sql.rejoin.format.FormatSpec

/** Options of Flink's `csv` format.
  *
  * @param quote
  *   a character, or [[CsvOptions.NoChar]]; so is `escape`
  * @param nullLiteral
  *   the text that stands for NULL; null for none
  * @param scientific
  *   whether decimals lose their trailing zeros and are written as `1E+2`
  */
final case class CsvOptions(
    separator: Char,
    quote: Int,
    escape: Int,
    arraySeparator: String,
    nullLiteral: String,
    allowComments: Boolean,
    ignoreParseErrors: Boolean,
    trimSpaces: Boolean,
    ignoreTrailing: Boolean,
    allowTrailingComma: Boolean,
    failOnMissing: Boolean,
    emptyIsNull: Boolean,
    scientific: Boolean) {
  def isNull(text: String): Boolean = text == nullLiteral || emptyIsNull && text.isEmpty

  /** What is written for NULL. */
  def nullText: String = if (nullLiteral == null) "" else nullLiteral
}

object CsvOptions {
  final val NoChar = -1

  def apply(format: FormatSpec): CsvOptions = {
    def text(name: String, default: String): String = format.options.getOrElse(name, default)
    CsvOptions(
      separator = StringEscapeUtils.unescapeJava(text("field-delimiter", ",")).head,
      quote = if (format.flag("disable-quote-character")) NoChar else text("quote-character", "\"").head.toInt,
      escape = format.options.get("escape-character").fold(NoChar)(_.head.toInt),
      arraySeparator = text("array-element-delimiter", ";"),
      nullLiteral = format.options.getOrElse("null-literal", null),
      allowComments = format.flag("allow-comments"),
      ignoreParseErrors = format.flag("ignore-parse-errors"),
      trimSpaces = format.flag("trim-spaces"),
      ignoreTrailing = format.flag("ignore-trailing-unmappable"),
      allowTrailingComma = text("allow-trailing-comma", "true").equalsIgnoreCase("true"),
      failOnMissing = format.flag("fail-on-missing-columns"),
      emptyIsNull = format.flag("empty-string-as-null"),
      scientific = format.flag("write-bigdecimal-in-scientific-notation"))
  }
}
