package org.apache.spark.sql.rejoin.checkpoint

import java.io.{BufferedOutputStream, File, FileOutputStream}
import java.nio.file.{Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, FileAlreadyExistsException, Path}

import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager

/** Checkpoint files on a disk of this machine, as Spark writes them: a temporary file that is renamed.
  *
  * Spark's own manager does so through Hadoop, which has no native library here and so starts a process, `chmod`, for
  * every file that it creates, and creates a second file with checksums beside each. An epoch would start a dozen
  * processes. Nobody reads those checksums: the logs are text whose form is checked, and Spark has checksums of its
  * own for files of state.
  */
final class DiskFiles(path: Path, hadoop: Configuration) extends FileContextBasedCheckpointFileManager(path, hadoop) {

  /** Not a channel: an interrupt would close it, and Spark interrupts tasks and queries. */
  override def createTempFile(path: Path): FSDataOutputStream =
    new FSDataOutputStream(new BufferedOutputStream(new FileOutputStream(onDisk(path))), null)

  override def renameTempFile(from: Path, to: Path, overwriteIfPossible: Boolean): Unit = {
    val target = onDisk(to)
    if (!overwriteIfPossible && target.exists())
      throw new FileAlreadyExistsException(s"$to exists already: another driver wrote it")
    // checksums of what an earlier release wrote there would make the new file unreadable for Hadoop
    Files.deleteIfExists(new File(target.getParentFile, s".${target.getName}.crc").toPath)
    Files.move(onDisk(from).toPath, target.toPath, StandardCopyOption.ATOMIC_MOVE)
    ()
  }

  private def onDisk(path: Path): File = new File(path.toUri.getPath)
}
