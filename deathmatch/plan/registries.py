"""Registries that a server can take packages from, each with what it calls its locked list."""

# By the key of [packages]; None where any name will do.
OWN_NAMES = {
    "pypi": None,
    "npm": "package-lock.json",
    "cargo": "Cargo.lock",
    "go": "go.mod",
    "maven": "jars.sha256",
}
LISTS = tuple(OWN_NAMES)
