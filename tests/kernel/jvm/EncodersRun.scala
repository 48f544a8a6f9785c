package org.apache.spark.sql.rejoin.run

import org.apache.spark.sql.Encoders

import org.apache.spark.sql.rejoin.ingest.{ChangelogRow, EnvelopeRow}
import rejoin.core.row.{Changelog, Envelope}

/** The kernel's encoders beside those that Spark finds by reflection. */
object EncodersRun {
  def differing(): String =
    Seq(
      EnvelopeRow.encoder -> Encoders.product[Envelope],
      ChangelogRow.encoder -> Encoders.product[Changelog])
      .collect { case (own, found) if own != found => s"$own instead of $found" }
      .mkString("\n")
}
