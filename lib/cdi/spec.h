// SPDX-License-Identifier: Apache-2.0
//
// CDI spec files as values: which devices they define.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

namespace devmgr::cdi {

struct Spec {
  std::string kind;                  ///< `vendor/class`.
  std::vector<std::string> devices;  ///< Their names, in the file's order.
  friend bool operator==(const Spec&, const Spec&) = default;
};

/// Reads the text of a spec file, YAML or JSON. Kind and names are checked;
/// what a device does to a container is not looked at. Bounded as all texts of
/// lib/api.
///   InvalidArgument  says what is wrong; then no device of the file counts
absl::StatusOr<Spec> ParseSpec(std::string_view text);

/// A spec file that was read.
struct SpecFile {
  std::string path;
  Spec spec;
  std::string problem;  ///< Not empty: why the file is no spec.
  friend bool operator==(const SpecFile&, const SpecFile&) = default;
};

/// What some directories hold.
struct SpecFiles {
  std::vector<SpecFile> files;
  /// What could not be read, with the reason: a device that is in no file of
  /// `files` may be defined there. Empty: `files` is complete.
  std::vector<std::string> unread;
};

}  // namespace devmgr::cdi
