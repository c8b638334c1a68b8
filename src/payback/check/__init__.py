"""Checks that try to break a shaping, a matching, an intrinsic reward or a potential."""
