# The Erlang libraries of the posts: { erlangLibs, unconfirmed }, each a set by name. Hex checksums
# are those of the whole tarball: `pkg_hash_ext`, not `pkg_hash`, in a rebar.lock.
{ pkgs, beam }:
let
  hex =
    {
      name,
      version,
      sha256,
      beamDeps ? [ ],
    }:
    beam.buildRebar3 {
      inherit name version beamDeps;
      src = beam.fetchHex {
        pkg = name;
        inherit version sha256;
      };
    };

  confirmed = rec {
    yaws = pkgs.yaws.override { beamPackages = beam; };

    mochiweb = hex {
      name = "mochiweb";
      version = "3.2.2";
      sha256 = "4114e51f1b44c270b3242d91294fe174ce1ed989100e8b65a1fab58e0cba41d5";
    };

    cowlib = hex {
      name = "cowlib";
      version = "2.15.0";
      sha256 = "4f00c879a64b4fe7c8fcb42a4281925e9ffdb928820b03c3ad325a617e857532";
    };

    ranch = hex {
      name = "ranch";
      version = "2.2.0";
      sha256 = "fa0b99a1780c80218a4197a59ea8d3bdae32fbff7e88527d7d8a4787eff4f8e7";
    };

    cowboy = hex {
      name = "cowboy";
      version = "2.13.0";
      sha256 = "e724d3a70995025d654c1992c7b11dbfea95205c047d86ff9bf1cda92ddc5614";
      beamDeps = [
        cowlib
        ranch
      ];
    };

    # The release that Webmachine's own lock names.
    mochiweb-2 = hex {
      name = "mochiweb";
      version = "2.18.0";
      sha256 = "b93e2b1e564bdbadfecc297277f9e6d0902da645b417d6c9210f6038ac63489a";
    };
  };

  # Their hashes are placeholders: a build of one fails and prints its hash.
  unconfirmed = {
    misultin = import ./misultin.nix {
      inherit pkgs;
      inherit (beam) erlang;
    };

    webmachine = hex {
      name = "webmachine";
      version = "1.11.1";
      # No public lock file that we found records the checksum of its tarball.
      sha256 = pkgs.lib.fakeHash;
      beamDeps = [ confirmed.mochiweb-2 ];
    };
  };
  refusal =
    name: _:
    throw "erlangLibs.${name}: nobody has confirmed the hash of its source. `nix build .#unconfirmed.${name}` fails and prints the hash; nix/README.md, 'Libraries without a confirmed hash', says where it goes";
in
{
  erlangLibs = confirmed // builtins.mapAttrs refusal unconfirmed;
  inherit unconfirmed;
}
