// SPDX-License-Identifier: Apache-2.0
//
// CEL expressions in manifests. This room cannot read them; a checker that can
// is handed in from above.
#pragma once

#include <devmgr/manifests.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace devmgr::api {

enum class ExpressionKind : std::uint8_t {
  kSelector,
  kOldSelector,  ///< Of Kubernetes 1.30.
  kDerivedAttribute,
};

/// Why an expression does not compile.
struct ExpressionProblem {
  std::string message;  ///< One line; it begins with line and column.
  std::string excerpt;  ///< As of ManifestProblem.
};

class ExpressionChecker {
 public:
  virtual ~ExpressionChecker() = default;
  /// Nothing when the expression compiles.
  virtual std::optional<ExpressionProblem> Check(std::string_view text,
                                                 ExpressionKind kind) = 0;
};

/// DecodeManifest() with the expressions checked. A problem is an error where
/// the expression stands; a warning in a claim that is allocated.
DecodedManifest DecodeChecked(std::string_view text, std::string_view file_name,
                              std::string_view node_name,
                              ExpressionChecker* checker);

}  // namespace devmgr::api
