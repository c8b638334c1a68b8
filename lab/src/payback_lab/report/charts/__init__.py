"""The charts of the report, one kind per file; `collection` gathers those of a page and saves them as figures."""
