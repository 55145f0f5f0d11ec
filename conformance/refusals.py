"""The construct for which something was refused, from the words of the refusal."""

from __future__ import annotations

import re

from everview.errors import UserError

_FORMS = (
    (r"(?P<name>.+) cannot be maintained in a view yet", "{name}"),
    (r"the column .+ has a type that is not supported: (?P<name>.+)", "a column of type {name}"),
    (
        r"the column .+ has a type that cannot be stored yet: (?P<name>.+)",
        "a result of type {name}",
    ),
    (r"this part of CREATE TABLE is not supported: (?P<name>\w+).*", "{name} in CREATE TABLE"),
    (r"(?P<name>.+) is not part of the language.*", "{name}"),
    (
        r"the embedded engine cannot answer this as Spark would: "
        r"(?P<name>.+?)((:| is) not shown equal.*)?",
        "{name}, not shown equal on DuckDB",
    ),
    (
        r"the embedded engine does not know how Spark types the function (?P<name>\w+)",
        "{name}(), of a type not known on DuckDB",
    ),
    (
        r"the embedded engine does not know how Spark types (?P<name>.+)",
        "{name}: of a type not known on DuckDB",
    ),
    (r".+ is neither in GROUP BY nor inside an aggregate", "a column outside GROUP BY"),
    (r"a table needs its columns", "CREATE TABLE AS"),
    (r"the recursion of .+ has not ended after (?P<name>\d+) iterations.*", "{name} iterations"),
    (r"(?P<name>\w+)\(\) gives another answer every time.*", "{name}(), never the same twice"),
    (r"syntax error: .*", "syntax that is not read"),
    (r"a value cannot be computed: (?P<name>[^\n]*)", "a value that cannot be computed: {name}"),
)


def construct(problem: UserError) -> str:
    """What was refused, without the names of one case.

    >>> construct(UserError("Q020", "EXISTS cannot be maintained in a view yet", remedy="join"))
    'EXISTS'
    """
    for form, name in _FORMS:
        found = re.fullmatch(form, problem.problem, re.DOTALL)
        if found:
            return name.format(**found.groupdict())
    return f"{problem.code}: {problem.problem.splitlines()[0]}"
