package rejoin.core.time

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter, Codec}
import rejoin.core.state.{Cell, KeyedState}

/** The slots of a [[DueIndex]] that are in use, each with its number of chunks, however many they are.
  *
  * {{{
  * level 0               : slots
  * level n               : pages, each for 32 neighbours of the level below
  * list of a level       : its entries that have no page; part of the index's cell
  * cell tag, level, page : version, entries of the level below
  * }}}
  * An entry stands on its page where there is one, else in the list of its level. A list that grows too long gives
  * pages to its entries, but for those around its two ends: slots are taken at one end, and a TTL adds them at the
  * other. A page of which something is due moves back into the list below.
  */
private[time] final class SlotTree(tag: Char, maxListed: Int) {
  import SlotTree._

  /** From each entry to its number of cells: the chunks of a slot; a page has one. */
  private type Entries = mutable.TreeMap[Long, Int]
  private val lists = ArrayBuffer[Entries](new Entries)

  def isEmpty: Boolean = lists.forall(_.isEmpty)

  /** Whether there are pages. */
  def hasPages: Boolean = lists.size > 1

  /** Counts one more chunk of a slot; gives their number before. */
  def addChunk(slot: Long, state: KeyedState): Int = addCell(0, slot, state)

  private def addCell(level: Int, entry: Long, state: KeyedState): Int = {
    val number = entry >> PageBits
    val page = if (lists(level).contains(entry)) null else readPage(level + 1, number, state)
    val entries = if (page == null) lists(level) else page
    val before = entries.getOrElse(entry, 0)
    entries(entry) = before + 1
    if (page != null) writePage(level + 1, number, page, state)
    before
  }

  /** Removes the slots up to `last`; gives them in order, with their numbers of chunks. */
  def take(last: Long, state: KeyedState): Seq[(Long, Int)] = {
    for (level <- lists.size - 1 to 1 by -1; (page, _) <- takeUpTo(last >> level * PageBits, lists(level))) {
      lists(level - 1) ++= readCell(level, page, state)
      state.remove(Cell.duePage(tag, level, page))
    }
    while (hasPages && lists.last.isEmpty) lists.dropRightInPlace(1)
    takeUpTo(last, lists(0))
  }

  /** Moves what makes a list too long to pages. */
  def spill(state: KeyedState): Unit = {
    var level = 0
    while (level < lists.size) {
      if (lists(level).size > maxListed) spill(level, state)
      level += 1
    }
  }

  private def spill(level: Int, state: KeyedState): Unit = {
    val list = lists(level)
    val first = ((list.firstKey >> PageBits) + 1) << PageBits
    val last = list.lastKey >> PageBits << PageBits
    val moved = if (first < last) list.range(first, last).toVector else Vector.empty
    if (moved.nonEmpty && level + 1 == lists.size) lists += new Entries
    moved.groupBy(_._1 >> PageBits).toVector.sortBy(_._1).foreach { case (page, entries) =>
      writePage(level + 1, page, new Entries ++= entries, state)
      addCell(level + 1, page, state)
    }
    moved.foreach { case (entry, _) => list.remove(entry) }
  }

  /** The entries of a page, or null where there is no such page; a page that no list leads to is not looked for. */
  private def readPage(level: Int, page: Long, state: KeyedState): Entries = {
    val isListed = (level until lists.size).exists(above => lists(above).contains(page >> (above - level) * PageBits))
    if (isListed) readCell(level, page, state) else null
  }

  private def readCell(level: Int, page: Long, state: KeyedState): Entries = {
    val stored = state.get(Cell.duePage(tag, level, page))
    Option(stored).map(value => readList(new CellReader(value).version(), page << PageBits, new Entries)).orNull
  }

  private def writePage(level: Int, page: Long, entries: Entries, state: KeyedState): Unit = {
    val out = new CellWriter().byte(Codec.Version.toInt)
    writeList(out, page << PageBits, entries)
    state.put(Cell.duePage(tag, level, page), out.result())
  }

  private def takeUpTo(last: Long, entries: Entries): Seq[(Long, Int)] = {
    val taken = entries.rangeTo(last).toVector
    taken.foreach { case (entry, _) => entries.remove(entry) }
    taken
  }

  /** Reads the lists from the index's cell. */
  def read(in: CellReader, version: Byte): Unit =
    if (version == Codec.Version) (0 until in.int()).foreach(_ => lists(0)(in.signed()) = in.int())
    else {
      lists.clear()
      (0 until in.int()).foreach(_ => lists += readList(in, 0L, new Entries))
    }

  /** Writes the lists; the first version of the cell is for slots without pages. */
  def write(out: CellWriter, version: Byte): Unit =
    if (version == Codec.Version) {
      out.varLong(lists(0).size.toLong)
      lists(0).foreach { case (slot, chunks) => out.signed(slot).varLong(chunks.toLong) }
    } else {
      out.varLong(lists.size.toLong)
      lists.foreach(writeList(out, 0L, _))
    }

  /** Each entry as its distance from the one before, the first from `start`. */
  private def writeList(out: CellWriter, start: Long, entries: Entries): Unit = {
    out.varLong(entries.size.toLong)
    var before = start
    entries.foreach { case (entry, cells) =>
      out.signed(entry - before).varLong(cells.toLong)
      before = entry
    }
  }

  private def readList(in: CellReader, start: Long, entries: Entries): Entries = {
    var before = start
    (0 until in.int()).foreach { _ =>
      before += in.signed()
      entries(before) = in.int()
    }
    entries
  }
}

private object SlotTree {
  private final val PageBits = 5
}
