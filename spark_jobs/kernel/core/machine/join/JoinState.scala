package rejoin.core.machine.join

import java.util.Arrays

import rejoin.core.results.Changes
import rejoin.core.row.{CellReader, Envelope, GroupBatch, KeptRow, KeyContents, KeyRows, Output, PartialRow, RowKind}
import rejoin.core.state.{KeyedState, StateCell, StoredRow}
import rejoin.core.time.{DueIndex, GroupState}

/** What a join emits and counts when a row of one side appears or disappears; it stores or forgets the row. */
trait JoinRules {

  /** @param known
    *   the stored copies of the row, or the row of its unique key that it overwrites
    */
  def accumulate(
      input: JoinSide,
      kind: Byte,
      id: Array[Byte],
      row: Array[Byte],
      known: StoredRow,
      matchable: Boolean): Unit

  /** @param stored
    *   null where the row is unknown and yet retracted
    */
  def retract(input: JoinSide, kind: Byte, row: Array[Byte], stored: StoredRow, matchable: Boolean): Unit
}

/** The rows of all sides of a join, key by key: applies changes, saves cells, lets rows expire.
  *
  * {{{
  * cell 'K' + join key : version, each side            (SideRows)
  * further pages       : cells of the sides' page tags
  * entries of the due index: side, page, join key
  * }}}
  */
final class JoinState(
    sides: Array[JoinSide],
    rules: JoinRules,
    changes: Changes,
    canMatch: Array[Byte] => Boolean) {
  private val header = new StateCell(JoinState.Tag)
  private val folded = new FoldedChanges(sides)
  private val usesTtl = sides.exists(_.ttlMs > 0)
  private var changed = false
  private var now = 0L

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, out: Output): Unit = {
    if (usesTtl) {
      now = group.nowOrZero
      group.expiries.take(DueIndex.slotOf(now) - 1, state).foreach(expire(_, group, state))
    }
    batch.foreachKey { rows =>
      load(rows.key, state)
      applyAll(rows, canMatch(rows.key), group)
      changes.flush(GroupBatch.hash(rows.key), out)
      save(group, state)
    }
  }

  /** Expired rows are shown as long as they are stored. */
  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, state)
    new KeyContents(sides.toSeq.map(_.stored.rows), usesTtl) {
      def foreach(visit: KeptRow => Unit): Unit = sides.foreach(_.stored.show(visit))
    }
  }

  private def load(key: Array[Byte], state: KeyedState): Unit = {
    changed = false
    sides.foreach(_.stored.reset(key, state, now))
    val in = header.open(key, state)
    if (in != null) sides.foreach(_.stored.read(in))
  }

  private def save(group: GroupState, state: KeyedState): Unit = {
    sides.foreach { side =>
      val stored = side.stored
      stored.compact()
      group.rows(math.min(side.number, 1)) += stored.rows - stored.storedRows
      changed ||= stored.hasExpired
    }
    if (changed) {
      val out = header.write()
      sides.foreach(_.stored.write(out, group.expiries))
      header.save(state, isEmpty = sides.forall(_.stored.rows == 0))
    }
  }

  /** Visits a page in which rows may have expired: to read it is to drop them. */
  private def expire(entry: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    val in = new CellReader(entry)
    val side = in.int()
    val page = in.int()
    load(in.blob(), state)
    changed = sides(side).stored.visit(page)
    save(group, state)
  }

  private def applyAll(rows: KeyRows, matchable: Boolean, group: GroupState): Unit = {
    folded.read(rows)
    var i = 0
    while (i < rows.size) {
      val change = rows(i)
      val input = sides(change.side.toInt)
      if (change.kind == RowKind.Partial) applyPartial(input, change, matchable, group)
      else if (usesTtl || !folded.skips(rows, i)) apply(input, change.kind, folded.id(i), change.row, matchable, group)
      i += 1
    }
  }

  /** An upsert that lacks values has them from the row that it replaces. */
  private def applyPartial(input: JoinSide, change: Envelope, matchable: Boolean, group: GroupState): Unit = {
    val partial = PartialRow.unpack(change.row)
    val id = input.idOf(partial.row)
    val stored = input.stored.find(id)
    if (stored == null) group.unhealed += partial.unhealed
    else apply(input, RowKind.UpdateAfter, id, input.functions.heal(partial, stored.row), matchable, group)
  }

  private def apply(
      input: JoinSide,
      change: Byte,
      id: Array[Byte],
      row: Array[Byte],
      matchable: Boolean,
      group: GroupState): Unit = {
    val stored = input.stored.find(id)
    if (RowKind.isAdd(change)) {
      if (stored == null || !input.hasUniqueKey || input.isTrusted) {
        // an upsert does not say whether it is the first of its key
        val kind = if (input.isUpsert) RowKind.Insert else change
        rules.accumulate(input, kind, id, row, stored, matchable)
        changed = true
      } else if (usesTtl || !Arrays.equals(stored.row, row)) {
        rules.retract(input, RowKind.UpdateBefore, stored.row, stored, matchable)
        rules.accumulate(input, RowKind.UpdateAfter, id, row, null, matchable)
        changed = true
      }
    } else if (stored != null || input.isTrusted || (input.ttlMs > 0 && !input.isUpsert)) {
      // what is unknown may have expired
      val gone = if (stored == null || input.isTrusted) row else stored.row
      rules.retract(input, change, gone, stored, matchable)
      changed = true
    } else if (!input.isUpsert) group.unknownRetractions += 1
  }
}

object JoinState {
  final val Tag = 'K'
}
