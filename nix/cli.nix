# The command `deathmatch` of the shells: it runs the clone that the user stands in.
pkgs:
pkgs.writeShellApplication {
  name = "deathmatch";
  runtimeInputs = [ pkgs.git ];
  text = ''
    root=$(git rev-parse --show-toplevel 2>/dev/null || pwd)
    if [ ! -x "$root/bin/deathmatch" ]; then
      echo "deathmatch: $root is no clone of the project: enter yours and run again" >&2
      exit 1
    fi
    exec "$root/bin/deathmatch" "$@"
  '';
}
