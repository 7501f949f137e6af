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
# The releases of Python that its packages are locked for: Debian 12's, and toolchains/python2's.
PYTHON_3, PYTHON_2 = "3.11", "2.7"
# The program that installs what a list names.
INSTALLED_BY = {"pypi": "pip", "npm": "npm", "cargo": "cargo", "go": "go", "maven": "mvn"}
