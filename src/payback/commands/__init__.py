"""What the command line does besides the experiments: one file per command."""
