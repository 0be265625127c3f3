// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/cel.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cel/device.h"
#include "cel/evaluator.h"
#include "cel/plan.h"
#include "cel/value.h"

namespace devmgr::cel {

/// The result of a selector for one device.
struct Verdict {
  bool matches = false;
  std::uint64_t cost = 0;
};

/// A compiled CEL expression of a DeviceClass or a claim. It is immutable, so
/// that threads may share it.
class Selector {
 public:
  /// The variables of the expression: `device`, or those of Kubernetes 1.30.
  /// An attribute that is derived (KEP-6080) is no selector: it has the
  /// variable `device`, and its type is one of attributes.
  enum class Kind { kDevice, kOldDevice, kDerivedAttribute };

  /// Compiles an expression. Takes microseconds for a usual selector, and well
  /// below a second for any text.
  ///   InvalidArgument  the expression is wrong: the message has line and
  ///                    column, the line, and a caret below the place. Or its
  ///                    type is not bool. For kDevice the type may be unknown
  ///                    until the expression is evaluated
  /// The error is also put into `problem` if that is not null.
  static absl::StatusOr<std::shared_ptr<const Selector>> Compile(
      std::string_view text, Kind kind = Kind::kDevice,
      CelProblem* problem = nullptr);

  /// Whether `device`, made by MakeDevice(), matches. For Kind::kDevice.
  /// `cost`, if it is not null, is set even if the evaluation fails.
  ///   InvalidArgument    the expression failed on this device, as on a missing
  ///                      attribute; or its value is no bool
  ///   ResourceExhausted  the cost, or the work beside it, exceeded its limit
  ///   Cancelled          `options.interrupted` became true
  absl::StatusOr<Verdict> Evaluate(const Value& device,
                                   const EvaluationOptions& options = {},
                                   std::uint64_t* cost = nullptr) const;
  /// The same for Kind::kOldDevice. `device` is made by MakeOldDevice().
  absl::StatusOr<Verdict> EvaluateOld(const OldDevice& device,
                                      const EvaluationOptions& options = {},
                                      std::uint64_t* cost = nullptr) const;

  /// The value for `device` of Kind::kDerivedAttribute; nothing for a list
  /// without entries. Errors are those of Evaluate(), and InvalidArgument for a
  /// value that no attribute can have.
  absl::StatusOr<std::optional<DeviceAttribute>> EvaluateAttribute(
      const Value& device, const EvaluationOptions& options = {}) const;

  const std::string& text() const { return text_; }
  Kind kind() const { return kind_; }
  /// The worst-case cost of an evaluation, over all devices that the API
  /// permits. UINT64_MAX when there is no bound; that is so for every selector
  /// of Kind::kOldDevice whose cost depends on the size of an attribute.
  std::uint64_t max_cost() const { return max_cost_; }

 private:
  Selector(std::string text, Kind kind, Plan plan, std::uint64_t max_cost);
  absl::StatusOr<Value> ValueOf(std::span<const Value> globals,
                                const EvaluationOptions& options,
                                std::uint64_t* cost) const;
  absl::StatusOr<Verdict> Run(std::span<const Value> globals,
                              const EvaluationOptions& options,
                              std::uint64_t* cost) const;

  std::string text_;
  Kind kind_;
  Plan plan_;
  std::uint64_t max_cost_ = 0;
};

}  // namespace devmgr::cel
