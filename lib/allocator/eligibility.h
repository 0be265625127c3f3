// SPDX-License-Identifier: Apache-2.0
//
// Which devices come into question for a request, whatever else is chosen: what
// does not change during a search, asked once.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "allocator/allocated_state.h"
#include "allocator/allocator.h"
#include "allocator/holdings.h"
#include "allocator/inventory.h"
#include "allocator/requests.h"
#include "allocator/selector_table.h"

namespace devmgr::allocator {

/// For one search. The tests come in upstream's order: whether another claim
/// holds the device, before any selector is run; selectors; what it charges of
/// its capacity; features, counters, taints and attributes. What refuses here
/// would refuse with any devices chosen.
class Eligibility {
 public:
  enum class Verdict : std::uint8_t { kUnknown, kYes, kNo, kError };

  /// Borrows all of it; of the options, a selector that fails is kError with
  /// SelectorErrors::kBadInput, else kNo.
  Eligibility(const Inventory& inventory, const Holdings& holdings,
              const Requests& requests, SelectorTable& selectors,
              AttributeTable& attributes, const Options& options);

  Verdict Of(RequestNumber request, DeviceNumber device) {
    const Verdict known = Known(request, device);
    return known != Verdict::kUnknown ? known : Ask(request, device);
  }
  /// What is known already.
  Verdict Known(RequestNumber request, DeviceNumber device) const {
    return verdicts_[PlaceOf(request, device)];
  }
  /// Why, after kError.
  const absl::Status& Error(RequestNumber request, DeviceNumber device) const {
    return errors_.at({request, device});
  }

  /// Whether it is part of "all": it matches selectors, and its capacity could
  /// serve the request if the device were free.
  Verdict IsPartOfAll(RequestNumber request, DeviceNumber device);
  /// Whether a pool of which the devices are unknown might have some.
  bool MayHave(RequestNumber request, const std::string& driver);

  /// What the request is charged of the device's capacities, in their order.
  /// After kYes.
  const std::vector<Amount>& Charges(RequestNumber request,
                                     DeviceNumber device) const;

  /// Null when no claim holds it.
  const HeldDevice* Held(DeviceNumber device) const {
    return holdings_.devices[device];
  }
  /// What claims have of the device's capacity `i`.
  Amount HeldCapacity(DeviceNumber device, std::size_t i) const;

  /// Another claim has it, so that this request cannot.
  bool IsBusy(const Request& request, DeviceNumber device) const;
  /// What the caller has to say of it (Options::admits).
  bool IsAdmitted(const Request& request, DeviceNumber device) const;

  /// Errors that were taken as no match, each once.
  std::vector<std::string> warnings;

 private:
  std::size_t PlaceOf(RequestNumber request, DeviceNumber device) const {
    return request * inventory_.devices().size() + device;
  }
  Verdict Ask(RequestNumber request, DeviceNumber device);
  Verdict AskAll(RequestNumber request, DeviceNumber device,
                 absl::Status& error);
  Verdict Matches(const Request& request, DeviceNumber device,
                  absl::Status& error);
  Verdict Matches(const Request& request, bool of_class, DeviceNumber device,
                  absl::Status& error);
  Verdict FitsCapacity(RequestNumber request, DeviceNumber device,
                       absl::Status& error);
  absl::Status DerivedError(const Request& request,
                            const Constraint& constraint, std::size_t attribute,
                            DeviceNumber device) const;
  Verdict HasAttributes(const Request& request, DeviceNumber device,
                        absl::Status& error);
  bool HasRoom(RequestNumber request, DeviceNumber device) const;

  const Inventory& inventory_;
  const Holdings& holdings_;
  const Requests& requests_;
  SelectorTable& selectors_;
  AttributeTable& attributes_;
  const Options& options_;
  std::vector<Verdict> verdicts_;  ///< By request and device: PlaceOf().
  /// Of devices with capacities.
  std::map<std::pair<RequestNumber, DeviceNumber>, std::vector<Amount>>
      charges_;
  std::map<std::pair<RequestNumber, DeviceNumber>, absl::Status> errors_;
};

}  // namespace devmgr::allocator
