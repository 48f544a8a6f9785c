package org.apache.spark.sql.rejoin.lookup

import java.util.concurrent.Future

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.rejoin.columns.PackedRows
import rejoin.core.machine.join.LookupAnswer
import rejoin.core.row.{Bytes, CellWriter, Envelope, RowChunks, RowKind}

/** What one task asks the database in one epoch: each key once, many keys in one query, some queries at a time.
  *
  * Left rows pass it by; their answers follow behind the last one.
  *
  * @param log
  *   none where an epoch is never repeated
  */
final class LookupTask(spec: LookupSpec, table: LookupTable, log: Option[LookupLog], tell: LookupCounts => Unit) {
  private val canMatch = PackedRows.hasNoNulls(Seq.fill(spec.key.size)(true))
  private val places = new mutable.LinkedHashMap[Bytes, Place]
  private val answers = new mutable.HashMap[Bytes, Array[Byte]]
  private val batch = new ArrayBuffer[Bytes]
  private val asked = new ArrayBuffer[(Seq[Bytes], Future[Asked])]
  private lazy val logged = log.flatMap(_.read())
  private var hits = 0L

  def add(envelope: Envelope): Unit =
    if (envelope.kind == RowKind.Rows) RowChunks.foreach(envelope)(addRow)
    else if (RowKind.isRow(envelope.kind)) addRow(envelope)

  private def addRow(row: Envelope): Unit =
    if (RowKind.isAdd(row.kind) && canMatch(row.key)) {
      val key = Bytes(row.key)
      places.get(key) match {
        case Some(place) => place.meet(row)
        case None =>
          places(key) = new Place(row)
          logged.flatMap(_.get(key)) match {
            case Some(answer) => answers(key) = answer
            case None => find(key)
          }
      }
    }

  private def find(key: Bytes): Unit = table.cached(key) match {
    case Some(answer) =>
      hits += 1
      answers(key) = answer
    case None =>
      batch += key
      if (batch.size == LookupTable.MaxKeys) ask()
  }

  private def ask(): Unit = if (batch.nonEmpty) {
    val keys = batch.toVector
    asked += keys -> table.ask(keys.map(_.bytes))
    batch.clear()
  }

  /** The answers to all rows; waits for the database. */
  def finish(): Iterator[Envelope] = {
    ask()
    val done = asked.map { case (keys, query) => keys -> LookupTable.await(query) }
    done.foreach { case (keys, query) => keys.zip(query.answers).foreach { case (k, answer) => answers(k) = answer } }
    val counting = if (places.isEmpty || logged.isDefined) answers else log.fold[Answers](answers)(_.write(answers))
    if (places.nonEmpty)
      tell(counts(done.toSeq.map { case (keys, query) => (keys.size, query) }))
    val chunks = envelopes(counting)
    places.clear()
    answers.clear()
    asked.clear()
    chunks
  }

  private def counts(done: Seq[(Int, Asked)]): LookupCounts = {
    val queries = done.map(_._2)
    LookupCounts(hits, done.map(_._1).sum, queries.size, queries.map(_.retries).sum, queries.map(_.tookMs).sum)
  }

  private type Answers = collection.Map[Bytes, Array[Byte]]

  private def envelopes(counting: Answers): Iterator[Envelope] = {
    val chunks = new mutable.TreeMap[Int, (CellWriter, Array[Int])]
    places.foreach { case (key, place) =>
      val (chunk, count) = chunks.getOrElseUpdate(place.group, (new CellWriter, Array(0)))
      RowChunks.write(RowKind.Insert, Envelope.NoTime, place.source, place.seq, key.bytes, counting(key), chunk)
      count(0) += 1
    }
    chunks.iterator.map { case (group, (chunk, count)) =>
      Envelope.rows(group, LookupAnswer.Side, count(0), chunk.result())
    }
  }
}

/** Where the first row of a key stands, by which the answers of several tasks are in order. */
private final class Place(row: Envelope) {
  val group: Int = row.group
  var source: Int = row.source
  var seq: Long = row.seq

  def meet(row: Envelope): Unit =
    if (row.source < source || (row.source == source && row.seq < seq)) {
      source = row.source
      seq = row.seq
    }
}

/** What a task did in an epoch: keys from the cache and from the database, queries, and what these took. */
final case class LookupCounts(hits: Long, misses: Long, queries: Long, retries: Long, tookMs: Long)
