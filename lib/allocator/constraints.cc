// SPDX-License-Identifier: Apache-2.0
#include "allocator/constraints.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace devmgr::allocator {
namespace {

// A value as a text that begins with its kind.
std::string Key(std::int64_t number) { return "i" + std::to_string(number); }
std::string Key(bool flag) { return flag ? "b1" : "b0"; }
std::string Key(const SharedText& text) { return "s" + text.str(); }
std::string Key(const DeviceVersion& version) {
  return "v" + version.value.str();
}

template <typename T>
std::vector<std::string> Keys(const T& value) {
  return {Key(value)};
}
template <typename T>
std::vector<std::string> Keys(const RareVector<T>& values) {
  std::vector<std::string> keys;
  for (const auto& value : values) {
    keys.push_back(Key(static_cast<const T&>(value)));
  }
  return keys;
}

constexpr std::size_t kFirstListKind = 4;  // Of DeviceAttribute.

const DeviceAttribute* Find(const std::string& name, const Device& device) {
  const auto& attributes = device.device->attributes;
  if (const auto* attribute = attributes.Find(name)) return attribute;
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos ||
      std::string_view(name).substr(0, slash) != device.id.driver) {
    return nullptr;
  }
  return attributes.Find(std::string_view(name).substr(slash + 1));
}

}  // namespace

std::size_t AttributeTable::Add(const std::string& name) {
  const auto column =
      std::find_if(columns_.begin(), columns_.end(), [&](const Column& each) {
        return each.name == name && each.expression.ok() &&
               *each.expression == nullptr;
      });
  const auto number = static_cast<std::size_t>(column - columns_.begin());
  if (column == columns_.end()) columns_.push_back({name, nullptr, {}, {}, {}});
  return number;
}

std::size_t AttributeTable::AddDerived(const std::string& expression,
                                       SelectorTable& selectors) {
  const auto column =
      std::find_if(columns_.begin(), columns_.end(), [&](const Column& each) {
        const bool is_derived = !each.expression.ok() || *each.expression;
        return is_derived && each.name == expression;
      });
  const auto number = static_cast<std::size_t>(column - columns_.begin());
  if (column == columns_.end()) {
    columns_.push_back(
        {expression,
         selectors.Compile(expression, SelectorTable::Kind::kDerivedAttribute),
         selectors.options(),
         {},
         {}});
  }
  return number;
}

const AttributeValues& AttributeTable::Of(std::size_t attribute,
                                          DeviceNumber device) {
  Column& column = columns_[attribute];
  const auto [place, is_new] = column.values.try_emplace(device);
  if (is_new) {
    const bool is_published = column.expression.ok() && !*column.expression;
    place->second = is_published
                        ? Read(column.name, inventory_.devices()[device])
                        : Derive(column, device);
  }
  return place->second;
}

AttributeValues AttributeTable::Read(const std::string& name,
                                     const Device& device) {
  const DeviceAttribute* attribute = Find(name, device);
  return attribute == nullptr ? AttributeValues() : Numbered(*attribute);
}

/// A list without entries, which has no kind, is as if it was missing, except
/// where no list is looked into.
AttributeValues AttributeTable::Derive(Column& column, DeviceNumber device) {
  const auto failed = [&](const absl::Status& status) {
    column.errors[device] = status;
    return AttributeValues{AttributeValues::State::kError, {}};
  };
  if (!column.expression.ok()) return failed(column.expression.status());
  const Device& candidate = inventory_.devices()[device];
  const auto attribute =
      (*column.expression)
          ->EvaluateAttribute(
              candidate.value.Of(*candidate.device, candidate.id.driver),
              column.options);
  if (!attribute.ok()) return failed(attribute.status());
  if (*attribute) return Numbered(**attribute);
  return inventory_.features().list_type_attributes
             ? AttributeValues()
             : AttributeValues{AttributeValues::State::kList, {}};
}

const absl::Status& AttributeTable::Error(std::size_t attribute,
                                          DeviceNumber device) const {
  return columns_[attribute].errors.at(device);
}

AttributeValues AttributeTable::Numbered(const DeviceAttribute& attribute) {
  using State = AttributeValues::State;
  const std::vector<std::string> keys =
      std::visit([](const auto& value) { return Keys(value); }, attribute);
  if (keys.empty()) return {State::kNoValue, {}};
  if (attribute.index() >= kFirstListKind &&
      !inventory_.features().list_type_attributes) {
    return {State::kList, {}};
  }
  AttributeValues values{State::kPresent, {}};
  for (const std::string& key : keys) values.values.push_back(NumberOf(key));
  std::sort(values.values.begin(), values.values.end());
  values.values.erase(std::unique(values.values.begin(), values.values.end()),
                      values.values.end());
  return values;
}

std::uint32_t AttributeTable::NumberOf(std::string value) {
  const auto next = static_cast<std::uint32_t>(numbers_.size());
  return numbers_.emplace(std::move(value), next).first->second;
}

std::string AttributeTable::Text(std::span<const std::uint32_t> values) const {
  std::string text;
  for (const std::uint32_t value : values) {
    const auto known =
        std::find_if(numbers_.begin(), numbers_.end(),
                     [&](const auto& each) { return each.second == value; });
    if (!text.empty()) text += ", ";
    text += known->first.front() == 'b'
                ? (known->first == "b1" ? "true" : "false")
                : known->first.substr(1);
  }
  return text;
}

Constraint::Constraint(const DeviceConstraint& constraint,
                       AttributeTable& attributes)
    : is_match_(!constraint.match_attribute.empty()),
      name_(is_match_ ? constraint.match_attribute
                      : constraint.distinct_attribute),
      attribute_(attributes.Add(name_)),
      requests_(constraint.requests) {}

bool Constraint::AppliesTo(std::string_view request,
                           std::string_view full_name) const {
  return requests_.empty() || std::any_of(requests_.begin(), requests_.end(),
                                          [&](const std::string& each) {
                                            return each == request ||
                                                   each == full_name;
                                          });
}

bool Constraint::Admits(const AttributeValues& values) const {
  // A list is comparable with nothing; upstream takes one for the first device.
  if (values.state == AttributeValues::State::kList) return sizes_.empty();
  if (values.state != AttributeValues::State::kPresent) return false;
  if (is_match_ && sizes_.empty()) return true;
  const std::span<const std::uint32_t> present = Present();
  const bool has_common =
      std::any_of(present.begin(), present.end(), [&](std::uint32_t value) {
        return std::binary_search(values.values.begin(), values.values.end(),
                                  value);
      });
  return has_common == is_match_;
}

std::span<const std::uint32_t> Constraint::Present() const {
  const std::size_t first =
      is_match_ && !sizes_.empty() ? values_.size() - sizes_.back() : 0;
  return std::span(values_).subspan(first);
}

void Constraint::Add(const AttributeValues& values) {
  const std::size_t before = values_.size();
  if (is_match_ && !sizes_.empty()) {
    std::vector<std::uint32_t> common;
    std::set_intersection(
        values_.end() - static_cast<std::ptrdiff_t>(sizes_.back()),
        values_.end(), values.values.begin(), values.values.end(),
        std::back_inserter(common));
    values_.insert(values_.end(), common.begin(), common.end());
  } else {
    values_.insert(values_.end(), values.values.begin(), values.values.end());
  }
  sizes_.push_back(values_.size() - before);
}

void Constraint::RemoveLast() {
  values_.resize(values_.size() - sizes_.back());
  sizes_.pop_back();
}

}  // namespace devmgr::allocator
