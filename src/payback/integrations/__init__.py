"""Adapters for the training loops people already have, one file per framework.

Each asks the bonus for F_t, has the transform shape it once per step, and pays r_t + F'_t; none computes a repayment.
Import the one you need, for instance `payback.integrations.gymnasium`; nothing here is imported by the core.
Pyright checks them in its standard mode, because the types of the hosts are generic or missing.
"""
