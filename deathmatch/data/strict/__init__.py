"""The rules of `./shell deathmatch check --strict`: does a dataset say what was measured?"""
