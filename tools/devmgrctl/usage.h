// SPDX-License-Identifier: Apache-2.0
//
// How each verb is called: what errors of arguments say.
#pragma once

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

namespace devmgr::ctl {

/// Prints what is wrong with a command line, then what was expected, with an
/// example. `app` has parsed it as far as it could: the verb is taken from it.
void PrintUsageError(std::ostream& err, const CLI::App& app,
                     const std::string& what);

}  // namespace devmgr::ctl
