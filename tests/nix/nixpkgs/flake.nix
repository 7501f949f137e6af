{
  description = "A stand-in for the pinned nixpkgs: its evaluated names, and builders that check";

  outputs = _: {
    lib = import ./lib.nix;
    legacyPackages = builtins.mapAttrs (_: system: import ./. { inherit system; }) {
      x86_64-linux = "x86_64-linux";
      aarch64-linux = "aarch64-linux";
      aarch64-darwin = "aarch64-darwin";
    };
  };
}
