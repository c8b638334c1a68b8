"""The paper's table of prior methods, decided by an exact solver."""
