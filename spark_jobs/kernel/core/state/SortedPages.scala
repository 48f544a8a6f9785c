package rejoin.core.state

import java.util.Arrays

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter, Codec}

/** Keys in byte order with a value each, as a B+tree whose nodes are cells of a few kB.
  *
  * {{{
  * root       : inside the header cell of the key it belongs to      (almost every key)
  * other nodes: cells tag + node number + key
  * }}}
  * A change and a look-up cost one node per level however many entries there are. The first key of an
  * inner node means nothing: its first child holds everything below the second.
  */
final class SortedPages(pageTag: Char) {
  import SortedPages._

  private var key: Array[Byte] = _
  private var state: KeyedState = _
  private var root = new Node(0, 0)
  private var nextNumber = 1
  private val loaded = new mutable.LongMap[Node]
  private val dropped = new ArrayBuffer[Int]

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    this.key = key
    this.state = state
    root = new Node(0, 0)
    nextNumber = 1
    if (loaded.nonEmpty) loaded.clear()
    dropped.clear()
  }

  def isEmpty: Boolean = root.isEmpty

  /** Whether everything fits into the header. */
  def isOnePage: Boolean = root.isLeaf

  /** The value of an entry, or null. */
  def get(entry: Array[Byte]): Array[Byte] = {
    val leaf = leafOf(entry)
    val at = leaf.indexOf(entry)
    if (at < 0) null else leaf.values(at)
  }

  /** The first entry, or null. */
  def first: Array[Byte] = {
    var node = root
    while (!node.isLeaf) node = child(node, 0)
    if (node.isEmpty) null else node.keys(0)
  }

  /** The last entry, or null. */
  def last: Array[Byte] = {
    var node = root
    while (!node.isLeaf) node = child(node, node.keys.size - 1)
    if (node.isEmpty) null else node.keys.last
  }

  /** The first entry at or after this one, or null. */
  def ceiling(entry: Array[Byte]): Array[Byte] = ceiling(root, entry)

  /** The last entry before this one, or null. */
  def lower(entry: Array[Byte]): Array[Byte] = lower(root, entry)

  def put(entry: Array[Byte], value: Array[Byte]): Unit = {
    val right = put(root, entry, value)
    if (right != null) {
      val left = newNode(root.level)
      root.moveAllTo(left)
      root.level += 1
      root.addChild(left)
      root.addChild(right)
    }
  }

  def remove(entry: Array[Byte]): Unit = {
    remove(root, entry)
    while (!root.isLeaf && root.keys.size == 1) {
      val only = child(root, 0)
      drop(only.number)
      root.clear()
      root.level = only.level
      only.moveAllTo(root)
    }
  }

  /** Visits the entries in order; the visitor changes nothing. */
  def foreach(visit: (Array[Byte], Array[Byte]) => Unit): Unit = foreach(root, visit)

  /** Forgets everything, without reading a leaf. */
  def clear(): Unit = {
    dropAll(root)
    root = new Node(0, 0)
  }

  private def ceiling(node: Node, entry: Array[Byte]): Array[Byte] =
    if (node.isLeaf) {
      val at = node.indexOf(entry)
      val from = if (at < 0) -at - 1 else at
      if (from < node.keys.size) node.keys(from) else null
    } else {
      var i = node.childOf(entry)
      var found = ceiling(child(node, i), entry)
      while (found == null && i + 1 < node.keys.size) {
        i += 1
        found = ceiling(child(node, i), entry)
      }
      found
    }

  private def lower(node: Node, entry: Array[Byte]): Array[Byte] =
    if (node.isLeaf) {
      val at = node.indexOf(entry)
      val until = if (at < 0) -at - 1 else at
      if (until > 0) node.keys(until - 1) else null
    } else {
      var i = node.childOf(entry)
      var found = lower(child(node, i), entry)
      while (found == null && i > 0) {
        i -= 1
        found = lower(child(node, i), entry)
      }
      found
    }

  private def leafOf(entry: Array[Byte]): Node = {
    var node = root
    while (!node.isLeaf) node = child(node, node.childOf(entry))
    node
  }

  private def foreach(node: Node, visit: (Array[Byte], Array[Byte]) => Unit): Unit = {
    var i = 0
    while (i < node.keys.size) {
      if (node.isLeaf) visit(node.keys(i), node.values(i)) else foreach(child(node, i), visit)
      i += 1
    }
  }

  /** Gives the new right neighbour where the node had to split. */
  private def put(node: Node, entry: Array[Byte], value: Array[Byte]): Node = {
    if (node.isLeaf) node.putLeaf(entry, value)
    else {
      val i = node.childOf(entry)
      val right = put(child(node, i), entry, value)
      if (right != null) node.insertChild(i + 1, right)
    }
    if (node.bytes > PageBytes && node.keys.size > 2) {
      val right = newNode(node.level)
      node.moveTo(right, node.keys.size / 2)
      right
    } else null
  }

  private def remove(node: Node, entry: Array[Byte]): Unit =
    if (node.isLeaf) node.removeLeaf(entry)
    else {
      val i = node.childOf(entry)
      val below = child(node, i)
      remove(below, entry)
      if (below.isEmpty) {
        node.removeAt(i)
        drop(below.number)
      } else if (below.bytes < PageBytes / 4 && node.keys.size > 1) merge(node, if (i > 0) i - 1 else 0)
    }

  /** Joins a node's child with its right neighbour if they fit well into one page. */
  private def merge(node: Node, at: Int): Unit = {
    val left = child(node, at)
    val right = child(node, at + 1)
    if (left.bytes + right.bytes < PageBytes * 3 / 4) {
      if (!right.isLeaf) right.replaceKey(0, node.keys(at + 1))
      right.moveAllTo(left)
      node.removeAt(at + 1)
      drop(right.number)
    }
  }

  private def drop(number: Int): Unit = {
    loaded.remove(number.toLong)
    dropped += number
  }

  private def dropAll(node: Node): Unit =
    if (!node.isLeaf) node.children.indices.foreach { i =>
      if (node.level > 1) dropAll(child(node, i))
      drop(node.children(i))
    }

  private def newNode(level: Int): Node = {
    val node = new Node(nextNumber, level)
    node.dirty = true
    loaded(nextNumber.toLong) = node
    nextNumber += 1
    node
  }

  private def child(node: Node, i: Int): Node = {
    val number = node.children(i)
    loaded.getOrElseUpdate(
      number.toLong, {
        val found = new Node(number, node.level - 1)
        found.read(new CellReader(state.get(Cell.page(pageTag, number, key))).version())
        found
      })
  }

  /** Reads the header's part. */
  def read(in: CellReader): Unit = {
    nextNumber = in.int()
    root.level = in.int()
    root.read(in)
  }

  /** Writes the header's part, and the nodes that changed. */
  def write(out: CellWriter, pageOut: CellWriter): Unit = {
    out.varLong(nextNumber.toLong).varLong(root.level.toLong)
    root.write(out)
    dropped.foreach(number => state.remove(Cell.page(pageTag, number, key)))
    dropped.clear()
    loaded.foreach { case (number, node) =>
      if (node.dirty) {
        node.write(pageOut.reset().byte(Codec.Version))
        state.put(Cell.page(pageTag, number.toInt, key), pageOut.result())
      }
    }
  }
}

object SortedPages {

  /** A node splits when it grows beyond this. */
  private val PageBytes = 4096

  private val ChildBytes = 6
  private val NoBytes = new Array[Byte](0)

  /** Level 0 holds entries, the others children. */
  private final class Node(val number: Int, var level: Int) {
    val keys = new ArrayBuffer[Array[Byte]](4)
    val values = new ArrayBuffer[Array[Byte]](4)
    val children = new ArrayBuffer[Int](0)
    var bytes = 0
    var dirty = false

    def isLeaf: Boolean = level == 0
    def isEmpty: Boolean = keys.isEmpty

    /** Where an entry is, or -(where it belongs) - 1. */
    def indexOf(entry: Array[Byte]): Int = {
      var low = 0
      var high = keys.size - 1
      while (low <= high) {
        val middle = (low + high) >>> 1
        val order = Arrays.compareUnsigned(keys(middle), entry)
        if (order < 0) low = middle + 1
        else if (order > 0) high = middle - 1
        else return middle
      }
      -low - 1
    }

    /** The child below which an entry belongs; the first one takes all that is too small for the others. */
    def childOf(entry: Array[Byte]): Int = {
      var low = 1
      var high = keys.size - 1
      while (low <= high) {
        val middle = (low + high) >>> 1
        if (Arrays.compareUnsigned(keys(middle), entry) <= 0) low = middle + 1 else high = middle - 1
      }
      high
    }

    def putLeaf(entry: Array[Byte], value: Array[Byte]): Unit = {
      val at = indexOf(entry)
      if (at >= 0) {
        bytes += value.length - values(at).length
        values(at) = value
      } else {
        keys.insert(-at - 1, entry)
        values.insert(-at - 1, value)
        bytes += sizeAt(-at - 1)
      }
      dirty = true
    }

    def removeLeaf(entry: Array[Byte]): Unit = {
      val at = indexOf(entry)
      if (at >= 0) removeAt(at)
    }

    def addChild(child: Node): Unit = insertChild(keys.size, child)

    def insertChild(at: Int, child: Node): Unit = {
      keys.insert(at, child.keys(0))
      children.insert(at, child.number)
      bytes += sizeAt(at)
      dirty = true
    }

    def removeAt(at: Int): Unit = {
      bytes -= sizeAt(at)
      keys.remove(at)
      if (isLeaf) values.remove(at) else children.remove(at)
      dirty = true
    }

    def replaceKey(at: Int, entry: Array[Byte]): Unit = {
      bytes += entry.length - keys(at).length
      keys(at) = entry
      dirty = true
    }

    def moveAllTo(other: Node): Unit = moveTo(other, 0)

    /** Moves what stands at `from` and behind to the end of another node. */
    def moveTo(other: Node, from: Int): Unit = {
      val moved = (from until keys.size).map(sizeAt).sum
      other.keys ++= keys.view.drop(from)
      if (isLeaf) other.values ++= values.view.drop(from) else other.children ++= children.view.drop(from)
      other.bytes += moved
      other.dirty = true
      keys.takeInPlace(from)
      if (isLeaf) values.takeInPlace(from) else children.takeInPlace(from)
      bytes -= moved
      dirty = true
    }

    def clear(): Unit = {
      keys.clear()
      values.clear()
      children.clear()
      bytes = 0
    }

    private def sizeAt(i: Int): Int = keys(i).length + 2 + (if (isLeaf) values(i).length else ChildBytes)

    def read(in: CellReader): Unit = {
      (0 until in.int()).foreach { i =>
        keys += in.blob()
        if (isLeaf) {
          val value = in.blob()
          values += (if (value.isEmpty) NoBytes else value)
        } else children += in.int()
        bytes += sizeAt(i)
      }
    }

    def write(out: CellWriter): Unit = {
      out.varLong(keys.size.toLong)
      keys.indices.foreach { i =>
        out.blob(keys(i))
        if (isLeaf) out.blob(values(i)) else out.varLong(children(i).toLong)
      }
      dirty = false
    }
  }
}
