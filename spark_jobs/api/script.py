"""The text of a job under construction; every statement is bound and planned when it is added."""

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import BoundQuery, bind, bind_query
from spark_jobs.sql.bind.binder import Job as BoundJob


class Script:
    """SQL statements in order. A statement that cannot be bound or planned raises SqlErrors."""

    def __init__(self, text: str = "", source_name: str = "<job>") -> None:
        self.text = ""
        self.source_name = source_name
        self._functions: dict[str, str] = {}
        if text.strip():
            self.add(text)

    def add(self, statement: str) -> None:
        """Add statements; each ends with a semicolon or with the text."""
        if ended := statement.rstrip().removesuffix(";"):
            text = f"{self.text}{ended};\n"
            _check(text, self.source_name)
            self.text = text

    def declare_function(self, name: str, statement: str) -> None:
        """Add a temporal table function, unless the same one was added before."""
        if self._functions.get(name) != statement:
            self.add(statement)
            self._functions[name] = statement

    def job(self) -> BoundJob:
        """The bound job. Raises SqlErrors, also if the job has no INSERT."""
        return bind(self.text, self.source_name)

    def query(self, select: str) -> BoundQuery:
        """A SELECT over the tables and views of the job, bound."""
        return bind_query(f"{self.text}{select};\n", self.source_name)


def _check(text: str, source_name: str) -> None:
    try:
        plan(bind(text, source_name))
    except SqlErrors as problems:
        if problems.codes != ("NO_INSERT",):
            raise
