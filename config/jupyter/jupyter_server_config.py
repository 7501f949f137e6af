"""JupyterLab for the study, started in the project's root by `./shell jupyter lab`."""

import os

# A kernel starts in notebooks/, and notebooks import the study's package.
os.environ["PYTHONPATH"] = os.getcwd()

c = get_config()  # noqa: F821
# It is safe where it listens on loopback only and asks for a token, its defaults.
c.ServerApp.allow_root = True
c.ServerApp.preferred_dir = os.path.join(os.getcwd(), "notebooks")
