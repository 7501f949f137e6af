"""Charts and tables of one chapter that are too long for its notebook.

In: frames of the chapter's module in `deathmatch.analysis`. Out: Altair charts and GT tables.
"""
