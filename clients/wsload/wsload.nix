# The WebSocket load client; its lock file holds the hash of each crate.
pkgs:
let
  inherit (builtins.fromTOML (builtins.readFile ./Cargo.toml)) package;
in
pkgs.rustPlatform.buildRustPackage {
  pname = package.name;
  inherit (package) version;
  src = ./.;
  cargoLock.lockFile = ./Cargo.lock;
  # The tests measure times, which a build machine does not keep.
  doCheck = false;
  meta = {
    inherit (package) description;
    mainProgram = "wsload";
  };
}
