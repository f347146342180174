"""The exceptions that a user's table, run records or arguments can cause."""


class TableError(Exception):
    """A run table or run record that cannot be analysed.

    The message is one line: the file, the row as a spreadsheet numbers it, the fault and the remedy.
    """


class ArgumentError(ValueError):
    """An argument that a function cannot take: one sentence with its name, the fault and the remedy.

    The command line prints it as one line; any other `ValueError` is a bug and keeps its traceback.
    """
