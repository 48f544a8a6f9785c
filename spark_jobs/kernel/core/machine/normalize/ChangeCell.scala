package rejoin.core.machine.normalize

import rejoin.core.row.{CellReader, CellWriter, KeyChange, Lack, RowFunctions}
import rejoin.core.state.{Cell, KeyedState, StateCell}

/** Who has a claim on what the old row of a key change had. */
private sealed trait Claim

private object Claim {

  /** The event under the new key has not come. */
  case object None extends Claim

  /** The event under the new key has come, and its row needs nothing: it is complete or gone. */
  case object Nobody extends Claim

  /** The row under the new key lacks values. */
  final case class ByRow(key: Array[Byte]) extends Claim

  /** The row under the new key changed its key again before it had its values: that change waits for them. */
  final case class ByChange(id: KeyChange) extends Claim

  def write(claim: Claim, out: CellWriter): Unit = claim match {
    case None => out.byte(0)
    case Nobody => out.byte(1)
    case ByRow(key) => out.byte(2).blob(key)
    case ByChange(id) => id.write(out.byte(3))
  }

  def read(in: CellReader): Claim = in.byte() match {
    case 0 => None
    case 1 => Nobody
    case 2 => ByRow(in.blob())
    case _ => ByChange(KeyChange.read(in))
  }
}

/** A key change whose two events have not both come, or whose old row is needed.
  *
  * {{{
  * cell 'P' + change : version, begin of the wait, claim, whether the old row is known; that row, its lack
  * }}}
  */
private final class ChangeCell(val id: KeyChange, now: Long, state: KeyedState) {
  private val cell = new StateCell(ChangeCell.Tag)
  private var since = now
  var claim: Claim = Claim.None

  /** Whether the event under the old key has come, or has been given up. */
  var hasOld = false

  /** The row that left its old key; null if it was not known. */
  var oldRow: Array[Byte] = _

  /** What that row lacks itself. */
  private var lack: Lack = _

  /** Whether both sides are done with it. */
  var isGone = false

  read(cell.open(id.bytes, state))

  private def read(in: CellReader): Unit = if (in != null) {
    since = in.signed()
    claim = Claim.read(in)
    if (in.byte() == 1) setOld(in.nullable(), Lack.read(in))
  }

  def isStored: Boolean = cell.isStored

  def setOld(row: Array[Byte], lack: Lack): Unit = {
    hasOld = true
    oldRow = row
    this.lack = lack
  }

  /** The change before, whose old row has what this one's old row lacks; null if that lacks nothing. */
  def awaited: KeyChange = if (lack == null) null else lack.change

  def isWaiting: Boolean = !isGone && (!hasOld || claim == Claim.None)

  /** Whether the old row has all that another row lacks. */
  def knows(other: Lack): Boolean = oldRow != null && (lack == null || !lack.missing.intersects(other.missing))

  /** Takes what the old row lacks from the row before it; what that one lacks too is lost. */
  def fill(before: ChangeCell, functions: RowFunctions): Unit =
    if (awaited == before.id) {
      val missing = lack.missing
      val unknown =
        if (before.oldRow == null) new Lack(missing, null)
        else if (before.lack == null) null
        else before.lack.within(missing)
      if (before.oldRow != null) oldRow = functions.heal(oldRow, missing, before.oldRow)
      lack = unknown
    }

  /** When the wait began; it begins now if the change came before the clock had said what time it is. */
  def startAt(now: Long): Long = {
    if (since == 0L) since = now
    since
  }

  def isOver(waitMs: Long, now: Long): Boolean = startAt(now) + waitMs <= now

  def save(): Unit = {
    val out = cell.write().signed(since)
    Claim.write(claim, out)
    out.byte(if (hasOld) 1 else 0)
    if (hasOld) Lack.write(lack, out.nullable(oldRow))
    cell.save(state, isGone)
  }
}

private object ChangeCell {
  private val Tag = 'P'

  def isStored(id: KeyChange, state: KeyedState): Boolean = state.get(Cell.key(Tag, id.bytes)) != null

  /** All key changes that the group stores. */
  def stored(state: KeyedState): Seq[KeyChange] = state.names(Tag).map(name => KeyChange.of(Cell.keyOf(name)))
}
