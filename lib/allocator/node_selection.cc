// SPDX-License-Identifier: Apache-2.0
#include "allocator/node_selection.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace devmgr::allocator {
namespace {

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      text.empty()) {
    return std::nullopt;
  }
  return number;
}

bool Has(const std::vector<std::string>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// `value` is null when the node has no such label.
bool Fulfils(const NodeSelectorRequirement& requirement,
             const std::string* value) {
  const std::string& op = requirement.op;
  const std::vector<std::string>& values = requirement.values;
  if (op == "In") return value != nullptr && Has(values, *value);
  if (op == "NotIn") {
    return !values.empty() && (value == nullptr || !Has(values, *value));
  }
  if (op == "Exists") return values.empty() && value != nullptr;
  if (op == "DoesNotExist") return values.empty() && value == nullptr;
  if (op != "Gt" && op != "Lt") return false;
  if (value == nullptr || values.size() != 1) return false;
  const auto have = ParseInteger(*value);
  const auto bound = ParseInteger(values.front());
  if (!have || !bound) return false;
  return op == "Gt" ? *have > *bound : *have < *bound;
}

bool FulfilsField(const NodeSelectorRequirement& requirement,
                  const std::string& node_name) {
  if (requirement.key != "metadata.name" || requirement.values.size() != 1) {
    return false;
  }
  const bool is_named = requirement.values.front() == node_name;
  if (requirement.op == "In") return is_named;
  return requirement.op == "NotIn" && !is_named;
}

bool Matches(const NodeSelectorTerm& term, const Node& node) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  const auto& labels = node.metadata.labels;
  return std::all_of(
             term.match_expressions.begin(), term.match_expressions.end(),
             [&](const NodeSelectorRequirement& requirement) {
               const auto label = labels.find(requirement.key);
               return Fulfils(requirement,
                              label == labels.end() ? nullptr : &label->second);
             }) &&
         std::all_of(term.match_fields.begin(), term.match_fields.end(),
                     [&](const NodeSelectorRequirement& requirement) {
                       return FulfilsField(requirement, node.metadata.name);
                     });
}

bool ReachesBy(std::string_view node_name, bool all_nodes,
               const std::optional<NodeSelector>& selector, const Node& node) {
  if (!node_name.empty()) return node_name == node.metadata.name;
  if (all_nodes) return true;
  return selector && Reaches(*selector, node);
}

/// The order of values makes no difference.
bool IsSame(const NodeSelectorRequirement& a,
            const NodeSelectorRequirement& b) {
  return a.key == b.key && a.op == b.op &&
         std::set(a.values.begin(), a.values.end()) ==
             std::set(b.values.begin(), b.values.end());
}

void Unite(const std::vector<NodeSelectorRequirement>& from,
           std::vector<NodeSelectorRequirement>& to) {
  for (const NodeSelectorRequirement& requirement : from) {
    if (std::none_of(to.begin(), to.end(), [&](const auto& present) {
          return IsSame(present, requirement);
        })) {
      to.push_back(requirement);
    }
  }
}

}  // namespace

bool Matches(const NodeSelector& selector, const Node& node) {
  return std::any_of(
      selector.terms.begin(), selector.terms.end(),
      [&](const NodeSelectorTerm& term) { return Matches(term, node); });
}

bool Reaches(const NodeSelector& selector, const Node& node) {
  return selector.terms.size() == 1 && Matches(selector, node);
}

bool HasKnownSelection(const ResourceSlice& slice) {
  return !slice.node_name.empty() || slice.all_nodes || slice.node_selector ||
         slice.per_device_node_selection;
}

bool Reaches(const ResourceSlice& slice, const Node& node) {
  if (slice.node_name.empty() && !slice.all_nodes && !slice.node_selector &&
      slice.per_device_node_selection) {
    return std::any_of(slice.devices.begin(), slice.devices.end(),
                       [&](const SliceDevice& device) {
                         return Reaches(slice, device, node);
                       });
  }
  return ReachesBy(slice.node_name, slice.all_nodes, slice.node_selector, node);
}

bool Reaches(const ResourceSlice& slice, const SliceDevice& device,
             const Node& node) {
  return !slice.per_device_node_selection ||
         ReachesBy(device.node_name, device.all_nodes, device.node_selector,
                   node);
}

void NodeSelection::Add(const ResourceSlice& slice, const SliceDevice& device) {
  const bool by_device = slice.per_device_node_selection;
  const bool is_named =
      by_device ? !device.node_name.empty() : !slice.node_name.empty();
  if (is_named || device.binds_to_node) is_one_node_ = true;
  const auto& selector = by_device ? device.node_selector : slice.node_selector;
  if (!selector || selector->terms.size() != 1) return;
  Unite(selector->terms[0].match_fields, term_.match_fields);
  Unite(selector->terms[0].match_expressions, term_.match_expressions);
}

std::optional<NodeSelector> NodeSelection::Selector() const {
  NodeSelectorTerm term;
  if (is_one_node_) {
    NodeSelectorRequirement& name = term.match_fields.emplace_back();
    name.key = "metadata.name";
    name.op = "In";
    name.values.push_back(node_name_);
  } else {
    term = term_;
  }
  if (term.match_fields.empty() && term.match_expressions.empty()) {
    return std::nullopt;
  }
  NodeSelector selector;
  selector.terms.push_back(std::move(term));
  return selector;
}

}  // namespace devmgr::allocator
