"""Pipelines for tests/test_carry_over.py: today's cells, frozen, and small corrected ones."""
