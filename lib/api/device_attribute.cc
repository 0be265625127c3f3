// SPDX-License-Identifier: Apache-2.0
//
// Attributes of devices, and the names of attributes and capacities.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/device_parts.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"
#include "api/semver.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxDomainBytes = 63;
constexpr std::size_t kMaxIdentifierBytes = 32;
constexpr std::size_t kMaxAttributeTextBytes = 64;

/// Index of the first list in DeviceAttribute.
constexpr std::size_t kFirstList = 4;

bool IsIdentifier(std::string_view text) {
  auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && text.size() <= kMaxIdentifierBytes &&
         is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9');
         });
}

std::optional<SharedText> DecodeText(const Field& field, TextPool& texts) {
  const std::optional<std::string> text = field.AsString();
  if (!text.has_value()) return std::nullopt;
  if (text->size() > kMaxAttributeTextBytes) {
    field.Error(fmt::format("has {} bytes, at most {} are allowed",
                            text->size(), kMaxAttributeTextBytes));
  }
  return texts.Get(*text);
}

std::optional<DeviceVersion> DecodeVersion(const Field& field,
                                           TextPool& texts) {
  std::optional<SharedText> text = DecodeText(field, texts);
  if (!text.has_value()) return std::nullopt;
  if (!IsSemanticVersion(*text)) {
    field.Error(
        fmt::format("{} is not a semantic version 2.0.0", Quoted(*text)));
  }
  return DeviceVersion{*std::move(text)};
}

/// The values of a list, each as `decode` reads it; nothing for an empty one,
/// which is an error, as is a null in it.
template <typename T, typename Decode>
std::optional<DeviceAttribute> DecodeList(const Field& list,
                                          const Decode& decode) {
  if (!list.IsList()) return std::nullopt;
  std::vector<T> values;
  for (const Field& item : list.Items()) {
    if (!item.IsPresent()) item.Error("is null, a value is required");
    if (std::optional<T> value = decode(item)) {
      values.push_back(*std::move(value));
    }
  }
  if (list.value()->items.empty()) {
    list.Error("is empty, one value at least is required");
  }
  if (values.empty()) return std::nullopt;
  return DeviceAttribute(RareVector<T>(std::move(values)));
}

template <typename T>
std::optional<DeviceAttribute> OfScalar(std::optional<T> value) {
  if (!value.has_value()) return std::nullopt;
  return DeviceAttribute(*std::move(value));
}

}  // namespace

std::string CheckDeviceKey(std::string_view name) {
  const std::size_t slash = name.find('/');
  const bool has_domain = slash != std::string_view::npos;
  const std::string_view domain = has_domain ? name.substr(0, slash) : "";
  if (has_domain &&
      (domain.size() > kMaxDomainBytes || !CheckSubdomain(domain).empty())) {
    return fmt::format(
        "the domain of {} is not a DNS subdomain of at most {} "
        "characters",
        Quoted(name), kMaxDomainBytes);
  }
  if (IsIdentifier(has_domain ? name.substr(slash + 1) : name)) return "";
  return fmt::format(
      "{} is not an attribute name: an optional domain and '/', then up to {} "
      "letters, digits and '_', not beginning with a digit",
      Quoted(name), kMaxIdentifierBytes);
}

std::string CheckFullDeviceKey(std::string_view name) {
  if (name.find('/') == std::string_view::npos) {
    return fmt::format(
        "{} has no domain; a full name is a domain, '/' and a name",
        Quoted(name));
  }
  return CheckDeviceKey(name);
}

std::optional<DeviceAttribute> DecodeAttribute(const Field& field,
                                               TextPool& texts) {
  constexpr std::string_view kKinds[] = {"int",     "bool",    "string",
                                         "version", "ints",    "bools",
                                         "strings", "versions"};
  if (!field.RequireMap()) return std::nullopt;
  const auto is_present = [&](std::string_view kind) {
    return field[kind].IsPresent();
  };
  const auto kinds =
      std::count_if(std::begin(kKinds), std::end(kKinds), is_present);
  if (kinds != 1) {
    field.Error(fmt::format(
        "has {} values; exactly one of int, bool, string, version, ints, "
        "bools, strings, versions is required",
        kinds));
    return std::nullopt;
  }
  const std::string_view kind =
      *std::find_if(std::begin(kKinds), std::end(kKinds), is_present);
  const Field value = field[kind];
  const auto text = [&](const Field& f) { return DecodeText(f, texts); };
  const auto version = [&](const Field& f) { return DecodeVersion(f, texts); };
  if (kind == "int") return OfScalar(value.AsInteger());
  if (kind == "bool") return OfScalar(value.AsBool());
  if (kind == "string") return OfScalar(text(value));
  if (kind == "version") return OfScalar(version(value));
  if (kind == "strings") return DecodeList<SharedText>(value, text);
  if (kind == "versions") return DecodeList<DeviceVersion>(value, version);
  if (kind == "bools") {
    return DecodeList<bool>(value, [](const Field& f) { return f.AsBool(); });
  }
  return DecodeList<std::int64_t>(value,
                                  [](const Field& f) { return f.AsInteger(); });
}

std::size_t CountValues(const DeviceAttribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::size_t {
        if constexpr (requires { value.vector(); }) return value.size();
        return 1;
      },
      attribute);
}

bool IsList(const DeviceAttribute& attribute) {
  return attribute.index() >= kFirstList;
}

}  // namespace devmgr::api
