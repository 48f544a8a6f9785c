package org.apache.spark.sql.rejoin.checkpoint

import java.io.{BufferedOutputStream, File, FileOutputStream}
import java.nio.file.{Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, FileAlreadyExistsException, FileSystem, Path}

import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager

/** Checkpoint files on a disk of this machine, as Spark writes them: a temporary file that is renamed.
  *
  * Spark's own manager does so through Hadoop, which has no native library here and so starts a process, `chmod`, for
  * every file that it creates, and creates a second file with checksums beside each. An epoch would start a dozen
  * processes. Nobody reads those checksums: the logs are text whose form is checked, and Spark has checksums of its
  * own for files of state.
  *
  * A folder of another file system, which may be Hadoop's default one, is left to Spark's own manager.
  */
final class DiskFiles(path: Path, hadoop: Configuration) extends FileContextBasedCheckpointFileManager(path, hadoop) {
  private val isOnDisk =
    Option(path.toUri.getScheme).getOrElse(FileSystem.getDefaultUri(hadoop).getScheme) == "file"

  /** Not a channel: an interrupt would close it, and Spark interrupts tasks and queries. */
  override def createTempFile(path: Path): FSDataOutputStream =
    if (isOnDisk) new FSDataOutputStream(new BufferedOutputStream(new FileOutputStream(onDisk(path))), null)
    else super.createTempFile(path)

  override def renameTempFile(from: Path, to: Path, overwriteIfPossible: Boolean): Unit =
    if (isOnDisk) rename(from, onDisk(to), overwriteIfPossible)
    else super.renameTempFile(from, to, overwriteIfPossible)

  private def rename(from: Path, target: File, overwriteIfPossible: Boolean): Unit = {
    if (!overwriteIfPossible && target.exists())
      throw new FileAlreadyExistsException(s"$target exists already: another driver wrote it")
    // checksums of what an earlier release wrote there would make the new file unreadable for Hadoop
    Files.deleteIfExists(new File(target.getParentFile, s".${target.getName}.crc").toPath)
    Files.move(onDisk(from).toPath, target.toPath, StandardCopyOption.ATOMIC_MOVE)
    ()
  }

  private def onDisk(path: Path): File = new File(path.toUri.getPath)
}
