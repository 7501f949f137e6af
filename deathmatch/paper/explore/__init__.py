"""The explorer's rows: from a dataset's tables and the servers' files to what JSON can hold.

`variants` has what was measured of each variant, `systems` each server's own file, `ledger` the
claims, `about` machine, toolchain and citation; `page` puts them into one HTML file.
"""
