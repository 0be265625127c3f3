// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "environment.h"

namespace devmgr::ctl {

/// The whole program: runs a command line (without the program's name) and
/// returns its exit code.
int Run(const std::vector<std::string>& arguments,
        const Environment& environment);

}  // namespace devmgr::ctl
