// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/metrics.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/inventory.h"
#include "cel/device.h"
#include "cel/selector.h"
#include "cel/selector_cache.h"

namespace devmgr::allocator {

using SelectorNumber = std::uint32_t;

/// What selectors say of devices: each asked once, when it is first needed, so
/// that a selector which would fail on a device does no harm while the search
/// does not come to that device.
class SelectorTable {
 public:
  enum class Verdict : std::uint8_t { kUnknown, kMatch, kNoMatch, kError };

  /// Both pointers are borrowed and may be null.
  SelectorTable(const Inventory& inventory, cel::SelectorCache* cache,
                const std::atomic<bool>* interrupted);

  using Kind = cel::Selector::Kind;
  /// The same text of the same kind has the same number.
  SelectorNumber Add(const std::string& text, Kind kind = Kind::kDevice);
  /// Of cel::Selector, by the cache if there is one.
  absl::StatusOr<std::shared_ptr<const cel::Selector>> Compile(
      const std::string& text, Kind kind) const;
  const cel::EvaluationOptions& options() const { return options_; }
  /// One that all devices of `driver` match, and no others.
  SelectorNumber AddDriver(const std::string& driver);

  Verdict Of(SelectorNumber selector, DeviceNumber device);
  /// Whether a device of `driver` might match, of which all else is unknown.
  bool MayMatch(SelectorNumber selector, const std::string& driver);
  /// After kError.
  ///   InvalidArgument, ResourceExhausted  as of cel::Selector
  ///   Cancelled                           the caller wants no more
  const absl::Status& Error(SelectorNumber selector, DeviceNumber device) const;
  const std::string& Text(SelectorNumber selector) const {
    return entries_[selector].text;
  }
  /// Of an evaluation at worst; 0 for a text that does not compile.
  std::uint64_t MaxCost(SelectorNumber selector) const {
    const Entry& entry = entries_[selector];
    return entry.selector == nullptr ? 0 : entry.selector->max_cost();
  }
  /// Evaluations since it was called last.
  SearchFigures TakeFigures() { return std::exchange(figures_, {}); }
  bool IsCompiled(SelectorNumber selector) const {
    return entries_[selector].selector != nullptr;
  }

 private:
  struct Entry {
    std::string text;
    Kind kind = Kind::kDevice;
    std::string driver;  ///< Of AddDriver(); else empty.
    std::shared_ptr<const cel::Selector> selector;
    absl::Status compiled;
    std::vector<Verdict> verdicts;  ///< By device.
  };

  Verdict Ask(const Entry& entry, DeviceNumber device, absl::Status& error);
  const cel::OldDevice& OldValue(DeviceNumber device);

  const Inventory& inventory_;
  cel::SelectorCache* cache_;
  cel::EvaluationOptions options_;
  std::deque<Entry> entries_;
  /// The texts are those of the entries, which stay in their places.
  std::map<std::pair<Kind, std::string_view>, SelectorNumber> by_text_;
  std::map<std::string, SelectorNumber> by_driver_;
  std::map<DeviceNumber, cel::OldDevice> old_values_;
  std::map<std::pair<SelectorNumber, DeviceNumber>, absl::Status> errors_;
  SearchFigures figures_;
};

}  // namespace devmgr::allocator
