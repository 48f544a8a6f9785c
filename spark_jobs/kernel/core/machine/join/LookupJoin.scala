package rejoin.core.machine.join

import rejoin.core.machine.{LookupJoinSpec, Machine, OutputFunctions}
import rejoin.core.row.{CellReader, CellWriter, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output, RowKind}
import rejoin.core.state.KeyedState
import rejoin.core.time.GroupState

/** Lookup join: each left (probe) row meets what a database holds of its key.
  *
  * Answers come beside the rows that asked, on side 1, one per key and asking task: see [[LookupAnswer]]. All rows of
  * a key and epoch meet the same answer, that of the first task. Only what changing probe rows were joined with is
  * stored ([[ProbeMemory]]). Rules: docs/semantics.md, "Lookup join".
  */
final class LookupJoin(lookup: LookupJoinSpec, functions: JoinFunctions, outputs: OutputFunctions) extends Machine {
  private val memory = Option.when(lookup.probeChanges) {
    new ProbeMemory(lookup.join.left, isEventTime = false, lookup.timing, functions.left)
  }
  private val partners = new CellWriter
  private val results = outputs.arrivalOrder()

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    memory.foreach(_.begin(group, state).foreach(_ => ()))
    batch.foreachKey(visit(_, group, state, out))
    memory.foreach(_.end(state))
  }

  private def visit(rows: KeyRows, group: GroupState, state: KeyedState, out: Output): Unit = {
    memory.foreach(_.turnTo(rows.key, state))
    val matchable = functions.canMatch(rows.key)
    val hash = GroupBatch.hash(rows.key)
    val found = if (matchable) LookupAnswer.of(rows) else Some(Nil)
    rows.foreach { row =>
      if (row.side == 0) {
        if (RowKind.isAdd(row.kind)) {
          if (found.isEmpty) throw new IllegalStateException("a left row has come without the answer to its lookup")
          join(row, found.get, matchable, hash, out)
        } else takeBack(row, matchable, hash, group, out)
      }
    }
    results.flush(hash, out)
    memory.foreach(_.save(group))
  }

  private def join(row: Envelope, found: Seq[Array[Byte]], matchable: Boolean, hash: Int, out: Output): Unit = {
    partners.reset()
    val matches = found.filter(functions.residual(row.row, _))
    emit(row, matches, hash, out)
    if (matchable) memory.foreach { known =>
      matches.foreach(partners.blob)
      known.add(known.idOf(row.row, Envelope.NoTime), partners.result())
    }
  }

  /** What a row was joined with is known; without a key that can match it was nothing. */
  private def takeBack(row: Envelope, matchable: Boolean, hash: Int, group: GroupState, out: Output): Unit =
    if (!matchable) emit(row, Nil, hash, out)
    else {
      val joined = memory.map(known => known.take(known.idOf(row.row, Envelope.NoTime))).orNull
      if (joined == null) group.unknownRetractions += 1
      else emit(row, LookupAnswer.rowsIn(joined), hash, out)
    }

  private def emit(row: Envelope, matches: Seq[Array[Byte]], hash: Int, out: Output): Unit =
    if (matches.nonEmpty) matches.foreach(results.emit(row.kind, hash, row.row, _, out))
    else if (lookup.join.leftIsOuter) results.emit(row.kind, hash, row.row, null, out)

  def keyTag: Char = 'J'

  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    memory.foreach(_.turnTo(key, state))
    new KeyContents(Seq(memory.fold(0L)(_.size), 0L), hasTimes = false) {
      def foreach(visit: KeptRow => Unit): Unit =
        memory.foreach(_.show(joined => (Envelope.NoTime, LookupAnswer.rowsIn(joined)))(visit))
    }
  }
}

/** The rows that a database has of a key: the row of an envelope on side 1, each row of them length-prefixed. */
object LookupAnswer {
  final val Side: Byte = 1

  def rowsIn(packed: Array[Byte]): Seq[Array[Byte]] = {
    val in = new CellReader(packed)
    Iterator.continually(in).takeWhile(_.hasMore).map(_.blob()).toVector
  }

  def pack(rows: Seq[Array[Byte]]): Array[Byte] = {
    val out = new CellWriter
    rows.foreach(out.blob)
    out.result()
  }

  /** The answer of the first task that asked for the key. */
  private[join] def of(rows: KeyRows): Option[Seq[Array[Byte]]] = {
    var found: Option[Array[Byte]] = None
    rows.foreach(row => if (row.side == Side && found.isEmpty) found = Some(row.row))
    found.map(rowsIn)
  }
}
