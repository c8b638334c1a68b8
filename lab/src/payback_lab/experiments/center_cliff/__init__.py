"""Which mean is subtracted, on the short cliff."""
