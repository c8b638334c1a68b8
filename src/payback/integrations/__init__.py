"""Adapters for the training loops people already have, one file per framework.

Each holds a transform's state, calls `update` once per step, and decides nothing else. Import the one you
need, for instance `payback.integrations.gymnasium`; nothing here is imported by the core.
"""
