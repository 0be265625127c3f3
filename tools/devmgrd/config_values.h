// SPDX-License-Identifier: Apache-2.0
//
// Values of the configuration file, read with what is wrong in the words of the
// person who wrote it.
#pragma once

#include <absl/status/status.h>
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace devmgrd {

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  return absl::InvalidArgumentError(absl::string_view(text));
}

/// For messages: short and plain ASCII, with the escapes of JSON.
std::string Shown(std::string_view text, std::size_t limit = 80);

bool IsUtf8(const std::string& text);

/// `FILE:LINE`.
std::string Where(const std::string& file, const YAML::Node& node);

// Of the value of `key`. InvalidArgument names file, line and key.

/// No name or path has what would garble logs and end paths early.
absl::Status CheckText(const YAML::Node& value, const std::string& file,
                       const std::string& key);
/// A list; `what`: of which things, for people.
absl::Status ReadTexts(const YAML::Node& value, const std::string& file,
                       const std::string& key, std::string_view what,
                       std::vector<std::string>* to);
absl::Status ReadBool(const YAML::Node& value, const std::string& file,
                      const std::string& key, bool* to);

template <typename Number>
absl::Status ReadPositive(const YAML::Node& value, const std::string& file,
                          const std::string& key, Number* to) {
  Number number{};
  if (value.IsScalar() && YAML::convert<Number>::decode(value, number) &&
      number > 0 && number <= 1'000'000) {
    *to = number;
    return absl::OkStatus();
  }
  return Invalid("{}: {}: must be a {}number above 0, up to 1000000",
                 Where(file, value), key,
                 std::is_integral_v<Number> ? "whole " : "");
}

}  // namespace devmgrd
