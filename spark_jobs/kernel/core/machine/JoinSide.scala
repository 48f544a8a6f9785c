package rejoin.core.machine

import rejoin.core.row.{CellReader, CellWriter, Changes, Codec, Envelope, GroupBatch, KeptRow, KeyContents, Output,
  PartialRow, RowFunctions, RowKind}
import rejoin.core.state.{Cell, KeyedState, SideRows, StoredRow}
import rejoin.core.time.{DueIndex, GroupState}

/** One side of a join over changelogs: its facts and its stored rows under the current join key.
  *
  * @param isOuter
  *   its rows are padded where nothing matches
  * @param needsMatches
  *   what its rows' results are depends on how many rows they match
  * @param hasResidual
  *   whether rows under one key differ in how many rows they match
  * @param countsDiffer
  *   whether the other side's rows also vanish or are overwritten, so that it is not their number
  */
final class JoinSide(
    spec: SideSpec,
    val number: Int,
    val isOuter: Boolean,
    val needsMatches: Boolean,
    hasResidual: Boolean,
    countsDiffer: Boolean,
    val ttlMs: Long,
    val functions: RowFunctions,
    pageTag: Char) {

  /** The number stands in every row. */
  val countsMatches: Boolean = needsMatches && (hasResidual || countsDiffer)
  val hasUniqueKey: Boolean = spec.layout != SideSpec.NoUniqueKey
  val isUpsert: Boolean = spec.upsert
  val isTrusted: Boolean = spec.trusted && !spec.upsert
  private val format = (if (ttlMs > 0) 1 else 0) | (if (needsMatches && countsDiffer) 2 else 0)
  val stored = new SideRows(pageTag, number, countsMatches, idIsRow = !hasUniqueKey, ttlMs, format)

  /** What tells the row apart from others under the same join key. */
  val idOf: Array[Byte] => Array[Byte] = spec.layout match {
    case SideSpec.JoinKeyContainsUniqueKey => _ => JoinSide.OnlyRow
    case SideSpec.HasUniqueKey => functions.uniqueKey(_)
    case SideSpec.NoUniqueKey => identity
    case other => throw new IllegalArgumentException(s"unknown state layout '$other'")
  }

  def matchesOf(row: StoredRow, other: JoinSide): Long = if (countsMatches) row.matches else other.stored.rows

  def addMatches(row: StoredRow, by: Long): Unit = if (countsMatches) stored.changeMatches(row, by)

  /** A change of the other side counts as a write of every row that it meets (state TTL). */
  def refresh(): Unit = if (ttlMs > 0 && needsMatches && !countsMatches) stored.refresh()

  /** @param known
    *   the row's own copies, or the row of the same unique key that it overwrites
    */
  def store(id: Array[Byte], row: Array[Byte], known: StoredRow, matches: Long): Unit = {
    val kept = if (countsMatches) matches else 0L
    if (known != null && !hasUniqueKey) stored.changeCopies(known, 1, kept)
    else {
      forget(known)
      stored.insert(new StoredRow(id, row, 1, kept))
    }
  }

  /** Forgets one copy; a row that has expired is gone already. */
  def forget(row: StoredRow): Unit = if (row != null) stored.changeCopies(row, -1, row.matches)
}

object JoinSide {
  private val OnlyRow = new Array[Byte](0)
}

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
final class JoinState(sides: Array[JoinSide], changes: Changes, canMatch: Array[Byte] => Boolean) {
  private val header = new CellWriter
  private val pages = new CellWriter
  private val usesTtl = sides.exists(_.ttlMs > 0)
  private val rowsBefore = new Array[Long](sides.length)
  private var changed = false
  private var now = 0L

  def process(batch: GroupBatch, group: GroupState, state: KeyedState, rules: JoinRules, out: Output): Unit = {
    if (usesTtl) {
      now = math.max(group.now, 0L)
      group.expiries.take(DueIndex.slotOf(now) - 1, state).foreach(expire(_, group, state))
    }
    batch.foreachKey { rows =>
      val cell = Cell.key(JoinState.Tag, rows.key)
      load(rows.key, cell, state)
      val matchable = canMatch(rows.key)
      var i = 0
      while (i < rows.size) {
        val change = rows(i)
        val input = sides(change.side.toInt)
        if (change.kind == RowKind.Partial) applyPartial(input, change, matchable, rules, group)
        else apply(input, change.kind, change.row, matchable, rules, group)
        i += 1
      }
      changes.flush(GroupBatch.hash(rows.key), out)
      finish(cell, group, state)
    }
    if (usesTtl) group.expiries.flush(state)
  }

  /** Expired rows are shown as long as they are stored. */
  def look(key: Array[Byte], state: KeyedState): KeyContents = {
    load(key, Cell.key(JoinState.Tag, key), state)
    new KeyContents(sides.toSeq.map(_.stored.rows), usesTtl) {
      def foreach(visit: KeptRow => Unit): Unit = sides.foreach(_.stored.show(visit))
    }
  }

  private def load(key: Array[Byte], cell: Array[Byte], state: KeyedState): Unit = {
    changed = false
    var i = 0
    while (i < sides.length) {
      sides(i).stored.reset(key, state, now)
      i += 1
    }
    val value = state.get(cell)
    if (value != null) {
      val in = new CellReader(value).version()
      i = 0
      while (i < sides.length) {
        sides(i).stored.read(in)
        i += 1
      }
    }
    i = 0
    while (i < sides.length) {
      rowsBefore(i) = sides(i).stored.storedRows
      i += 1
    }
  }

  private def finish(cell: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    var i = 0
    var isEmpty = true
    while (i < sides.length) {
      val stored = sides(i).stored
      stored.compact()
      group.rows(math.min(i, 1)) += stored.rows - rowsBefore(i)
      isEmpty &&= stored.rows == 0
      changed ||= stored.hasExpired
      i += 1
    }
    if (changed) {
      header.reset().byte(Codec.Version)
      i = 0
      while (i < sides.length) {
        sides(i).stored.write(header, pages, group.expiries)
        i += 1
      }
      if (isEmpty) state.remove(cell) else state.put(cell, header.result())
    }
  }

  /** Visits a page in which rows may have expired: to read it is to drop them. */
  private def expire(entry: Array[Byte], group: GroupState, state: KeyedState): Unit = {
    val in = new CellReader(entry)
    val side = in.int()
    val page = in.int()
    val key = in.blob()
    val cell = Cell.key(JoinState.Tag, key)
    load(key, cell, state)
    changed = sides(side).stored.visit(page)
    finish(cell, group, state)
  }

  /** An upsert that lacks values has them from the row that it replaces. */
  private def applyPartial(
      input: JoinSide,
      change: Envelope,
      matchable: Boolean,
      rules: JoinRules,
      group: GroupState): Unit = {
    val partial = PartialRow.unpack(change.row)
    val stored = input.stored.find(input.idOf(partial.row))
    if (stored == null) group.unhealed += partial.unhealed
    else apply(input, RowKind.UpdateAfter, input.functions.heal(partial, stored.row), matchable, rules, group)
  }

  private def apply(
      input: JoinSide,
      change: Byte,
      row: Array[Byte],
      matchable: Boolean,
      rules: JoinRules,
      group: GroupState): Unit = {
    val id = input.idOf(row)
    val stored = input.stored.find(id)
    if (RowKind.isAdd(change)) {
      if (stored == null || !input.hasUniqueKey || input.isTrusted) {
        // an upsert does not say whether it is the first of its key
        val kind = if (input.isUpsert) RowKind.Insert else change
        rules.accumulate(input, kind, id, row, stored, matchable)
        changed = true
      } else if (usesTtl || !java.util.Arrays.equals(stored.row, row)) {
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
