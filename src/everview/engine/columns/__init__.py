"""Plans computed on Arrow columns in memory, without a database.

To plan a statement costs a database milliseconds, however few rows it is about. Here an operator
over few rows costs some ten microseconds. Only what is shown to give the same answer is computed
here; everything else, and every error, is a question to the database.
"""
