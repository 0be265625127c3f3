// SPDX-License-Identifier: Apache-2.0
//
// CDI edits for people and for programs.
#pragma once

#include <devmgr/cdi.h>

#include <string>
#include <vector>

#include "output.h"

namespace devmgr::ctl {

/// What an edit is, and its value.
struct EditRow {
  std::string what;
  std::string value;
};

/// Values of environment variables may be secrets; `show_env` shows them.
std::vector<EditRow> RowsOf(const CdiContainerEdits& edits, bool show_env);

/// As in a spec file.
Json ItemOf(const CdiContainerEdits& edits);

}  // namespace devmgr::ctl
