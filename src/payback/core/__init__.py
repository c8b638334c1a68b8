"""F → F′: every reward transform, the law written once. Import from `payback`; this package re-exports nothing."""
