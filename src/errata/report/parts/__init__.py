"""Parts of the slice page and the overview: a module for each section, a `Part` for each kind of explanation."""
