"""`python -m errata`."""

from .cli import main

main()
