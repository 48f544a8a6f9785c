package rejoin.core.machine.join

import java.nio.ByteBuffer
import java.util.Arrays

import scala.collection.mutable.ArrayBuffer

import rejoin.core.machine.SideSpec
import rejoin.core.row.{Bytes, CellReader, CellWriter, KeptRow, RowFunctions}
import rejoin.core.state.{Cell, KeyedState, SideRows, StateCell, StoredRow}
import rejoin.core.time.{DueIndex, GroupState, Timing}

/** What the probe rows of a temporal join were joined with, as long as they can still be taken back.
  *
  * {{{
  * cell 'J' + join key : version, identity of a row -> what its copies were joined with   (SideRows)
  * cells 'P'           : further pages of the same
  * cell 'Q'            : clock slots in use; cells 'F' + slot: the pages in which rows expire
  * }}}
  * The identity of a row is its unique key, else all that is kept of it and its time. Equal rows without a key
  * are one entry, with a count for each different thing that they were joined with. What that is, is up to the join.
  *
  * These cells are apart from those of the join: a join whose probe side only grows has none, and in a checkpoint
  * from before they existed no row is known. With a TTL, a row is forgotten that long after it was joined.
  * Rules: docs/semantics.md, "Probe rows that change".
  */
final class ProbeMemory(side: SideSpec, isEventTime: Boolean, timing: Timing, functions: RowFunctions) {
  import ProbeMemory._

  private val ttlMs = timing.ttlMs.max
  private val uniqueKey = JoinSide.identity(side, functions)
  private val isTimed = isEventTime && side.layout == SideSpec.NoUniqueKey
  private val stored = new SideRows('P', 0, keepsMatches = false, idIsRow = false, ttlMs, if (ttlMs > 0) 1 else 0)
  private val header = new StateCell('J')
  private val slots = new StateCell('Q', DueIndex.PagedVersion)
  private val entry = new CellWriter
  private var expiries = new DueIndex('F')
  private var key: Array[Byte] = _
  private var state: KeyedState = _
  private var now = 0L
  private var isRead = false
  private var isChanged = false

  /** Begins a batch of a group: forgets what is too old, gives the keys of which nothing is left. */
  def begin(group: GroupState, state: KeyedState): Iterator[Array[Byte]] =
    if (ttlMs == 0) Iterator.empty
    else {
      now = group.nowOrZero
      expiries = new DueIndex('F')
      Option(slots.open(Cell.NoKey, state)).foreach(expiries.read(_, slots.version))
      expiries.take(DueIndex.slotOf(now) - 1, state).flatMap(expire(_, group, state)).toVector.iterator
    }

  /** Visits a page in which rows may have expired: to read it is to drop them. */
  private def expire(due: Array[Byte], group: GroupState, state: KeyedState): Option[Array[Byte]] = {
    val in = new CellReader(due)
    in.varLong() // the side, of which there is one
    val page = in.int()
    val found = in.blob()
    turnTo(found, state)
    load()
    isChanged = stored.visit(page)
    save(group)
    Option.when(isEmpty)(found)
  }

  /** Ends the batch. */
  def end(state: KeyedState): Unit =
    if (ttlMs > 0) {
      expiries.flush(state)
      val version = DueIndex.versionOf(expiries)
      expiries.write(slots.write(version), version)
      slots.save(state, isEmpty = expiries.isEmpty)
    }

  /** Turns to a join key; its cells are read when they are needed. */
  def turnTo(key: Array[Byte], state: KeyedState): Unit = {
    this.key = key
    this.state = state
    isRead = false
    isChanged = false
  }

  /** Different rows that are remembered under the key. */
  def size: Long = {
    load()
    stored.rows
  }

  def isEmpty: Boolean = size == 0

  /** What tells the row apart from others under its join key; `time` counts by event time only. */
  def idOf(row: Array[Byte], time: Long): Array[Byte] = {
    val id = uniqueKey(row)
    if (isTimed) ByteBuffer.allocate(id.length + TimeBytes).put(id).putLong(time).array() else id
  }

  /** What the two halves of an update have in common that leaves the row its time. */
  def updateOf(row: Array[Byte], time: Long): Bytes = {
    val id = if (side.layout == SideSpec.NoUniqueKey) Array.emptyByteArray else uniqueKey(row)
    Bytes(ByteBuffer.allocate(id.length + TimeBytes).put(id).putLong(time).array())
  }

  /** Remembers what a row was joined with. */
  def add(id: Array[Byte], partner: Array[Byte]): Unit = {
    load()
    val found = stored.find(id)
    val known = partnersOf(found)
    val same = known.indexWhere(p => Arrays.equals(p.packed, partner))
    if (same < 0) known += new Partner(1, partner) else known(same) = known(same).plus(1)
    replace(id, found, known)
  }

  /** Forgets a row; gives what it was joined with, or null where it is not known. */
  def take(id: Array[Byte]): Array[Byte] = {
    load()
    val found = stored.find(id)
    if (found == null) null
    else {
      val known = partnersOf(found)
      val last = known.last
      if (last.copies > 1) known(known.size - 1) = last.plus(-1) else known.dropRightInPlace(1)
      replace(id, found, known)
      last.packed
    }
  }

  private def partnersOf(found: StoredRow): ArrayBuffer[Partner] = {
    val known = new ArrayBuffer[Partner](1)
    if (found != null) {
      val in = new CellReader(found.row)
      while (in.hasMore) known += new Partner(in.varLong(), in.blob())
    }
    known
  }

  private def replace(id: Array[Byte], before: StoredRow, known: ArrayBuffer[Partner]): Unit = {
    if (before != null) stored.changeCopies(before, -1, 0)
    if (known.nonEmpty) {
      entry.reset()
      known.foreach(partner => entry.varLong(partner.copies).blob(partner.packed))
      stored.insert(new StoredRow(id, entry.result(), 1, 0))
    }
    isChanged = true
  }

  /** Visits the rows as they are displayed, equal ones as one.
    *
    * @param read
    *   the event time, if any, and the build rows in what a row was joined with
    */
  def show(read: Array[Byte] => (Long, Seq[Array[Byte]]))(visit: KeptRow => Unit): Unit = {
    load()
    stored.foreach { row =>
      val partners = partnersOf(row)
      val joined = partners.flatMap(partner => read(partner.packed)._2.map(KeptRow(1, _))).toSeq
      val equal = partners.map(_.copies).sum
      val facts = Seq("joined" -> joined) ++ (if (equal > 1) Seq("equal" -> equal) else Nil) ++
        (if (ttlMs > 0) Seq("written" -> row.written) else Nil)
      visit(KeptRow(0, rowOf(row.id), read(partners.last.packed)._1, facts))
    }
  }

  /** What is known of a row by its identity, or null. */
  private def rowOf(id: Array[Byte]): Array[Byte] = side.layout match {
    case SideSpec.HasUniqueKey => functions.withKeyOnly(id)
    case SideSpec.NoUniqueKey => if (isTimed) Arrays.copyOf(id, id.length - TimeBytes) else id
    case _ => null
  }

  private def load(): Unit = if (!isRead) {
    isRead = true
    stored.reset(key, state, now)
    val in = header.open(key, state)
    if (in != null) stored.read(in)
  }

  /** Writes what has changed under the key. */
  def save(group: GroupState): Unit = if (isRead) {
    stored.compact()
    group.rows(0) += stored.rows - stored.storedRows
    if (isChanged || stored.hasExpired) {
      stored.write(header.write(), expiries)
      header.save(state, isEmpty = stored.rows == 0)
    }
  }
}

object ProbeMemory {
  private final val TimeBytes = java.lang.Long.BYTES

  /** What some equal rows were joined with. */
  private final class Partner(val copies: Long, val packed: Array[Byte]) {
    def plus(by: Long): Partner = new Partner(copies + by, packed)
  }
}
