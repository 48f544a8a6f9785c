package org.apache.spark.sql.rejoin.checkpoint

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{LocalFileSystem, Path}

import org.apache.spark.SparkConf
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS

/** Hadoop's settings in a JVM without a Spark session.
  *
  * Spark's properties are system properties of the JVM there. A session hands its file systems those that begin with
  * `spark.hadoop.`, without this prefix, and those of SQL.
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
}
