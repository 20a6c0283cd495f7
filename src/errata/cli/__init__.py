"""The command `errata`: one module a group of commands."""

from .app import COMMANDS, create_app, load_command, main

__all__ = ["COMMANDS", "create_app", "load_command", "main"]
