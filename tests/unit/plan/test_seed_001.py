"""The plans of seed 001, line for line as the seed shows them.

The seed's tables come from Flink's TestTableSource; explain names a source after its connector,
so the tables here have one called `test`.
"""

from collections.abc import Callable

from spark_jobs.plan.planner import plan_query
from spark_jobs.plan.text.explain import explain_query
from spark_jobs.sql.logical import Field, Join, Project, Scan
from spark_jobs.sql.types.expr import Call, Column

LOGICAL = """\
LogicalProject(a1=[$0], b1=[$3])
+- LogicalJoin(condition=[AND(=($0, $3), >($1, $4))], joinType=[inner])
   :- LogicalTableScan(table=[[A, source: [TestTableSource(a1, a2, a3)]]])
   +- LogicalTableScan(table=[[B, source: [TestTableSource(b1, b2, b3)]]])
"""

OPTIMIZED_LOGICAL = """\
FlinkLogicalCalc(select=[a1, b1])
+- FlinkLogicalJoin(condition=[AND(=($0, $2), >($1, $3))], joinType=[inner])
   :- FlinkLogicalCalc(select=[a1, a2])
   :  +- FlinkLogicalTableSourceScan(table=[[A, source: [TestTableSource(a1, a2, a3)]]], \
fields=[a1, a2, a3])
   +- FlinkLogicalCalc(select=[b1, b2])
      +- FlinkLogicalTableSourceScan(table=[[B, source: [TestTableSource(b1, b2, b3)]]], \
fields=[b1, b2, b3])
"""

OPTIMIZED_PHYSICAL = """\
Calc(select=[a1, b1])
+- Join(joinType=[InnerJoin], where=[AND(=(a1, b1), >(a2, b2))], select=[a1, a2, b1, b2], \
leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey])
   :- Exchange(distribution=[hash[a1]])
   :  +- Calc(select=[a1, a2])
   :     +- TableSourceScan(table=[[A, source: [TestTableSource(a1, a2, a3)]]], \
fields=[a1, a2, a3])
   +- Exchange(distribution=[hash[b1]])
      +- Calc(select=[b1, b2])
         +- TableSourceScan(table=[[B, source: [TestTableSource(b1, b2, b3)]]], \
fields=[b1, b2, b3])
"""


def test_plans_are_those_of_the_seed(
    scan: Callable[..., Scan], join: Callable[..., Join], call: Callable[..., Call]
) -> None:
    left, right = scan("A", "a1 a2 a3", changelog="test"), scan("B", "b1 b2 b3", changelog="test")
    fields = (*left.fields, *right.fields)
    a1, a2, _, b1, b2, _ = (Column(i, f.name, f.type) for i, f in enumerate(fields))
    joined = join(left, right, "inner", call("AND", call("=", a1, b1), call(">", a2, b2)))
    query = Project(joined, (a1, b1), (Field("a1", a1.type), Field("b1", b1.type)))

    text = explain_query(query, plan_query(query))

    sections = dict(part.split(" ==\n", 1) for part in text.split("== ")[1:])
    assert sections["Logical Plan"].strip() == LOGICAL.strip()
    assert sections["Optimized Logical Plan"].strip() == OPTIMIZED_LOGICAL.strip()
    assert sections["Optimized Physical Plan"].strip() == OPTIMIZED_PHYSICAL.strip()
    assert "RegularJoin" in sections["Rejoin Plan"]
