"""The text of a job that is being written; every statement is bound when it is added."""

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import BoundQuery, Job, bind, bind_query


class Script:
    """Statements in order. What does not bind or plan is not added, and raises SqlErrors."""

    def __init__(self, text: str = "", source_name: str = "<job>") -> None:
        self.text = ""
        self.source_name = source_name
        self._functions: dict[str, str] = {}
        if text.strip():
            self.add(text)

    def add(self, statement: str) -> None:
        """One statement or several; each ends with a semicolon or with the text."""
        if ended := statement.rstrip().removesuffix(";"):
            text = f"{self.text}{ended};\n"
            _check(text, self.source_name)
            self.text = text

    def declare_function(self, name: str, statement: str) -> None:
        """A temporal table function; the same once more is no second one."""
        if self._functions.get(name) != statement:
            self.add(statement)
            self._functions[name] = statement

    def job(self) -> Job:
        """What the statements mean. Raises SqlErrors, also where nothing is inserted."""
        return bind(self.text, self.source_name)

    def query(self, select: str) -> BoundQuery:
        """What a SELECT over the tables and views means."""
        return bind_query(f"{self.text}{select};\n", self.source_name)


def _check(text: str, source_name: str) -> None:
    try:
        plan(bind(text, source_name))
    except SqlErrors as problems:
        if problems.codes != ("NO_INSERT",):
            raise
