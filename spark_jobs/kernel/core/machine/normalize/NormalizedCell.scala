package rejoin.core.machine.normalize

import java.util.Arrays

import rejoin.core.machine.NormalizeSpec
import rejoin.core.row.{Codec, Envelope, KeptRow, KeyContents, Lack, SourcePosition}
import rejoin.core.state.{KeyedState, StateCell}
import rejoin.core.time.{GroupState, KeyTtl}

/** What a normaliser stores of one primary key.
  *
  * {{{
  * cell 'N' + primary key : 1, TTL, row
  *                          2, TTL, log position, commit time, row or nothing
  *                          3, TTL, log position, commit time, row, lack
  *                          4, TTL, log position, place within it, commit time, row or nothing
  * }}}
  * The second form is written where rows carry source positions. Without a row it marks the key as deleted,
  * so that a repeated insertion does not bring the row back: for the state TTL or, where there is none, for
  * [[NormalizedCell.DeletedMs]] of the clock's time. The third form is that of a row that lacks values
  * ([[Lack]]) since its key has changed, the fourth that of databases whose changes may share a log position.
  * All forms are read always, so that positions may be switched on and off.
  */
private final class NormalizedCell(spec: NormalizeSpec) {
  import NormalizedCell._

  private val ttlMs = spec.timing.ttlMs.head
  private val stored = new StateCell(Tag, WithinVersion)
  val ttl = new KeyTtl(if (ttlMs == 0 && spec.positions) DeletedMs else ttlMs)

  /** Whether an update that changes nothing is emitted too: with a TTL it is, so that later operators renew theirs. */
  val repeats: Boolean = ttlMs > 0
  val position = new SourcePosition
  var key: Array[Byte] = _

  /** The stored row, or null. */
  var row: Array[Byte] = _

  /** What the row lacks; null for nothing. */
  var lack: Lack = _

  def load(key: Array[Byte], state: KeyedState): Unit = {
    this.key = key
    row = null
    lack = null
    ttl.reset()
    position.clear()
    val in = stored.open(key, state)
    if (in != null) {
      ttl.read(in)
      if (stored.version == Codec.Version) row = in.blob()
      else {
        val log = in.signed()
        position.set(log, if (stored.version == WithinVersion) in.signed() else Envelope.NoTime, in.signed())
        row = in.nullable()
        if (stored.version == LackVersion) {
          require(spec.keyChanges, "a row waits for values of its old key, which this job no longer looks for")
          lack = Lack.read(in)
        }
      }
    }
  }

  /** The loaded cell for display. */
  def look: KeyContents = {
    val at = Seq("log" -> position.log, "committed" -> position.committedMs).filter(_._2 != Envelope.NoTime)
    val deleted = if (row == null) Seq("deleted" -> true) else Nil
    KeyContents(
      Option.when(stored.isStored)(KeptRow(0, row, ttl.writtenMs, deleted ++ at ++ ttl.facts)),
      isDeleted = row == null)
  }

  /** @param wasThere
    *   whether the key has had a row; no mark is left of a key that never had one
    */
  def save(before: Array[Byte], wasThere: Boolean, group: GroupState, state: KeyedState): Unit =
    if (row == null) {
      if (spec.positions && (wasThere || stored.isStored)) {
        ttl.touch(key, group)
        write(state)
      } else stored.save(state, isEmpty = true)
    } else if (repeats) {
      ttl.touch(key, group)
      write(state)
    } else if (spec.positions || !Arrays.equals(before, row)) {
      ttl.reset()
      write(state)
    }

  private def write(state: KeyedState): Unit = {
    val version =
      if (lack != null) LackVersion
      else if (!spec.positions) Codec.Version
      else if (position.within != Envelope.NoTime) WithinVersion
      else PositionVersion
    val out = stored.write(version)
    ttl.write(out)
    if (spec.positions) {
      out.signed(position.log)
      if (version == WithinVersion) out.signed(position.within)
      out.signed(position.committedMs).nullable(row)
    } else out.blob(row)
    if (lack != null) Lack.write(lack, out)
    stored.save(state)
  }

  /** At a visit by the clock: removes the cell if its time is over; whether it did. */
  def expire(group: GroupState, state: KeyedState): Boolean = {
    val ends = stored.isStored && (repeats || row == null)
    val isOver = ends && ttl.hasExpired(group)
    if (isOver) stored.save(state, isEmpty = true)
    else if (ends && ttl.visitAgain(key, group)) write(state)
    isOver
  }
}

object NormalizedCell {
  final val Tag = 'N'
  private val PositionVersion: Byte = 2
  private val LackVersion: Byte = 3
  private val WithinVersion: Byte = 4

  /** A day: longer than what a connector repeats after a crash. */
  final val DeletedMs: Long = 24L * 60 * 60 * 1000
}
