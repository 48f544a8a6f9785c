package org.apache.spark.sql.rejoin.run

import java.util.concurrent.{ExecutionException, TimeUnit, TimeoutException}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.kafka.clients.admin.Admin
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, render}

import org.apache.spark.sql.rejoin.ingest.SourceGuard

/** The time at a cluster. Kafka has no request for it, but a KRaft controller tells of itself, as a
  * replica of the metadata log, that it was caught up just now by its own clock.
  */
object BrokerClock {
  private val TimeoutS = 10L

  /** `{"ms": its time, "before": ours when we asked, "after": when it had answered}`, or
    * `{"problem": why the cluster does not tell}`.
    */
  def json(client: Map[String, String]): String =
    compact(render(read(client) match {
      case Right((ms, before, after)) => ("ms" -> ms) ~ ("before" -> before) ~ ("after" -> after)
      case Left(problem) => "problem" -> problem
    }))

  private def read(client: Map[String, String]): Either[String, (Long, Long, Long)] =
    try
      Using.resource(Admin.create(SourceGuard.settings(client))) { admin =>
        ask(admin) // connects, so that the second answer takes no longer than it has to
        val before = System.currentTimeMillis
        val told = ask(admin)
        val after = System.currentTimeMillis
        told.map((_, before, after)).toRight("the controller does not tell it")
      }
    catch {
      case e: ExecutionException => Left(e.getCause.getMessage)
      case _: TimeoutException => Left(s"no answer within $TimeoutS s")
    }

  private def ask(admin: Admin): Option[Long] = {
    val quorum = admin.describeMetadataQuorum().quorumInfo().get(TimeoutS, TimeUnit.SECONDS)
    val leader = quorum.voters.asScala.find(_.replicaId == quorum.leaderId)
    leader.map(_.lastCaughtUpTimestamp).filter(time => time.isPresent && time.getAsLong > 0).map(_.getAsLong)
  }
}
