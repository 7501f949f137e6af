{
  description = "Deathmatch: five web-server benchmarks, replicated";

  inputs = {
    # flake.lock pins it to July 2026.
    nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
    # 22.05, for OTP 23: the last release before the JIT.
    nixpkgs-2022 = {
      url = "github:NixOS/nixpkgs/380be19fbd2d9079f677978361792cb25e8a3635";
      flake = false;
    };
    # March 2014: the oldest pin whose tools are those of the posts.
    nixpkgs-2014 = {
      url = "github:NixOS/nixpkgs/fa49cba2373ee360e8b7cde24dc04dd000c19af4";
      flake = false;
    };
  };

  outputs =
    {
      nixpkgs,
      nixpkgs-2022,
      nixpkgs-2014,
      ...
    }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      study = nixpkgs.lib.genAttrs systems (
        system:
        import ./nix {
          inherit system nixpkgs-2022 nixpkgs-2014;
          pkgs = nixpkgs.legacyPackages.${system};
        }
      );
      each = output: builtins.mapAttrs (_: of: of.${output}) study;
    in
    {
      packages = each "packages";
      legacyPackages = each "legacyPackages";
      devShells = each "devShells" // {
        # Nothing is measured there: its kernel is another.
        aarch64-darwin.default = import ./nix/darwin.nix nixpkgs.legacyPackages.aarch64-darwin;
      };
      checks = each "checks";
      formatter = each "formatter";
    };
}
