// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "devmgrd/config.h"

namespace devmgrd {

/// What devmgrd is to do.
struct CommandLine {
  Config config;  ///< Complete and checked.
  bool print_config = false;
  std::string boot_id;         ///< Empty: the kernel's.
  std::string import_kubelet;  ///< Root directory of a kubelet; empty: none.
};

/// Reads the flags, and the configuration file that they name. The exit code
/// where the program ends at once: `--help`, or an error, which has been
/// printed.
std::optional<int> ReadCommandLine(int argc, char** argv, CommandLine* line);

}  // namespace devmgrd
