package org.apache.spark.sql.rejoin.lookup

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
  *   none where an epoch that is repeated may meet other rows
  */
final class LookupTask(spec: LookupSpec, table: LookupTable, log: Option[LookupLog], counts: LookupCounts) {
  private val canMatch = PackedRows.hasNoNulls(Seq.fill(spec.key.size)(true))
  private val places = new mutable.LinkedHashMap[Bytes, Place]
  private val answers = new mutable.HashMap[Bytes, Array[Byte]]
  private val batch = new ArrayBuffer[Bytes]
  private val asked = new ArrayBuffer[LookupQuery]
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
    asked += table.ask(batch.map(_.bytes).toVector, () => counts.retried())
    batch.clear()
  }

  /** The answers to all rows; waits for the database. */
  def finish(): Iterator[Envelope] = {
    ask()
    val began = System.nanoTime()
    asked.foreach(query => query.keys.zip(await(query)).foreach { case (key, answer) => answers(Bytes(key)) = answer })
    val counting = if (places.isEmpty || logged.isDefined) answers else log.fold[Answers](answers)(_.write(answers))
    if (hits > 0 || asked.nonEmpty)
      counts.done(hits, asked.map(_.keys.size.toLong).sum, asked.size.toLong, (System.nanoTime() - began) / 1000000)
    val chunks = envelopes(counting)
    places.clear()
    answers.clear()
    asked.clear()
    chunks
  }

  private def await(query: LookupQuery): IndexedSeq[Array[Byte]] =
    try query.await()
    catch {
      case e: Exception if !e.isInstanceOf[InterruptedException] =>
        counts.failed()
        throw e
    }

  /** Gives up what has been asked and not answered, of a task that is stopped or fails. */
  def close(): Unit = asked.foreach(_.cancel())

  private type Answers = collection.Map[Bytes, Array[Byte]]

  private def envelopes(counting: Answers): Iterator[Envelope] = {
    val chunks = new mutable.TreeMap[Int, (CellWriter, Array[Int])]
    places.foreach { case (key, place) =>
      val (chunk, count) = chunks.getOrElseUpdate(place.group, (new CellWriter, Array(0)))
      RowChunks.write(RowKind.Insert, Envelope.NoTime, place.source, place.seq, key.bytes, counting(key), 0, chunk)
      count(0) += 1
    }
    chunks.iterator.map { case (group, (chunk, count)) =>
      Envelope.rows(group, LookupAnswer.Side, count(0), chunk.result(), Envelope.NoTime)
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

/** Who hears what tasks do. */
trait LookupCounts {

  /** A task has the answers of an epoch: so many keys from the cache and from the database, and how long it waited. */
  def done(hits: Long, misses: Long, queries: Long, waitedMs: Long): Unit

  /** A query has failed and is tried again; called by other threads than the task's. */
  def retried(): Unit

  /** A query has failed, and with it the task. */
  def failed(): Unit
}
