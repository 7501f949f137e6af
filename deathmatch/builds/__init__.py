"""Builds of servers, the programs that come with them, and the toolchain that made them."""
