package rejoin.core.row

/** What to do with a record that cannot become a row. */
object OnError {
  final val Fail = "fail"
  final val DeadLetter = "dead-letter"
  final val Skip = "skip"
}

/** Stops the job under `rejoin.on-error` = `fail`. */
final class RejectedRecordException(message: String) extends RuntimeException(message)
