package org.apache.spark.sql.rejoin.checkpoint

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, LocalFileSystem, Path}

import org.apache.spark.SparkConf
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS

/** Hadoop's settings in a JVM without a Spark session, and a lighter form of those of a session.
  *
  * Without a session Spark's properties are system properties of the JVM. A session hands its file systems those that
  * begin with `spark.hadoop.`, without this prefix, and those of SQL.
  */
private[rejoin] object HadoopSettings {

  /** For files in a folder. One on a disk has Spark's own file manager, whatever another folder needs. */
  def forFilesIn(folder: String): Configuration = {
    val properties = new SparkConf
    val hadoop = SparkHadoopUtil.newConfiguration(properties)
    properties.getAllWithPrefix("spark.sql.").foreach { case (name, value) => hadoop.set(s"spark.sql.$name", value) }
    if (new Path(folder).getFileSystem(hadoop).isInstanceOf[LocalFileSystem])
      hadoop.unset(STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key)
    hadoop
  }

  /** Forgets where each setting comes from, which nothing asks for.
    *
    * For each stateful operator and epoch Spark writes all settings for the tasks, and each origin is compressed by
    * itself, which takes several times as long as the settings.
    */
  def forgetOrigins(settings: Configuration): Unit = {
    FileSystem.getFileSystemClass("file", settings) // the first one loads all of them, and HDFS then adds its settings
    settings.size() // reads the files
    val origins = classOf[Configuration].getDeclaredField("updatingResource")
    origins.setAccessible(true)
    origins.get(settings).asInstanceOf[java.util.Map[_, _]].clear()
  }
}
