package rejoin.core.machine.join

import rejoin.core.row.RowFunctions

/** What a join of two inputs asks about packed rows. One instance serves one task.
  *
  * @param residual
  *   whether a left and a right row pass the residual predicate; true where there is none
  * @param canMatch
  *   false for a join key that has a NULL in a column compared by `=`
  */
final class JoinFunctions(
    val residual: (Array[Byte], Array[Byte]) => Boolean,
    val left: RowFunctions,
    val right: RowFunctions,
    val canMatch: Array[Byte] => Boolean)
