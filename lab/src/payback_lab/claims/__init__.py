"""One engine for sentences: a sentence, its evidence, its rule, its verdict."""
