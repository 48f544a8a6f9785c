package org.apache.spark.sql.rejoin.checkpoint

import java.io.{ByteArrayOutputStream, IOException, OutputStream}
import java.util.Arrays

import scala.language.existentials
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE
import org.apache.hadoop.fs.{FSDataOutputStream, FileAlreadyExistsException, Path}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

/** Checkpoint files on S3, where an object appears as a whole when its upload ends, and a rename is a copy.
  *
  * Spark's own manager writes a temporary file and renames it, which two writers can do at the same moment. Here a
  * file that has to be new is uploaded on the condition that there is none, so one of two drivers fails.
  */
final class ObjectStoreFiles(path: Path, hadoop: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, hadoop) {

  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    if (overwriteIfPossible) new Replacing(create(path, overwrite = true)) else new Creating(path)

  private def create(path: Path, overwrite: Boolean): FSDataOutputStream = {
    val file = fs.createFile(path)
    file.overwrite(overwrite)
    file.recursive()
    if (!overwrite) file.opt(FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true)
    file.build()
  }

  private final class Replacing(out: FSDataOutputStream) extends CancellableFSDataOutputStream(out) {
    override def cancel(): Unit = out.abort()
  }

  private final class Creating(path: Path, buffer: ByteArrayOutputStream = new ByteArrayOutputStream)
      extends CancellableFSDataOutputStream(buffer: OutputStream) {
    private var isOpen = true

    override def cancel(): Unit = isOpen = false

    override def close(): Unit = if (isOpen) {
      isOpen = false
      super.close()
      val content = buffer.toByteArray
      try Using.resource(create(path, overwrite = false))(_.write(content))
      catch {
        // S3A repeats a request whose answer was lost, and is then told that its own file is there
        case e: IOException if fs.exists(path) => if (!holds(path, content)) throw alreadyThere(path, e)
      }
    }
  }

  private def holds(path: Path, content: Array[Byte]): Boolean =
    Arrays.equals(Using.resource(fs.open(path))(_.readAllBytes()), content)

  private def alreadyThere(path: Path, cause: IOException): IOException =
    new FileAlreadyExistsException(s"$path exists already: another driver wrote it: ${cause.getMessage}")
}
