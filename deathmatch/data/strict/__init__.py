"""Does a dataset say what was measured? The rules of `./shell deathmatch check --strict`.

In: a dataset's tables and raw logs, in its folders or its archive. Out: what each rule found, with
its clause of the method, and whether the dataset passes.
"""
