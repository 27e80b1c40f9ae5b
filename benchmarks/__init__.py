"""Measurements, run by hand: `make bench`.  They print and never judge."""
