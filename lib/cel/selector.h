// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cel/device.h"
#include "cel/evaluator.h"
#include "cel/plan.h"
#include "cel/value.h"

namespace devmgr::cel {

/// What a selector says of a device.
struct Verdict {
  bool matches = false;
  std::uint64_t cost = 0;
};

/// A CEL expression of a DeviceClass or a claim, compiled. Immutable: any
/// number of threads may share one.
class Selector {
 public:
  /// Which variables there are: `device`, or those of Kubernetes 1.30.
  enum class Kind { kDevice, kOldDevice };

  /// Blocks for well below a second, whatever the text is; for microseconds
  /// when it is one that is in use.
  ///   InvalidArgument  the expression is wrong; the message has line and
  ///                    column, the line, and a caret below the place. Or its
  ///                    type is not bool; that it is unknown before it is run
  ///                    is permitted for kDevice
  static absl::StatusOr<std::shared_ptr<const Selector>> Compile(
      std::string_view text, Kind kind = Kind::kDevice);

  /// Whether `device`, made by MakeDevice(), matches. For Kind::kDevice.
  ///   InvalidArgument    the expression failed on this device, as on a missing
  ///                      attribute; or its value is no bool
  ///   ResourceExhausted  it cost more than it may
  ///   Cancelled          `options.interrupted` became true
  absl::StatusOr<Verdict> Evaluate(const Value& device,
                                   const EvaluationOptions& options = {}) const;
  /// The same for Kind::kOldDevice, with what MakeOldDevice() makes.
  absl::StatusOr<Verdict> EvaluateOld(
      const OldDevice& device, const EvaluationOptions& options = {}) const;

  const std::string& text() const { return text_; }
  Kind kind() const { return kind_; }
  /// What an evaluation costs at worst, for a device of the largest size that
  /// the API permits. UINT64_MAX when there is no bound, as for all of
  /// Kind::kOldDevice that depends on an attribute's size.
  std::uint64_t max_cost() const { return max_cost_; }

 private:
  Selector(std::string text, Kind kind, Plan plan, std::uint64_t max_cost);
  absl::StatusOr<Verdict> Run(std::span<const Value> globals,
                              const EvaluationOptions& options) const;

  std::string text_;
  Kind kind_;
  Plan plan_;
  std::uint64_t max_cost_ = 0;
};

}  // namespace devmgr::cel
