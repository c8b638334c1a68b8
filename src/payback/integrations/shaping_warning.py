"""The warning of every adapter."""


class ShapingWarning(UserWarning):
    """Something about the shaped task that its user should know."""


# Filters and tracebacks name it as users import it.
ShapingWarning.__module__ = "payback.integrations.ledger"
