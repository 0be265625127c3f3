// SPDX-License-Identifier: Apache-2.0
//
// What devices of a claim have to have in common, or may not have in common.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/inventory.h"
#include "allocator/selector_table.h"

namespace devmgr::allocator {

/// The values of an attribute as numbers: a single value is a list of one. Two
/// numbers are equal when kind and value are; versions are compared as texts.
struct AttributeValues {
  enum class State : std::uint8_t {
    kPresent,
    kMissing,
    kList,     ///< A list, and the feature of lists is off: comparable with
               ///< nothing, so that it does for the first device alone.
    kNoValue,  ///< It has no value of a kind known here.
    kError,    ///< It is derived, and cannot be: Error() says why.
  };
  State state = State::kMissing;
  std::vector<std::uint32_t> values;  ///< Sorted, each once.
  friend bool operator==(const AttributeValues&,
                         const AttributeValues&) = default;
};

/// Attributes of devices by their full names, looked up once.
class AttributeTable {
 public:
  explicit AttributeTable(const Inventory& inventory) : inventory_(inventory) {}

  /// The number of an attribute's name, which has a domain. A device has it
  /// under this name, or without the domain if that is its driver's.
  std::size_t Add(const std::string& name);
  /// The same of what an expression says of a device, in place of an attribute
  /// (KEP-6080). It is compiled by `selectors`.
  std::size_t AddDerived(const std::string& expression,
                         SelectorTable& selectors);
  const AttributeValues& Of(std::size_t attribute, DeviceNumber device);
  /// After kError. For all devices the same when it did not compile.
  const absl::Status& Error(std::size_t attribute, DeviceNumber device) const;
  bool IsCompiled(std::size_t attribute) const {
    return columns_[attribute].expression.ok();
  }
  /// For people.
  std::string Text(std::span<const std::uint32_t> values) const;

 private:
  struct Column {
    std::string name;  ///< Or the text of the expression.
    /// Null for an attribute that is published.
    absl::StatusOr<std::shared_ptr<const cel::Selector>> expression;
    cel::EvaluationOptions options;
    std::map<DeviceNumber, AttributeValues> values;
    std::map<DeviceNumber, absl::Status> errors;
  };
  AttributeValues Read(const std::string& name, const Device& device);
  AttributeValues Derive(Column& column, DeviceNumber device);
  AttributeValues Numbered(const DeviceAttribute& attribute);
  std::uint32_t NumberOf(std::string value);

  const Inventory& inventory_;
  std::vector<Column> columns_;
  std::map<std::string, std::uint32_t> numbers_;
};

/// One constraint of a claim, and the devices that are chosen under it. Once it
/// refuses a device, it would with any more devices chosen.
class Constraint {
 public:
  /// `constraint` has one of the two attributes.
  Constraint(const DeviceConstraint& constraint, AttributeTable& attributes);

  /// Whether it is for this request, given as `req`, and as `req/sub` for an
  /// alternative: it names the request or the alternative, or nothing.
  bool AppliesTo(std::string_view request, std::string_view full_name) const;

  std::size_t attribute() const { return attribute_; }
  const std::string& attribute_name() const { return name_; }

  /// Whether a device with `values` goes with those chosen.
  bool Admits(const AttributeValues& values) const;
  /// It does.
  void Add(const AttributeValues& values);
  /// Undoes the last Add().
  void RemoveLast();

  bool is_match() const { return is_match_; }
  /// What those chosen have in common, or have taken.
  std::span<const std::uint32_t> Present() const;
  friend bool operator==(const Constraint&, const Constraint&) = default;

 private:
  bool is_match_ = false;
  std::string name_;
  std::size_t attribute_ = 0;
  std::vector<std::string> requests_;
  /// Of `match`: what all have in common, for one chosen device, for two, and
  /// so on, one after the other. Of `distinct`: the values of each.
  std::vector<std::uint32_t> values_;
  std::vector<std::size_t> sizes_;  ///< How many values each Add() appended.
};

}  // namespace devmgr::allocator
