"""Which mean is subtracted."""
