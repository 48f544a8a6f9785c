package rejoin.core.state

import java.util.Arrays

import scala.collection.mutable.ArrayBuffer

import rejoin.core.row.{CellReader, CellWriter}

/** Keys in byte order with a value each, as a B+tree whose nodes are pages of a few kB.
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

  private val nodes = new PageStore[Node](pageTag, new Node(_))
  private var root = new Node(0)

  def reset(key: Array[Byte], state: KeyedState): Unit = {
    nodes.reset(key, state)
    root = new Node(0)
  }

  def isEmpty: Boolean = root.isEmpty

  /** Whether everything fits into the header. */
  def isOnePage: Boolean = root.isLeaf

  /** The value of a key, or null. */
  def get(key: Array[Byte]): Array[Byte] = {
    var node = root
    while (!node.isLeaf) node = child(node, node.childOf(key))
    val at = node.indexOf(key)
    if (at < 0) null else node.entries(at).value
  }

  /** The first key, or null. */
  def first: Array[Byte] = ceiling(NoBytes)

  /** The last key, or null. */
  def last: Array[Byte] = {
    var node = root
    while (!node.isLeaf) node = child(node, node.entries.size - 1)
    if (node.isEmpty) null else node.entries.last.key
  }

  /** The first key at or after this one, or null. */
  def ceiling(key: Array[Byte]): Array[Byte] = neighbour(root, key, step = 1)

  /** The last key before this one, or null. */
  def lower(key: Array[Byte]): Array[Byte] = neighbour(root, key, step = -1)

  def put(key: Array[Byte], value: Array[Byte]): Unit = {
    val right = put(root, key, value)
    if (right != null) {
      val left = root
      nodes.add(left)
      root = new Node(left.level + 1)
      root.insertChild(0, left)
      root.insertChild(1, right)
    }
  }

  def remove(key: Array[Byte]): Unit = {
    remove(root, key)
    while (!root.isLeaf && root.entries.size == 1) {
      root = child(root, 0)
      nodes.remove(root.number)
    }
  }

  /** Visits keys and values in order; the visitor changes nothing. */
  def foreach(visit: (Array[Byte], Array[Byte]) => Unit): Unit = foreach(root, visit)

  /** Forgets everything, without reading a leaf. */
  def clear(): Unit = {
    removeBelow(root)
    root = new Node(0)
  }

  /** The first key at or after this one (step 1) or the last one before it (step -1), below a node. */
  private def neighbour(node: Node, key: Array[Byte], step: Int): Array[Byte] = {
    var found: Array[Byte] = null
    if (node.isLeaf) {
      val place = if (step > 0) node.placeOf(key) else node.placeOf(key) - 1
      if (place >= 0 && place < node.entries.size) found = node.entries(place).key
    } else {
      var i = node.childOf(key)
      while (found == null && i >= 0 && i < node.entries.size) {
        found = neighbour(child(node, i), key, step)
        i += step
      }
    }
    found
  }

  private def foreach(node: Node, visit: (Array[Byte], Array[Byte]) => Unit): Unit =
    node.entries.indices.foreach { i =>
      if (node.isLeaf) visit(node.entries(i).key, node.entries(i).value) else foreach(child(node, i), visit)
    }

  /** Gives the new right neighbour where the node had to split. */
  private def put(node: Node, key: Array[Byte], value: Array[Byte]): Node = {
    if (node.isLeaf) node.put(new Entry(key, value))
    else {
      val i = node.childOf(key)
      val right = put(child(node, i), key, value)
      if (right != null) node.insertChild(i + 1, right)
    }
    if (node.bytes > PageBytes && node.entries.size > 2) {
      val right = new Node(node.level)
      nodes.add(right)
      node.moveTo(right, node.entries.size / 2)
      right
    } else null
  }

  private def remove(node: Node, key: Array[Byte]): Unit =
    if (node.isLeaf) node.remove(key)
    else {
      val i = node.childOf(key)
      val below = child(node, i)
      remove(below, key)
      if (below.isEmpty) {
        node.removeAt(i)
        nodes.remove(below.number)
      } else if (below.bytes < PageBytes / 4 && node.entries.size > 1) merge(node, if (i > 0) i - 1 else 0)
    }

  /** Joins a node's child with its right neighbour if they fit well into one page. */
  private def merge(node: Node, at: Int): Unit = {
    val left = child(node, at)
    val right = child(node, at + 1)
    if (left.bytes + right.bytes < PageBytes * 3 / 4) {
      if (!right.isLeaf) right.set(0, new Entry(node.entries(at + 1).key, NoBytes, right.entries(0).child))
      right.moveTo(left, 0)
      node.removeAt(at + 1)
      nodes.remove(right.number)
    }
  }

  private def removeBelow(node: Node): Unit =
    if (!node.isLeaf) node.entries.indices.foreach { i =>
      if (node.level > 1) removeBelow(child(node, i))
      nodes.remove(node.entries(i).child)
    }

  private def child(node: Node, i: Int): Node = nodes.page(node.entries(i).child, node.level - 1)

  /** Reads the root node, which the key's own cell holds. */
  def read(in: CellReader): Unit = {
    nodes.nextNumber = in.int()
    root = new Node(in.int())
    root.read(in)
  }

  /** Writes the root node into the key's own cell, and the other nodes that changed into theirs. */
  def write(out: CellWriter): Unit = {
    root.write(out.varLong(nodes.nextNumber.toLong).varLong(root.level.toLong))
    nodes.write()
  }
}

object SortedPages {

  /** A node splits when it grows beyond this. */
  private val PageBytes = 4096

  private val ChildBytes = 6
  private val NoBytes = new Array[Byte](0)

  /** A key with its value, or with the number of a node below. */
  private final class Entry(val key: Array[Byte], val value: Array[Byte], val child: Int = 0)

  /** Level 0 has keys with values, any other has the nodes of the level below. */
  private final class Node(val level: Int) extends Page {
    val entries = new ArrayBuffer[Entry](4)
    var bytes = 0

    def isLeaf: Boolean = level == 0
    def isEmpty: Boolean = entries.isEmpty

    /** Where a key is, or -(where it belongs) - 1. */
    def indexOf(key: Array[Byte]): Int = search(key, 0)

    /** Where a key is or belongs. */
    def placeOf(key: Array[Byte]): Int = {
      val at = indexOf(key)
      if (at < 0) -at - 1 else at
    }

    /** The child below which a key belongs; the first one takes all that is too small for the others. */
    def childOf(key: Array[Byte]): Int = {
      val at = search(key, 1)
      if (at < 0) -at - 2 else at
    }

    private def search(key: Array[Byte], from: Int): Int = {
      var low = from
      var high = entries.size - 1
      var found = -1
      while (found < 0 && low <= high) {
        val middle = (low + high) >>> 1
        val order = Arrays.compareUnsigned(entries(middle).key, key)
        if (order < 0) low = middle + 1 else if (order > 0) high = middle - 1 else found = middle
      }
      if (found < 0) -low - 1 else found
    }

    def put(entry: Entry): Unit = {
      val at = indexOf(entry.key)
      if (at < 0) insert(-at - 1, entry) else set(at, entry)
    }

    def remove(key: Array[Byte]): Unit = {
      val at = indexOf(key)
      if (at >= 0) removeAt(at)
    }

    def insertChild(at: Int, child: Node): Unit = insert(at, new Entry(child.entries(0).key, NoBytes, child.number))

    private def insert(at: Int, entry: Entry): Unit = {
      entries.insert(at, entry)
      bytes += sizeOf(entry)
      isDirty = true
    }

    def set(at: Int, entry: Entry): Unit = {
      bytes += sizeOf(entry) - sizeOf(entries(at))
      entries(at) = entry
      isDirty = true
    }

    def removeAt(at: Int): Unit = {
      bytes -= sizeOf(entries.remove(at))
      isDirty = true
    }

    /** Moves what stands at `from` and behind to the end of another node. */
    def moveTo(other: Node, from: Int): Unit = {
      val moved = entries.view.drop(from).map(sizeOf).sum
      other.entries ++= entries.view.drop(from)
      other.bytes += moved
      other.isDirty = true
      entries.takeInPlace(from)
      bytes -= moved
      isDirty = true
    }

    private def sizeOf(entry: Entry): Int =
      entry.key.length + 2 + (if (isLeaf) entry.value.length else ChildBytes)

    def read(in: CellReader): Unit =
      (0 until in.int()).foreach { _ =>
        val key = in.blob()
        val value = if (isLeaf) in.blob() else NoBytes
        val entry = new Entry(key, if (value.isEmpty) NoBytes else value, if (isLeaf) 0 else in.int())
        entries += entry
        bytes += sizeOf(entry)
      }

    def write(out: CellWriter): Unit = {
      out.varLong(entries.size.toLong)
      entries.foreach { entry =>
        out.blob(entry.key)
        if (isLeaf) out.blob(entry.value) else out.varLong(entry.child.toLong)
      }
    }
  }
}
