package rejoin.core.results

import java.io.File

import scala.collection.mutable

/** Where the rows of a batch wait that do not fit into memory: files that live no longer than the task.
  *
  * @param maxBytes
  *   what each of those who hold rows may keep in memory before the rest goes to a file
  * @param newFile
  *   makes an empty file
  */
final class Overflow(val maxBytes: Long, newFile: () => File) {
  private val files = mutable.HashSet.empty[OverflowFile]

  def open(): OverflowFile = {
    val file = new OverflowFile(newFile(), files -= _)
    files += file
    file
  }

  /** Deletes what is left; a task that failed has not come to it. */
  def close(): Unit = files.toSeq.foreach(_.delete())
}

object Overflow {

  /** For runs whose results are small, or held in memory anyway. */
  def inMemory: Overflow =
    new Overflow(Long.MaxValue, () => throw new IllegalStateException("all rows of this run stay in memory"))
}
