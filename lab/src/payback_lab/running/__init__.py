"""Making runs: what is planned, on which processes, and how far it is."""
