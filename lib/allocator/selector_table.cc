// SPDX-License-Identifier: Apache-2.0
#include "allocator/selector_table.h"

#include <utility>

#include "common/status.h"

namespace devmgr::allocator {
namespace {

void Count(SelectorTable::Verdict verdict, SearchFigures::Verdicts& verdicts) {
  switch (verdict) {
    case SelectorTable::Verdict::kMatch:
      ++verdicts.matches;
      break;
    case SelectorTable::Verdict::kNoMatch:
      ++verdicts.mismatches;
      break;
    default:
      ++verdicts.errors;
  }
}

}  // namespace

SelectorTable::SelectorTable(const Inventory& inventory,
                             cel::SelectorCache* cache,
                             const std::atomic<bool>* interrupted)
    : inventory_(inventory), cache_(cache) {
  options_.interrupted = interrupted;
}

SelectorNumber SelectorTable::Add(const std::string& text, Kind kind) {
  const auto known = by_text_.find({kind, text});
  if (known != by_text_.end()) return known->second;
  const auto number = static_cast<SelectorNumber>(entries_.size());
  Entry& entry = entries_.emplace_back();
  entry.text = text;
  by_text_.emplace(std::pair(kind, std::string_view(entry.text)), number);
  entry.kind = kind;
  entry.verdicts.resize(inventory_.devices().size(), Verdict::kUnknown);
  auto selector = Compile(text, kind);
  if (selector.ok()) {
    entry.selector = *std::move(selector);
  } else {
    entry.compiled = selector.status();
  }
  return number;
}

absl::StatusOr<std::shared_ptr<const cel::Selector>> SelectorTable::Compile(
    const std::string& text, Kind kind) const {
  return cache_ != nullptr ? cache_->Compile(text, kind)
                           : cel::Selector::Compile(text, kind);
}

SelectorNumber SelectorTable::AddDriver(const std::string& driver) {
  const auto number = static_cast<SelectorNumber>(entries_.size());
  const auto [place, is_new] = by_driver_.emplace(driver, number);
  if (!is_new) return place->second;
  Entry& entry = entries_.emplace_back();
  entry.text = "device.driver == '" + driver + "'";
  entry.driver = driver;
  entry.verdicts.resize(inventory_.devices().size(), Verdict::kUnknown);
  return number;
}

SelectorTable::Verdict SelectorTable::Of(SelectorNumber selector,
                                         DeviceNumber device) {
  const Entry& entry = entries_[selector];
  Verdict& verdict = entries_[selector].verdicts[device];
  const bool is_known = verdict != Verdict::kUnknown;
  if (!is_known) {
    absl::Status error;
    verdict = Ask(entry, device, error);
    if (verdict == Verdict::kError) {
      errors_[{selector, device}] = error;
      if (absl::IsCancelled(error)) {
        // It is asked again the next time.
        return std::exchange(verdict, Verdict::kUnknown);
      }
    }
  }
  if (entry.selector != nullptr) {
    Count(verdict, is_known ? figures_.known : figures_.evaluated);
  }
  return verdict;
}

SelectorTable::Verdict SelectorTable::Ask(const Entry& entry,
                                          DeviceNumber device,
                                          absl::Status& error) {
  const Device& candidate = inventory_.devices()[device];
  if (!entry.driver.empty()) {
    return candidate.id.driver == entry.driver ? Verdict::kMatch
                                               : Verdict::kNoMatch;
  }
  if (entry.selector == nullptr) {
    error = entry.compiled;
    return Verdict::kError;
  }
  const bool is_old = entry.kind == Kind::kOldDevice;
  // Lists of Kubernetes 1.30 may be empty.
  if (candidate.has_bad_attribute && !is_old) {
    error = InvalidArgumentError("unsupported attribute value");
    return Verdict::kError;
  }
  std::uint64_t cost = 0;
  const auto verdict =
      is_old ? entry.selector->EvaluateOld(OldValue(device), options_, &cost)
             : entry.selector->Evaluate(
                   candidate.value.Of(*candidate.device, candidate.id.driver),
                   options_, &cost);
  figures_.cost += cost;
  if (!verdict.ok()) {
    error = verdict.status();
    return Verdict::kError;
  }
  return verdict->matches ? Verdict::kMatch : Verdict::kNoMatch;
}

const cel::OldDevice& SelectorTable::OldValue(DeviceNumber device) {
  const auto found = old_values_.find(device);
  if (found != old_values_.end()) return found->second;
  const Device& candidate = inventory_.devices()[device];
  return old_values_
      .emplace(device,
               cel::MakeOldDevice(candidate.id.driver, *candidate.device))
      .first->second;
}

bool SelectorTable::MayMatch(SelectorNumber selector,
                             const std::string& driver) {
  const Entry& entry = entries_[selector];
  if (entry.selector == nullptr || entry.kind != Kind::kDevice) return true;
  const auto verdict =
      entry.selector->Evaluate(cel::MakeUnknownDevice(driver), options_);
  return !verdict.ok() || verdict->matches;
}

const absl::Status& SelectorTable::Error(SelectorNumber selector,
                                         DeviceNumber device) const {
  return errors_.at({selector, device});
}

}  // namespace devmgr::allocator
