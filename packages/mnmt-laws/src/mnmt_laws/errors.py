"""The exceptions that a user's table, run records or arguments can cause."""


class TableError(Exception):
    """A run table or run record that cannot be analysed.

    One line: the file, the row as a spreadsheet numbers it, what is wrong and what would be right.
    """


class ArgumentError(ValueError):
    """An argument that a function cannot take: one sentence with its name, what is wrong and the remedy.

    The command line prints it as one line; any other `ValueError` is a bug and keeps its traceback.
    """
