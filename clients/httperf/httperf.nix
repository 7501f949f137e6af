# The study's httperf: Debian's upstream tarball with our patch, as `build` beside it has it.
pkgs:
pkgs.stdenv.mkDerivation {
  pname = "httperf";
  version = "0.9.0";

  src = pkgs.fetchurl {
    url = "mirror://debian/pool/main/h/httperf/httperf_0.9.0.orig.tar.gz";
    sha256 = "e1a0bf56bcb746c04674c47b6cfa531fad24e45e9c6de02aea0d1c5f85a2bf1c";
  };

  patches = [ ./deathmatch.patch ];
  # The tarball's timestamps would make make(1) rerun autotools.
  postPatch = "find . -exec touch {} +";

  # gcc 14 and later refuse this source as anything newer than C89.
  env.CFLAGS = "-std=gnu89 -O2 -U_FORTIFY_SOURCE";
  # Its check of FD_SET knows only 1,024 descriptors.
  hardeningDisable = [ "fortify" ];
  # Without TLS, which httperf 0.9.0 speaks only to OpenSSL of its time.
  configureFlags = [ "ac_cv_lib_ssl_SSL_version=no" ];
  makeFlags = [ "CPPFLAGS=-D_GNU_SOURCE" ];

  installPhase = ''
    runHook preInstall
    install -D src/httperf "$out/bin/httperf"
    runHook postInstall
  '';

  meta = {
    description = "HTTP load generator, patched for 65,536 descriptors";
    mainProgram = "httperf";
  };
}
