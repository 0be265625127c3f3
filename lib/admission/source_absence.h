// SPDX-License-Identifier: Apache-2.0
//
// Whether pods that a complete snapshot lacks are gone. One rule for every
// source: a directory may not be mounted yet, a list may be empty for a while.
// Which pods count as lacking is decided in pods/source_trust.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace devmgr::admission {

/// What is known of the pods that a complete snapshot lacks.
struct Absence {
  std::string source;    ///< As it describes itself.
  std::size_t held = 0;  ///< Pods that the node has from it.
  /// Of those, the ones that it lacks and that were not in it while it was
  /// watched without a break until now, and for which no operator has spoken.
  std::size_t unexplained = 0;
  bool doubted = false;      ///< It was not trusted before for some of those.
  std::string known_marker;  ///< By which the ledger knows it; may be empty.
  std::string marker;        ///< Which it carries; may be empty.
  std::string marker_problem;
};

/// Why the snapshot is not trusted, and what helps; nothing when it is. Asked
/// only when something would be released: a source that lacks at most half of
/// its pods is trusted, unless it was in doubt for them; and so is one that
/// carries the marker by which it is known.
std::optional<std::string> WhyNotBelieved(const Absence& absence);

}  // namespace devmgr::admission
