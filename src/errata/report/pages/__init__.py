"""The pages: a module each, with a `Page` to register.

Two modules have none, since they are sub-pages: another form of a page at that page's own address, with its scripts and
keys. `drawn_slice` is a form of `slice`, and `questionnaire` one of
`annotate`; the page's `context` chooses it, and the value `template` names its template.
"""
