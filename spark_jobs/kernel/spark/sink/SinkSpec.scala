package org.apache.spark.sql.rejoin.sink

import org.json4s.jackson.JsonMethods.parse
import org.json4s.{DefaultFormats, Formats}

/** How the records of one query are written.
  *
  * @param checkpoint
  *   id of the checkpoint whose epochs are written
  * @param generation
  *   number of this driver among all drivers of the checkpoint
  * @param dense
  *   whether every epoch has a task for every writer
  * @param ledgers
  *   how many writers have had a ledger since this driver's start; writers beyond them are new
  * @param partitions
  *   the topic's partition count when the checkpoint was new: a key keeps its partition when the topic grows
  * @param heartbeatMs
  *   an idle writer commits its ledger again at this interval, or the broker would delete it
  * @param deletesFirst
  *   whether retractions are sent first: records of one key come from several upstream partitions
  * @param realTime
  *   whether records come during the whole epoch; with transactions in steps, else one by one
  * @param folder
  *   the query's part of the checkpoint
  * @param onError
  *   policy for a result that is too large for the topic
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
    ledgers: Long,
    partitions: Option[Int],
    heartbeatMs: Long,
    deletesFirst: Boolean,
    realTime: Boolean,
    folder: String,
    onError: String,
    deadLetterTopic: Option[String]) {
  def exactlyOnce: Boolean = guarantee == "exactly-once"

  /** Whether records come in steps of an epoch, each of which is committed. */
  def inSteps: Boolean = realTime && exactlyOnce

  /** Whether records leave as they come. */
  def atOnce: Boolean = realTime && !exactlyOnce
  def writerId(writer: Long): String = s"$writersId-$writer"

  /** What the ids of all writers begin with. */
  def writersId: String = s"$transactionalIdPrefix-$name"
}

object SinkSpec {
  private implicit val formats: Formats = DefaultFormats

  /** Field by field: to find them, json4s would read the class's signature, for a quarter of a second of a start. */
  def read(json: String): SinkSpec = {
    val node = parse(json)
    SinkSpec(
      name = (node \ "name").extract[String],
      table = (node \ "table").extract[String],
      topic = (node \ "topic").extract[String],
      guarantee = (node \ "guarantee").extract[String],
      transactionalIdPrefix = (node \ "transactionalIdPrefix").extract[String],
      properties = (node \ "properties").extract[Map[String, String]],
      checkpoint = (node \ "checkpoint").extract[String],
      generation = (node \ "generation").extract[Long],
      dense = (node \ "dense").extract[Boolean],
      ledgers = (node \ "ledgers").extract[Long],
      partitions = (node \ "partitions").extractOpt[Int],
      heartbeatMs = (node \ "heartbeatMs").extract[Long],
      deletesFirst = (node \ "deletesFirst").extract[Boolean],
      realTime = (node \ "realTime").extract[Boolean],
      folder = (node \ "folder").extract[String],
      onError = (node \ "onError").extract[String],
      deadLetterTopic = (node \ "deadLetterTopic").extractOpt[String])
  }
}
