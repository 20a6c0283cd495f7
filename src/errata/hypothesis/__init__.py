"""A condition or words of the user's own, parsed and tested on held-out rows."""
