// SPDX-License-Identifier: Apache-2.0
#include "admission/source_absence.h"

#include <fmt/core.h>

namespace devmgr::admission {
namespace {

std::string MarkerText(const Absence& absence) {
  if (!absence.marker.empty()) {
    return fmt::format("it carries the marker '{}' instead of '{}'",
                       absence.marker, absence.known_marker);
  }
  if (!absence.marker_problem.empty()) return absence.marker_problem;
  return "it carries no marker";
}

}  // namespace

std::optional<std::string> WhyNotBelieved(const Absence& absence) {
  if (absence.unexplained == 0) return std::nullopt;
  if (2 * absence.unexplained <= absence.held && !absence.doubted) {
    return std::nullopt;
  }
  if (!absence.marker.empty() && absence.marker == absence.known_marker) {
    return std::nullopt;
  }
  return fmt::format(
      "lacks {} of the {} pod{} that this node has from it, and nothing proves "
      "that it is the one in which they were: {}; perhaps its file system is "
      "not mounted yet, or its server was restored from a backup. Nothing is "
      "released until they are back. If they are "
      "really gone: devmgrctl confirm source --reason TEXT --yes",
      absence.unexplained, absence.held, absence.held == 1 ? "" : "s",
      MarkerText(absence));
}

}  // namespace devmgr::admission
