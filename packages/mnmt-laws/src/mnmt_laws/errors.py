"""The one exception that a user's table or run records can cause."""


class TableError(Exception):
    """A run table or run record that cannot be analysed.

    One line: the file, the row as a spreadsheet numbers it, what is wrong and what would be right.
    """
