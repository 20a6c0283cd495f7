"""The pages: a module each, with a `Page` to register."""
