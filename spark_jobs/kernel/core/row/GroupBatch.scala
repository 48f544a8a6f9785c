package rejoin.core.row

import java.util

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** The rows of one key group in one batch: data rows chained by key, or sorted by it; all else apart.
  *
  * Chains are a hash table over row numbers: no object per key, no sort unless a key's rows arrived
  * out of (source, seq) order.
  *
  * @param next
  *   where there is one, keys are visited in the order in which a store on disk has them: keys whose cells lie in one
  *   block then come one after the other, and the block is read once. It hears which keys come next, some at a time
  */
final class GroupBatch(next: Option[Seq[Array[Byte]] => Unit] = None) {
  val marks = new ArrayBuffer[Envelope]
  val rejects = new ArrayBuffer[Envelope]
  val truncations = new ArrayBuffer[Envelope]

  /** Of kind [[RowKind.News]]. */
  val news = new ArrayBuffer[Envelope]
  private var rows = new Array[Envelope](64)
  private var links = new Array[Int](64)
  private var hashes = new Array[Int](64)
  private var count = 0
  private var heads: Array[Int] = _
  private var newestOfKey = Envelope.NoTime
  private var newest = Envelope.NoTime
  private var clockMs = Envelope.NoTime

  /** Timestamp of the newest record behind a result that leaves now: of the rows of the key that is visited. What
    * leaves otherwise is due to the newest record that the group has heard of, else to the clock.
    */
  def recordMs: Long =
    if (newestOfKey != Envelope.NoTime) newestOfKey else if (newest != Envelope.NoTime) newest else clockMs

  def add(envelope: Envelope): Unit =
    if (envelope.kind == RowKind.Rows) RowChunks.foreach(envelope)(addRow)
    else if (RowKind.isRow(envelope.kind)) addRow(envelope)
    else if (envelope.kind == RowKind.Reject) rejects += envelope
    else if (envelope.kind == RowKind.Truncate) truncations += envelope
    else if (envelope.kind == RowKind.News) news += envelope
    else addMark(envelope)

  def size: Int = count

  private def addMark(mark: Envelope): Unit = {
    marks += mark
    newest = math.max(newest, mark.recordMs)
    if (mark.kind == RowKind.Clock) clockMs = math.max(clockMs, mark.time)
  }

  private def addRow(envelope: Envelope): Unit = {
    if (count == rows.length) {
      rows = util.Arrays.copyOf(rows, count * 2)
      hashes = util.Arrays.copyOf(hashes, count * 2)
    }
    rows(count) = envelope
    hashes(count) = GroupBatch.hash(envelope.key)
    newest = math.max(newest, envelope.recordMs)
    count += 1
  }

  /** Calls `visit` once per distinct key with the key's rows in (source, seq) order. */
  def foreachKey(visit: KeyRows => Unit): Unit = {
    next match {
      case Some(hear) => visitSorted(hear, visit)
      case None => visitChains(visit)
    }
    newestOfKey = Envelope.NoTime
  }

  private def visitSorted(hear: Seq[Array[Byte]] => Unit, visit: KeyRows => Unit): Unit = {
    util.Arrays.sort(rows, 0, count, GroupBatch.storeOrder)
    val keyRows = new KeyRows
    var row = 0
    var heard = 0
    while (row < count) {
      if (row == heard) heard = tellNext(row, hear)
      val key = rows(row).key
      val following = afterKey(row)
      keyRows.start(key)
      while (row < following) {
        keyRows.add(rows(row))
        row += 1
      }
      visitRows(keyRows, visit)
    }
  }

  /** Tells which keys come next, from a row on; returns the row after them. */
  private def tellNext(first: Int, hear: Seq[Array[Byte]] => Unit): Int = {
    val keys = new ArrayBuffer[Array[Byte]](GroupBatch.KeysAhead)
    var row = first
    while (row < count && keys.size < GroupBatch.KeysAhead) {
      keys += rows(row).key
      row = afterKey(row)
    }
    hear(keys.toSeq)
    row
  }

  /** The first sorted row of the key after that of `row`. */
  private def afterKey(row: Int): Int = {
    val key = rows(row).key
    var following = row + 1
    while (following < count && util.Arrays.equals(rows(following).key, key)) following += 1
    following
  }

  private def visitChains(visit: KeyRows => Unit): Unit = {
    chain()
    val keyRows = new KeyRows
    var slot = 0
    while (slot < heads.length) {
      while (heads(slot) >= 0) heads(slot) = takeKey(heads(slot), keyRows, visit)
      slot += 1
    }
  }

  private def visitRows(keyRows: KeyRows, visit: KeyRows => Unit): Unit = {
    keyRows.order()
    newestOfKey = keyRows.recordMs
    visit(keyRows)
  }

  private def chain(): Unit = {
    val slots = Integer.highestOneBit(math.max(count, 8) * 2 - 1)
    heads = Array.fill(slots)(-1)
    if (links.length < count) links = new Array[Int](rows.length)
    var row = count - 1
    while (row >= 0) {
      val slot = hashes(row) & (slots - 1)
      links(row) = heads(slot)
      heads(slot) = row
      row -= 1
    }
  }

  /** Takes the rows with the head's key out of its chain; returns the chain's new head. */
  private def takeKey(head: Int, keyRows: KeyRows, visit: KeyRows => Unit): Int = {
    val first = rows(head)
    keyRows.start(first.key).add(first)
    var rest = -1
    var last = -1
    var row = links(head)
    while (row >= 0) {
      val following = links(row)
      if (hashes(row) == hashes(head) && util.Arrays.equals(rows(row).key, first.key)) keyRows.add(rows(row))
      else {
        if (last < 0) rest = row else links(last) = row
        links(row) = -1
        last = row
      }
      row = following
    }
    visitRows(keyRows, visit)
    rest
  }
}

object GroupBatch {
  private final val KeysAhead = 64

  /** Independent of the hash that chose the group, whose low bits are alike inside a group. */
  def hash(key: Array[Byte]): Int =
    Murmur3_x86_32.hashUnsafeBytes(key, Platform.BYTE_ARRAY_OFFSET.toLong, key.length, 0x5bd1e995)

  /** As the names of their cells lie in RocksDB: by length, which stands in front of the bytes.
    *
    * Lengths of 256 bytes and more come in another order there; names of one length are together all the same.
    */
  private val storeOrder: util.Comparator[Envelope] = (a, b) =>
    if (a.key.length != b.key.length) Integer.compare(a.key.length, b.key.length)
    else util.Arrays.compareUnsigned(a.key, b.key)
}

/** The rows of one key in arrival order, or none where a key is visited without; reused from key to key. */
final class KeyRows {
  private var rows = new Array[Envelope](8)
  private var count = 0
  private var sorted = true
  private var ofKey: Array[Byte] = _
  private var newest = Envelope.NoTime

  def key: Array[Byte] = ofKey

  def size: Int = count

  def isEmpty: Boolean = count == 0

  def apply(i: Int): Envelope = rows(i)

  /** Timestamp of the newest record behind the rows. */
  private[rejoin] def recordMs: Long = newest

  def foreach(visit: Envelope => Unit): Unit = {
    var i = 0
    while (i < count) {
      visit(rows(i))
      i += 1
    }
  }

  private[rejoin] def start(key: Array[Byte]): this.type = {
    ofKey = key
    count = 0
    sorted = true
    newest = Envelope.NoTime
    this
  }

  private[rejoin] def add(row: Envelope): Unit = {
    if (count == rows.length) rows = util.Arrays.copyOf(rows, count * 2)
    if (count > 0) sorted &&= KeyRows.inOrder(rows(count - 1), row)
    rows(count) = row
    newest = math.max(newest, row.recordMs)
    count += 1
  }

  private[rejoin] def order(): Unit =
    if (!sorted) util.Arrays.sort(rows, 0, count, KeyRows.arrival)
}

object KeyRows {

  /** By place in Kafka; the two halves of an update share theirs, -U comes before +U. */
  private val arrival: util.Comparator[Envelope] = (a, b) =>
    if (a.source != b.source) Integer.compare(a.source, b.source)
    else if (a.seq != b.seq) java.lang.Long.compare(a.seq, b.seq)
    else java.lang.Byte.compare(a.kind, b.kind)

  private def inOrder(a: Envelope, b: Envelope): Boolean = arrival.compare(a, b) <= 0
}
