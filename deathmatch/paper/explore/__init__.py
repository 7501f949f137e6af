"""The explorer's rows: from a dataset's tables and the servers' files to what JSON can hold.

`variants` has what was measured of each variant, `servers` each server's own file, `history` the
releases over the years, `ledger` the claims, `about` machine, toolchain and citation;
`deathmatch.paper.explorer` puts them into one HTML file.
"""
