package org.apache.spark.sql.rejoin.format.json

import com.fasterxml.jackson.core.JsonParser
import com.fasterxml.jackson.core.JsonToken._

import org.apache.spark.sql.catalyst.InternalRow

import org.apache.spark.sql.rejoin.format.{Decoded, FieldTarget, FormatSpec, SourceRecord, ValueDecoder}
import org.apache.spark.sql.rejoin.ingest.{BadRecord, Reason}
import rejoin.core.row.RowKind

/** `{"op": "+I|-U|+U|-D", "data": {row}}`: a complete changelog, one record per row change.
  *
  * @param isUpsert
  *   whether rows are taken by primary key: a -U says nothing then, its +U replaces the row
  */
final class ChangelogJsonDecoder(format: FormatSpec, targets: Seq[FieldTarget], isUpsert: Boolean)
    extends ValueDecoder {
  private val fields = new JsonFields(JsonOptions(format), targets)
  private var op: String = _
  private var hasData = false

  override def decode(record: SourceRecord, into: Decoded): Unit = if (record.value != null) {
    op = null
    hasData = false
    Json.readObject(record.value)(read(_, into.after))
    if (!hasData) throw new BadRecord(Reason.MissingAfter, "no 'data'")
    val change = kind
    if (!isUpsert || change != RowKind.UpdateBefore) into.afterKind = change
  }

  private def read(parser: JsonParser, row: InternalRow): Unit =
    while (parser.nextToken() == FIELD_NAME) {
      val name = parser.currentName()
      val value = parser.nextToken()
      if (name == "data" && value == START_OBJECT) {
        fields.read(parser, row)
        hasData = true
      } else if (name == "op") op = parser.getText
      else parser.skipChildren()
    }

  private def kind: Byte =
    try RowKind.parse(op)
    catch {
      case _: IllegalArgumentException =>
        throw new BadRecord(Reason.UnknownOp, s"unknown op '$op'")
    }
}
