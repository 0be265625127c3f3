// SPDX-License-Identifier: Apache-2.0
//
// Selectors of devices: expressions of the Common Expression Language (CEL), as
// they stand in DeviceClasses and ResourceClaims.
//
// They have the values, errors and costs that Kubernetes 1.37 gives them when
// it evaluates stored objects. Everything here is pure and reentrant.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_objects.h>
#include <devmgr/export.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace devmgr {

namespace cel {
class Selector;
class Value;
}  // namespace cel

struct DecodedManifest;

/// DecodeManifest() (devmgr/manifests.h), where each CEL expression is compiled
/// as well. One that does not compile is an error at its place, with the line
/// and column within the expression and an excerpt; in a claim that is
/// allocated, which asks for nothing more, it is a warning. An API server may
/// be newer: what it has accepted, DecodeManifest() reads all the same.
DEVMGR_EXPORT DecodedManifest
DecodeCheckedManifest(std::string_view text, std::string_view file_name,
                      std::string_view node_name = {});

/// What Kubernetes permits an evaluation to cost.
inline constexpr std::uint64_t kCelCostLimit = 1'000'000;

/// The variables of an expression.
enum class CelVariables {
  kDevice,  ///< `device`, since Kubernetes 1.31.
  /// `attributes.quantity`, `attributes.string` and so on: structured
  /// parameters of Kubernetes 1.30, resource.k8s.io/v1alpha2.
  kV1alpha2,
};

/// Why an expression does not compile.
struct CelProblem {
  /// Line and column where the problem was found, counted from 1 in characters.
  /// Both are 0 when the problem is the type of the whole expression.
  std::size_t line = 0;
  std::size_t column = 0;
  std::string message;  ///< One line.
  /// The line, and below it a caret under the column. Empty without a line.
  std::string excerpt;

  /// `line:column: message`, followed by the excerpt on lines of its own.
  DEVMGR_EXPORT std::string ToString() const;
};

/// A device in the form in which expressions read it. It is made once for any
/// number of selectors. Copies share it, on any thread.
class DEVMGR_EXPORT CelDevice {
 public:
  /// A device of a ResourceSlice of `driver`. Selectors see its attributes, its
  /// capacities and `allow_multiple_allocations`; only those with the same
  /// `variables` can be evaluated on it.
  CelDevice(std::string_view driver, const SliceDevice& device,
            CelVariables variables = CelVariables::kDevice);

 private:
  friend class CelSelector;
  // One of the two.
  std::shared_ptr<const cel::Value> value_;
  std::shared_ptr<const std::map<std::string, cel::Value, std::less<>>> old_;
};

struct CelLimits {
  std::uint64_t cost = kCelCostLimit;
  /// May be null. Once the flag is true the evaluation ends; it is read every
  /// hundred rounds of loops. The flag must outlive the call.
  const std::atomic<bool>* interrupted = nullptr;
};

/// The outcome of one evaluation.
struct CelVerdict {
  /// Whether the device matches, or why that is unknown:
  ///   InvalidArgument    the expression failed on this device, as on an
  ///                      attribute that the device does not have; or its
  ///                      value is no bool; or the device was made for other
  ///                      variables
  ///   ResourceExhausted  the evaluation exceeded the limit of its cost, or
  ///                      worked on values that are too large
  ///   Cancelled          it was interrupted
  absl::StatusOr<bool> matches;
  /// What the evaluation cost, also if it failed.
  std::uint64_t cost = 0;
};

/// A compiled selector. It is immutable. Copies share it, on any thread.
class DEVMGR_EXPORT CelSelector {
 public:
  /// Compiles an expression. Takes microseconds for a usual selector, and well
  /// below a second for any text. `problem`, if it is not null, is set when the
  /// expression is wrong.
  ///   InvalidArgument  the expression is wrong: CelProblem::ToString()
  static absl::StatusOr<CelSelector> Compile(
      std::string_view expression, CelProblem* problem = nullptr,
      CelVariables variables = CelVariables::kDevice);

  /// Evaluates the selector on a device.
  CelVerdict Evaluate(const CelDevice& device,
                      const CelLimits& limits = {}) const;

  /// The expression.
  const std::string& text() const;
  /// The highest cost of an evaluation, over all devices that the API permits.
  /// UINT64_MAX when there is no bound. The API server refuses a new object
  /// with a selector above kCelCostLimit; evaluations go by the actual cost.
  std::uint64_t worst_cost() const;

 private:
  explicit CelSelector(std::shared_ptr<const cel::Selector> selector);
  std::shared_ptr<const cel::Selector> selector_;
};

}  // namespace devmgr
