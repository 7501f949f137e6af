# The Erlang libraries of the posts. Hex checksums are those of the whole tarball: `pkg_hash_ext`,
# not `pkg_hash`, in a rebar.lock.
{ pkgs, beam }:
rec {
  yaws = pkgs.yaws.override { inherit (beam) erlang; };

  misultin = import ./misultin.nix {
    inherit pkgs;
    inherit (beam) erlang;
  };

  mochiweb = beam.buildHex {
    name = "mochiweb";
    version = "3.2.2";
    sha256 = "4114e51f1b44c270b3242d91294fe174ce1ed989100e8b65a1fab58e0cba41d5";
  };

  cowlib = beam.buildHex {
    name = "cowlib";
    version = "2.15.0";
    sha256 = "4f00c879a64b4fe7c8fcb42a4281925e9ffdb928820b03c3ad325a617e857532";
  };

  ranch = beam.buildHex {
    name = "ranch";
    version = "2.2.0";
    sha256 = "fa0b99a1780c80218a4197a59ea8d3bdae32fbff7e88527d7d8a4787eff4f8e7";
  };

  cowboy = beam.buildHex {
    name = "cowboy";
    version = "2.13.0";
    sha256 = "e724d3a70995025d654c1992c7b11dbfea95205c047d86ff9bf1cda92ddc5614";
    beamDeps = [
      cowlib
      ranch
    ];
  };

  # The release that webmachine's own lock names.
  mochiweb-2 = beam.buildHex {
    name = "mochiweb";
    version = "2.18.0";
    sha256 = "b93e2b1e564bdbadfecc297277f9e6d0902da645b417d6c9210f6038ac63489a";
  };

  webmachine = beam.buildHex {
    name = "webmachine";
    version = "1.11.1";
    # No public lock file that we found records the checksum of its tarball.
    sha256 = pkgs.lib.fakeHash;
    beamDeps = [ mochiweb-2 ];
  };
}
