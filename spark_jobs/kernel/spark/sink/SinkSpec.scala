package org.apache.spark.sql.rejoin.sink

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

/** How the records of one query are written.
  *
  * @param checkpoint
  *   identity of the checkpoint that counts the epochs
  * @param generation
  *   number of this driver among those of the checkpoint
  * @param dense
  *   every epoch has a task for every sink partition
  * @param partitions
  *   of the topic when the checkpoint began: records of a key stay in their partition when it grows
  * @param heartbeatMs
  *   an idle writer commits its ledger again so often, or the broker forgets it
  * @param deletesFirst
  *   records of one key come from several upstream partitions: tombstones leave before the others
  * @param onError
  *   what a result does that is too large for the topic
  */
final case class SinkSpec(
    name: String,
    table: String,
    topic: String,
    guarantee: String,
    transactionalIdPrefix: String,
    properties: Map[String, String],
    checkpoint: String,
    generation: Long,
    dense: Boolean,
    partitions: Option[Int],
    heartbeatMs: Long,
    deletesFirst: Boolean,
    onError: String,
    deadLetterTopic: Option[String]) {
  def exactlyOnce: Boolean = guarantee == "exactly-once"
  def writerId(partition: Long): String = s"$transactionalIdPrefix-$name-$partition"
}

object SinkSpec {
  def read(json: String): SinkSpec = {
    implicit val formats: Formats = DefaultFormats
    parse(json).extract[SinkSpec]
  }
}
