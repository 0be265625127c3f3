// SPDX-License-Identifier: Apache-2.0
//
// Parts of which slices, classes, claims and taint rules consist. What breaks a
// rule is reported to the field, and left out where it could not be read.
#pragma once

#include <devmgr/objects.h>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/field.h"

namespace devmgr::api {

/// Texts of the devices of one slice: equal ones share their bytes.
class TextPool {
 public:
  SharedText Get(std::string_view text) {
    const auto found = texts_.find(text);
    return found != texts_.end() ? *found : *texts_.emplace(text).first;
  }

 private:
  std::set<SharedText, std::less<>> texts_;
};

/// The entries of a list that has been read: what is wrong with the list was
/// reported then.
std::vector<Field> ItemsAgain(const Field& list);
/// Whether something stands there other than an empty text.
bool IsGiven(const Field& field);
/// A word that must be there and be one of `known`.
std::string RequiredWord(const Field& field,
                         std::initializer_list<std::string_view> known);
/// Texts that pass `check`, none twice, at most `limit`.
std::vector<std::string> DecodeNames(const Field& list, std::size_t limit,
                                     std::string (*check)(std::string_view));
/// An amount that is not negative and has not been clamped but as an API server
/// does. Nothing when it is absent or, after a report, wrong.
std::optional<Quantity> DecodeAmount(const Field& field);
/// As DecodeAmount, but absence is an error.
std::optional<Quantity> RequiredAmount(const Field& field);

/// The name of an attribute or capacity: an optional domain, then a C
/// identifier. Empty when it is fine.
std::string CheckDeviceKey(std::string_view name);
/// The same with a domain.
std::string CheckFullDeviceKey(std::string_view name);

/// `exactly_one`: another number of terms than one is an error, as in slices.
NodeSelector DecodeNodeSelector(const Field& field, bool exactly_one);

/// Nothing for an attribute of no kind.
std::optional<DeviceAttribute> DecodeAttribute(const Field& field,
                                               TextPool& texts);
/// Values of an attribute: the entries of a list, or one.
std::size_t CountValues(const DeviceAttribute& attribute);
bool IsList(const DeviceAttribute& attribute);

/// An entry of `capacity`. Only devices that are shared have request policies.
std::optional<DeviceCapacity> DecodeCapacity(const Field& field, bool is_shared,
                                             TextPool& texts);

std::vector<CounterSet> DecodeCounterSets(const Field& list);
RareVector<DeviceCounterConsumption> DecodeConsumption(const Field& list,
                                                       TextPool& texts);

RareVector<NodeAllocatableResource> DecodeNodeResources(
    const Field& map, const SortedMap<DeviceCapacity>& capacity);

DeviceTaint DecodeTaint(const Field& field);
std::vector<DeviceTaint> DecodeTaints(const Field& list);
std::vector<DeviceToleration> DecodeTolerations(const Field& list);

/// What a device and an allocation result have at `field`.
struct BindingConditions {
  std::vector<std::string> conditions;
  std::vector<std::string> failure_conditions;
};
BindingConditions DecodeBindingConditions(const Field& field);

/// `skipNodeOperations` of a slice.
std::vector<std::string> DecodeSkippedOperations(const Field& list);

/// A device of a slice, with all but its name at `content`. `has_place`: the
/// slice leaves it to devices where they are. `bare_capacity`: capacities are
/// amounts and nothing else.
SliceDevice DecodeDevice(const Field& field, const Field& content,
                         bool has_place, bool bare_capacity, TextPool& texts);

/// A map, as JSON of at most `limit` bytes; empty when absent.
std::string DecodeObjectText(const Field& field, std::size_t limit);
/// `config` of a class.
std::vector<OpaqueDeviceConfiguration> DecodeClassConfig(const Field& list);

/// Requests of a claim that other fields name: `req` and `req/sub`.
using RequestNames = std::set<std::string, std::less<>>;
/// `request` or `request/alternative`. Empty when it is fine.
std::string CheckRequestReference(std::string_view text);
/// References to requests. Where `known` is given they must be in it.
std::vector<std::string> DecodeRequestReferences(const Field& list,
                                                 const RequestNames* known);
std::vector<DeviceConstraint> DecodeConstraints(const Field& list,
                                                const RequestNames& known);
std::vector<DeviceClaimConfiguration> DecodeClaimConfig(
    const Field& list, const RequestNames& known);
std::vector<DeviceAllocationConfiguration> DecodeAllocationConfig(
    const Field& list);

}  // namespace devmgr::api
