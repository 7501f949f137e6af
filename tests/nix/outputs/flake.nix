{
  description = "What the checks read of all outputs of the study's flake, in one evaluation";

  # Each test names the tree that it checks.
  inputs.study.url = "path:/nowhere";

  outputs =
    { study, ... }:
    let
      # A set with an outPath would be printed as that alone.
      show = builtins.mapAttrs (
        _:
        builtins.mapAttrs (
          _: of: {
            inherit (of) name drvPath;
            out = of.outPath;
            tools = of.tools or [ ];
            modules = of.modules or [ ];
            variables = of.variables or { };
            context = of.context or { };
          }
        )
      );
      derivations = builtins.mapAttrs (_: library: library.drvPath);
      # Those without a confirmed hash are refused.
      libraries =
        of:
        derivations of.unconfirmed
        // derivations (removeAttrs of.erlangLibs (builtins.attrNames of.unconfirmed));
    in
    {
      all = {
        packages = show study.packages;
        checks = show study.checks;
        devShells = show study.devShells;
        formatter = builtins.mapAttrs (_: of: of.drvPath) study.formatter;
        # Also those that no server uses yet.
        erlangLibs = builtins.mapAttrs (_: libraries) study.legacyPackages;
      };
    };
}
