"""Strip addresses from lock files: `./shell python toolchains/strip_addresses.py FILE...`.

A lock file identifies its packages by hashes, so that any index or mirror can serve them. This
removes the addresses that npm and pip write: `resolved` in package-lock.json, and options or
comments with a URL in a requirements file.
"""

import json
import re
import sys
from pathlib import Path

OPTION_OR_COMMENT = re.compile(r"^\s*(?:-|#).*://.*\n?", re.MULTILINE)


def without_addresses(text: str, is_json: bool) -> str:
    """Return the text of a lock file, npm's if `is_json`, without addresses of packages."""
    if not is_json:
        return OPTION_OR_COMMENT.sub("", text)
    lock = json.loads(text)
    for package in lock["packages"].values():
        if "://" in package.get("resolved", ""):
            del package["resolved"]
    return json.dumps(lock, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Rewrite the files on the command line."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(without_addresses(path.read_text(), path.suffix == ".json"))


if __name__ == "__main__":
    main()
