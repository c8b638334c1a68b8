"""Long cliff walking."""
