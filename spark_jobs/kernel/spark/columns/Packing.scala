package org.apache.spark.sql.rejoin.columns

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.types.{AbstractDataType, BinaryType, DataType, StructType}

/** Packs rows of one schema; an UnsafeRow is taken as it is. */
final class RowPacker(schema: StructType) extends Serializable {
  @transient private lazy val project = UnsafeProjection.create(schema)

  def apply(row: InternalRow): Array[Byte] = row match {
    case unsafe: UnsafeRow => Packed(unsafe)
    case other => Packed(project(other))
  }
}

/** The struct whose UnsafeRow bytes the child holds, without a copy: it points into them. */
final case class UnpackRow(child: Expression, schema: StructType)
    extends UnaryExpression
    with ExpectsInputTypes {
  override def inputTypes: Seq[AbstractDataType] = Seq(BinaryType)
  override def dataType: DataType = schema
  override def nullIntolerant: Boolean = true

  override protected def nullSafeEval(bytes: Any): Any = Packed.view(bytes.asInstanceOf[Array[Byte]], schema.size)

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val unsafeRow = classOf[UnsafeRow].getName
    val row =
      ctx.addMutableState(unsafeRow, "unpacked", v => s"$v = new $unsafeRow(${schema.size});")
    nullSafeCodeGen(
      ctx,
      ev,
      bytes => s"""
        $row.pointTo($bytes, $bytes.length);
        ${ev.value} = $row;""")
  }

  override protected def withNewChildInternal(newChild: Expression): UnpackRow =
    copy(child = newChild)
}
