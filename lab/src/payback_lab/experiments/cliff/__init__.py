"""Cliff walking."""
