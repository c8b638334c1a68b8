"""Which delay."""
