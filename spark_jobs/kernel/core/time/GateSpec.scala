package rejoin.core.time

/** When probe rows may look at the build side: `none`, `loaded`, or `watermark` at `atMs`.
  *
  * @param table
  *   the build side's name, for messages
  * @param build
  *   the streams whose marks open the gate
  */
final case class GateSpec(
    kind: String,
    atMs: Long,
    timeoutMs: Long,
    onTimeout: String,
    table: String,
    build: Seq[TopicTime])
