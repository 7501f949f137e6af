
import re, subprocess, sys, tempfile
from pathlib import Path

out = Path(tempfile.mkdtemp())
out.mkdir(exist_ok=True)
root = Path(sys.argv[1])
for n in sorted((root / "notebooks").glob("*.md")):
    s = n.read_text()
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", s, re.S)
    evals = re.findall(r"\{eval\}`([^`]+)`", s)
    code = (
        "\n".join(re.sub(r"(?m)^:tags:.*$", "", c) for c in cells)
        + "\n"
        + "\n".join(f"print({e})" for e in evals)
        + "\n"
    )
    (out / (n.stem.replace("-", "_") + ".py")).write_text(code)
r = subprocess.run(
    [
        "build/venv/bin/ruff",
        "check",
        "--select",
        "F401,F821,F841,F811",
        "--no-cache",
        "--isolated",
        "--output-format",
        "concise",
        str(out),
    ],
    capture_output=True,
    text=True,
)
print(r.stdout[-4000:])
