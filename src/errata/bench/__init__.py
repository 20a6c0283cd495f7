"""Planted problems with known answers, and how well a method finds them."""
