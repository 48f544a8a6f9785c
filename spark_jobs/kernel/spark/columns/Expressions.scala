package org.apache.spark.sql.rejoin.columns

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.{Analyzer, FakeV2SessionCatalog}
import org.apache.spark.sql.catalyst.catalog.{InMemoryCatalog, SessionCatalog}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.catalyst.optimizer._
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.connector.catalog.DefaultCatalogManager
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.rejoin.functions.FlinkFunctions

/** Spark SQL texts as expressions bound to the ordinals of a schema. Needs no session.
  *
  * Texts are analysed under a configuration of their own (ANSI off, the table's time zone), so that
  * they mean the same in a query, in a task and in a test.
  */
object Expressions {
  final val DefaultTimeZone = "UTC"

  /** Analyses texts over the columns of `schema`; to be called on the driver. */
  def bind(
      texts: Seq[String],
      schema: StructType,
      timeZone: String = DefaultTimeZone): Seq[Expression] =
    if (texts.isEmpty) Nil
    else
      configured(timeZone) { conf =>
        val columns = DataTypeUtils.toAttributes(schema)
        texts.map(text => bindOne(text, columns, conf))
      }

  /** As [[bind]], the results cast to the types that the planner gave them where Spark's differ. */
  def bindAs(
      texts: Seq[String],
      schema: StructType,
      wanted: StructType,
      timeZone: String): Seq[Expression] =
    bind(texts, schema, timeZone).zip(wanted.fields).map { case (expression, column) =>
      if (DataType.equalsIgnoreNullability(expression.dataType, column.dataType)) expression
      else Cast(expression, column.dataType, Some(timeZone), EvalMode.LEGACY)
    }

  /** Compiles a bound condition; to be called in the task that evaluates it. */
  def compiledPredicate(condition: Expression, timeZone: String): BasePredicate =
    configured(timeZone) { _ =>
      val predicate = Predicate.create(condition)
      predicate.initialize(0)
      predicate
    }

  /** Compiles bound expressions; equal parts of them are evaluated once. */
  def compiledProjection(expressions: Seq[Expression], timeZone: String): UnsafeProjection =
    configured(timeZone) { _ =>
      val projection =
        GenerateUnsafeProjection.generate(expressions, subexpressionEliminationEnabled = true)
      projection.initialize(0)
      projection
    }

  private def bindOne(text: String, columns: Seq[Attribute], conf: SQLConf): Expression = {
    val plan =
      try {
        val parsed = CatalystSqlParser.parseExpression(text)
        val analyzer = new Analyzer(catalogManager(conf))
        val project = Project(Seq(Alias(parsed, "value")()), LocalRelation(columns))
        val analysed = analyzer.execute(project)
        analyzer.checkAnalysis(analysed)
        analysed
      } catch {
        case NonFatal(e) =>
          throw new IllegalArgumentException(s"cannot bind $text: ${e.getMessage}", e)
      }
    simplified(plan) match {
      case Project(Seq(Alias(expression, _)), relation: LocalRelation) =>
        BindReferences.bindReference(expression, relation.output)
      case Project(Seq(column: Attribute), relation: LocalRelation) =>
        BindReferences.bindReference[Expression](column, relation.output)
      case other => throw new IllegalArgumentException(s"$text is not a row expression:\n$other")
    }
  }

  /** Rules of Spark's optimizer: those that replace expressions which cannot be evaluated as they are, and those that
    * fold constants.
    */
  private val rules: Seq[Rule[LogicalPlan]] = Seq(
    ReplaceExpressions,
    RewriteWithExpression,
    NullPropagation,
    ConstantFolding,
    BooleanSimplification,
    SimplifyCasts,
    OptimizeIn)

  private def simplified(plan: LogicalPlan): LogicalPlan =
    rules.foldLeft(plan)((p, rule) => rule(p))

  private def catalogManager(conf: SQLConf): DefaultCatalogManager =
    new DefaultCatalogManager(
      FakeV2SessionCatalog,
      new SessionCatalog(new InMemoryCatalog, FlinkFunctions.registry, conf))

  private def configured[T](timeZone: String)(body: SQLConf => T): T = {
    val conf = new SQLConf
    conf.setConf(SQLConf.ANSI_ENABLED, false)
    conf.setConf(SQLConf.SESSION_LOCAL_TIMEZONE, timeZone)
    conf.setConf(SQLConf.ALWAYS_INLINE_COMMON_EXPR, true)
    conf.setConf(SQLConf.MAP_KEY_DEDUP_POLICY, SQLConf.MapKeyDedupPolicy.LAST_WIN)
    SQLConf.withExistingConf(conf)(body(conf))
  }
}

/** Expressions bound on the driver and compiled once in each task; the result row is reused. */
final class RowProjection(expressions: Seq[Expression], timeZone: String) extends Serializable {
  @transient private lazy val compiled = Expressions.compiledProjection(expressions, timeZone)

  def apply(row: InternalRow): UnsafeRow = compiled(row)
}
