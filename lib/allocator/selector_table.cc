// SPDX-License-Identifier: Apache-2.0
#include "allocator/selector_table.h"

#include "common/status.h"

namespace devmgr::allocator {

SelectorTable::SelectorTable(const Inventory& inventory,
                             cel::SelectorCache* cache,
                             const std::atomic<bool>* interrupted)
    : inventory_(inventory), cache_(cache) {
  options_.interrupted = interrupted;
}

SelectorNumber SelectorTable::Add(const std::string& text) {
  const auto number = static_cast<SelectorNumber>(entries_.size());
  const auto [place, is_new] = by_text_.emplace(text, number);
  if (!is_new) return place->second;
  Entry& entry = entries_.emplace_back();
  entry.text = text;
  entry.verdicts.resize(inventory_.devices().size(), Verdict::kUnknown);
  auto selector =
      cache_ != nullptr ? cache_->Compile(text) : cel::Selector::Compile(text);
  if (selector.ok()) {
    entry.selector = *std::move(selector);
  } else {
    entry.compiled = selector.status();
  }
  return number;
}

SelectorTable::Verdict SelectorTable::Of(SelectorNumber selector,
                                         DeviceNumber device) {
  Verdict& verdict = entries_[selector].verdicts[device];
  if (verdict == Verdict::kUnknown) {
    absl::Status error;
    verdict = Ask(entries_[selector], device, error);
    if (verdict == Verdict::kError) errors_[{selector, device}] = error;
  }
  return verdict;
}

SelectorTable::Verdict SelectorTable::Ask(const Entry& entry,
                                          DeviceNumber device,
                                          absl::Status& error) {
  if (entry.selector == nullptr) {
    error = entry.compiled;
    return Verdict::kError;
  }
  const Device& candidate = inventory_.devices()[device];
  if (candidate.has_bad_attribute) {
    error = InvalidArgumentError("unsupported attribute value");
    return Verdict::kError;
  }
  const auto verdict = entry.selector->Evaluate(candidate.value, options_);
  if (!verdict.ok()) {
    error = verdict.status();
    return Verdict::kError;
  }
  return verdict->matches ? Verdict::kMatch : Verdict::kNoMatch;
}

bool SelectorTable::MayMatch(SelectorNumber selector,
                             const std::string& driver) {
  const Entry& entry = entries_[selector];
  if (entry.selector == nullptr) return true;
  const auto verdict =
      entry.selector->Evaluate(cel::MakeUnknownDevice(driver), options_);
  return !verdict.ok() || verdict->matches;
}

const absl::Status& SelectorTable::Error(SelectorNumber selector,
                                         DeviceNumber device) const {
  return errors_.at({selector, device});
}

}  // namespace devmgr::allocator
