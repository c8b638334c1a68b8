"""Reward transforms, the core of payback. Import their names from `payback`; this package re-exports nothing."""
