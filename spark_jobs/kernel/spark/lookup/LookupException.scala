package org.apache.spark.sql.rejoin.lookup

/** A database that did not answer, in the end. */
final class LookupException(code: String, text: String, cause: Throwable)
    extends RuntimeException(s"[$code] $text", cause)

/** A database that refuses to be read, or a table that is not as SQL declares it: trying again does not help. */
final class LookupRefusedException(code: String, text: String, cause: Throwable = null)
    extends RuntimeException(s"[$code] $text", cause)
