package org.apache.spark.sql.rejoin.lookup

import java.io.FileNotFoundException

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import rejoin.core.row.{Bytes, CellReader, CellWriter}

/** What a task has looked up in an epoch, in the checkpoint: an epoch that is repeated sees the same again.
  *
  * Without it a repeated epoch could meet other rows than those whose results some writers have committed already.
  * `folder/partition/epoch` holds keys and answers by turns; the epoch before stays, older ones go, whichever they are:
  * a task without left rows writes nothing and removes nothing.
  */
final class LookupLog(folder: String, hadoop: Configuration, partition: Int, epoch: Long) {
  private val root = new Path(folder, partition.toString)
  private val file = new Path(root, epoch.toString)
  private lazy val files = CheckpointFileManager.create(root, hadoop)

  /** What the epoch's first run has looked up; none in the first run. */
  def read(): Option[Map[Bytes, Array[Byte]]] =
    try
      Using.resource(files.open(file)) { in =>
        val cells = new CellReader(in.readAllBytes())
        require(cells.byte() == LookupLog.Version, s"$file was written by another release")
        val found = Map.newBuilder[Bytes, Array[Byte]]
        while (cells.hasMore) found += Bytes(cells.blob()) -> cells.blob()
        Some(found.result())
      }
    catch { case _: FileNotFoundException => None }

  /** Keeps the answers; gives those that count, which another run of the task may have written before. */
  def write(answers: collection.Map[Bytes, Array[Byte]]): collection.Map[Bytes, Array[Byte]] = {
    val out = new CellWriter
    out.byte(LookupLog.Version)
    answers.foreach { case (key, answer) => out.blob(key.bytes).blob(answer) }
    files.mkdirs(root)
    try {
      val stream = files.createAtomic(file, overwriteIfPossible = false)
      try {
        stream.write(out.result())
        stream.close()
      } catch {
        case e: Throwable =>
          stream.cancel()
          throw e
      }
      removeOld()
      answers
    } catch { case _: FileAlreadyExistsException => answers ++ read().getOrElse(Map.empty) }
  }

  private def removeOld(): Unit =
    for (old <- files.list(root); number <- old.getPath.getName.toLongOption if number < epoch - 1)
      files.delete(old.getPath)
}

object LookupLog {
  private final val Version = 1
}
