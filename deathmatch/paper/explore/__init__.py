"""The explorer's rows: from a dataset's tables and the servers' files to what JSON can hold.

`variants` has the measurements of each variant, `servers` each server's own file, `ledger` the
claims, `about` machine, toolchain and citation; `deathmatch.paper.explorer` puts them into one HTML
file.
"""
