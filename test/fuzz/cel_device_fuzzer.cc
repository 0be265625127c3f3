// SPDX-License-Identifier: Apache-2.0
//
// A device and an expression over it. The input is a device, one line for each
// attribute, an empty line, and the text of the expression. A line is a kind, a
// name and a value: `i index 7`, `s model A100`, `S names a b`.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "api/quantity.h"
#include "cel/device.h"
#include "cel/selector.h"
#include "common/status.h"
#include "fuzz/fuzz.h"

namespace devmgr::cel {
namespace {

using fuzz::Require;

constexpr std::string_view kDriver = "a.b";

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::int64_t Number(const std::string& text) {
  std::uint64_t number = 0;
  for (const char c : text) {
    number = number * 10 + static_cast<unsigned char>(c) - '0';
  }
  return static_cast<std::int64_t>(number);
}

template <typename T, typename Convert>
DeviceAttribute ListOf(const std::vector<std::string>& words, Convert convert) {
  RareVector<T> list;
  for (std::size_t i = 2; i < words.size(); ++i)
    list.push_back(convert(words[i]));
  return list;
}

void AddLine(SliceDevice& device, const std::string& line) {
  const std::vector<std::string> words = Words(line);
  if (words.size() < 3 || words[0].size() != 1) return;
  const std::string& name = words[1];
  const auto is_true = [](const std::string& word) { return word == "true"; };
  const auto version = [](const std::string& word) {
    return DeviceVersion{word};
  };
  switch (words[0][0]) {
    case 'i':
      device.attributes[name] = Number(words[2]);
      break;
    case 'b':
      device.attributes[name] = is_true(words[2]);
      break;
    case 's':
      device.attributes[name] = SharedText(words[2]);
      break;
    case 'v':
      device.attributes[name] = version(words[2]);
      break;
    case 'I':
      device.attributes[name] = ListOf<std::int64_t>(words, Number);
      break;
    case 'B':
      device.attributes[name] = ListOf<bool>(words, is_true);
      break;
    case 'S':
      device.attributes[name] = ListOf<SharedText>(
          words, [](const std::string& word) { return SharedText(word); });
      break;
    case 'V':
      device.attributes[name] = ListOf<DeviceVersion>(words, version);
      break;
    case 'q':
      if (const auto quantity = api::ParseQuantity(words[2]); quantity.ok()) {
        device.capacity[name].value = *quantity;
      }
      break;
    case 'm':
      device.allow_multiple_allocations = is_true(words[2]);
      break;
    default:
      break;
  }
}

/// A decoded object has no text that is not UTF-8, and no text is endless.
SliceDevice ReadDevice(const std::string& lines) {
  SliceDevice device;
  if (api::FindInvalidUtf8(lines) != std::string::npos) return device;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    if (line.size() < 200) AddLine(device, line);
  }
  return device;
}

/// The cost is a matter of the device alone: with a limit of that cost the
/// result is the same, and with a lower one the evaluation ends early.
template <typename Evaluate>
void RequireSameAgain(Evaluate evaluate) {
  EvaluationOptions options;
  options.cost_limit = 20'000;
  options.work_limit = 500'000;
  const absl::StatusOr<Verdict> verdict = evaluate(options);
  if (!verdict.ok()) {
    fuzz::RequireReadable(MessageOf(verdict.status()));
    Require(evaluate(options).status() == verdict.status(),
            "an error comes again");
    return;
  }
  Require(verdict->cost <= options.cost_limit, "the cost is within its limit");
  options.cost_limit = verdict->cost;
  const absl::StatusOr<Verdict> again = evaluate(options);
  Require(again.ok() && again->matches == verdict->matches &&
              again->cost == verdict->cost,
          "an evaluation has the same result within its own cost");
  if (verdict->cost == 0) return;
  options.cost_limit = verdict->cost - 1;
  Require(
      evaluate(options).status().code() == absl::StatusCode::kResourceExhausted,
      "an evaluation ends at a lower limit");
}

}  // namespace
}  // namespace devmgr::cel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace devmgr::cel;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find("\n\n"), input.size());
  const devmgr::SliceDevice device = ReadDevice(input.substr(0, end));
  const std::string text = input.substr(std::min(end + 2, input.size()));
  if (const auto selector = Selector::Compile(text); selector.ok()) {
    const Value value = MakeDevice(kDriver, device);
    RequireSameAgain([&](const EvaluationOptions& options) {
      return (*selector)->Evaluate(value, options);
    });
  }
  if (const auto selector =
          Selector::Compile(text, Selector::Kind::kDerivedAttribute);
      selector.ok()) {
    const auto value = (*selector)->EvaluateAttribute(
        MakeDevice(kDriver, device), {.cost_limit = 20'000});
    if (!value.ok())
      devmgr::fuzz::RequireReadable(devmgr::MessageOf(value.status()));
  }
  if (const auto selector = Selector::Compile(text, Selector::Kind::kOldDevice);
      selector.ok()) {
    const OldDevice old = MakeOldDevice(kDriver, device);
    RequireSameAgain([&](const EvaluationOptions& options) {
      return (*selector)->EvaluateOld(old, options);
    });
  }
  return 0;
}
