"""Checks that break a shaping, a matching, an intrinsic reward or a potential on purpose."""
