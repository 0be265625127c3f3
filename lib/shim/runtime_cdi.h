// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cri_shim.h>

#include <optional>
#include <string>

#include "cri/messages.h"

namespace devmgr::shim {

/// How a runtime takes CDI names, and what decided that.
struct RuntimeSupport {
  RuntimeCdi cdi = RuntimeCdi::kNone;
  std::string source;   ///< `override`, `status`, `version`, `default`.
  std::string reason;   ///< A sentence for people.
  std::string warning;  ///< Empty, or why that may be wrong.
};

/// There is no flag for it in CRI. In this order: what the operator says; the
/// configuration that containerd tells in a verbose Status (`info`); what
/// versions are known for; none. Both may be empty: not known.
RuntimeSupport DecideRuntimeCdi(std::optional<RuntimeCdi> by_operator,
                                const cri::VersionResponse& version,
                                const cri::TextMap& info);

}  // namespace devmgr::shim
