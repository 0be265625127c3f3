# SPDX-License-Identifier: Apache-2.0
#
# The environment of everything that builds; sourced at the top of the tree.

# Clones compile the same; only the directory in the debug information differs.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR=1
# Without these ccache compiles all that uses a precompiled header. No file here
# has __DATE__ or __TIME__ in it.
export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros}"
