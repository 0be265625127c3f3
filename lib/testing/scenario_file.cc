// SPDX-License-Identifier: Apache-2.0
//
// Scenario files, decoded by hand so that every mistake is told with its line.
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/status.h"
#include "testing/files.h"
#include "testing/scenario.h"

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;

constexpr std::size_t kMaxScenarioBytes = 1024 * 1024;

constexpr Action kActions[] = {
    Action::kDelay,        Action::kFail,        Action::kFailClaim,
    Action::kHang,         Action::kTooLittle,   Action::kUnknownClaim,
    Action::kGarbageNames, Action::kCrashBefore, Action::kCrashAfter,
    Action::kDropSocket,   Action::kReRegister,
};
constexpr std::string_view kMethods[] = {
    "any", "prepare", "unprepare", "get-info", "notify-registration",
};

/// Whole milliseconds or seconds; null for anything else.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  std::int64_t unit = 1000;
  if (text.ends_with("ms")) {
    unit = 1;
    text.remove_suffix(2);
  } else if (text.ends_with("s")) {
    text.remove_suffix(1);
  } else {
    return std::nullopt;
  }
  std::uint32_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(number * unit);
}

std::optional<int> ParseCount(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      number > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
    return std::nullopt;
  }
  return static_cast<int>(number);
}

/// Reads one scenario. Calls into yaml-cpp may throw YAML::Exception.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  absl::StatusOr<std::vector<ScenarioStep>> Read(const std::string& text) {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty()) return std::vector<ScenarioStep>();
    if (documents.size() > 1) {
      return Error(documents[1], "", "one document wanted, there are {}",
                   documents.size());
    }
    const YAML::Node& root = documents.front();
    if (root.IsNull()) return std::vector<ScenarioStep>();
    if (!root.IsMap()) return Error(root, "", "not a mapping with 'steps'");
    std::vector<ScenarioStep> steps;
    bool seen = false;
    for (const auto& member : root) {
      const std::string key = member.first.Scalar();
      if (key != "steps") return Error(member.first, key, "unknown field");
      if (std::exchange(seen, true)) {
        return Error(member.first, key, "given twice");
      }
      if (member.second.IsNull()) continue;
      if (!member.second.IsSequence()) {
        return Error(member.second, key, "not a list");
      }
      for (const YAML::Node& item : member.second) {
        DEVMGR_ASSIGN_OR_RETURN(
            ScenarioStep step,
            ReadStep(item, fmt::format("steps[{}]", steps.size())));
        steps.push_back(std::move(step));
      }
    }
    return steps;
  }

 private:
  template <typename... Args>
  absl::Status Error(const YAML::Node& node, const std::string& field,
                     fmt::format_string<Args...> format, Args&&... args) const {
    std::string text = fmt::format("{}:{}: ", file_, node.Mark().line + 1);
    if (!field.empty()) text += field + ": ";
    text += fmt::format(format, std::forward<Args>(args)...);
    return MakeStatus(absl::StatusCode::kInvalidArgument, text);
  }

  absl::StatusOr<ScenarioStep> ReadStep(const YAML::Node& node,
                                        const std::string& field) const {
    if (!node.IsMap()) return Error(node, field, "not a mapping");
    ScenarioStep step;
    std::set<std::string> seen;
    for (const auto& member : node) {
      const std::string key = member.first.Scalar();
      const std::string path = field + "." + key;
      if (!seen.insert(key).second) {
        return Error(member.first, path, "given twice");
      }
      if (!member.second.IsScalar()) {
        return Error(member.second, path, "not a single value");
      }
      DEVMGR_RETURN_IF_ERROR(
          ReadMember(key, member.first, member.second, path, &step));
    }
    if (seen.count("action") == 0) {
      return Error(node, field, "has no 'action'");
    }
    DEVMGR_RETURN_IF_ERROR(CheckStep(node, field, step));
    return step;
  }

  absl::Status ReadMember(const std::string& key, const YAML::Node& key_node,
                          const YAML::Node& node, const std::string& path,
                          ScenarioStep* step) const {
    const std::string value = node.Scalar();
    if (key == "action") return ReadAction(node, value, path, step);
    if (key == "method") return ReadMethod(node, value, path, step);
    if (key == "claim") {
      step->claim = value;
    } else if (key == "message") {
      step->message = value;
    } else if (key == "times") {
      const std::optional<int> count = ParseCount(value);
      if (!count) {
        return Error(node, path, "'{}' is not a count (0: always)", value);
      }
      step->times = *count;
    } else if (key == "delay") {
      const auto delay = ParseDuration(value);
      if (!delay) {
        return Error(node, path, "'{}' is not a duration such as 250ms or 2s",
                     value);
      }
      step->delay = *delay;
    } else {
      return Error(key_node, path,
                   "unknown field; known are action, method, claim, times, "
                   "delay, message");
    }
    return absl::OkStatus();
  }

  absl::Status ReadAction(const YAML::Node& node, const std::string& value,
                          const std::string& path, ScenarioStep* step) const {
    std::string known;
    for (const Action action : kActions) {
      if (NameOf(action) == value) {
        step->action = action;
        return absl::OkStatus();
      }
      known += fmt::format("{}{}", known.empty() ? "" : ", ", NameOf(action));
    }
    return Error(node, path, "unknown action '{}'; known are {}", value, known);
  }

  absl::Status ReadMethod(const YAML::Node& node, const std::string& value,
                          const std::string& path, ScenarioStep* step) const {
    std::string known;
    for (const std::string_view method : kMethods) {
      if (method == value) {
        step->method = value;
        return absl::OkStatus();
      }
      known += fmt::format("{}{}", known.empty() ? "" : ", ", method);
    }
    return Error(node, path, "unknown method '{}'; known are {}", value, known);
  }

  /// Steps that could never do anything are mistakes.
  absl::Status CheckStep(const YAML::Node& node, const std::string& field,
                         const ScenarioStep& step) const {
    if (step.action == Action::kDelay && step.delay.count() == 0) {
      return Error(node, field, "action delay needs a 'delay'");
    }
    const bool handshake =
        step.method == "get-info" || step.method == "notify-registration";
    if (!handshake) return absl::OkStatus();
    if (!step.claim.empty()) {
      return Error(node, field, "calls of {} carry no claim", step.method);
    }
    switch (step.action) {
      case Action::kDelay:
      case Action::kFail:
      case Action::kHang:
      case Action::kCrashBefore:
      case Action::kCrashAfter:
      case Action::kReRegister:
        return absl::OkStatus();
      case Action::kGarbageNames:
        if (step.method == "get-info") return absl::OkStatus();
        break;
      default:
        break;
    }
    return Error(node, field, "action {} does not go with method {}",
                 NameOf(step.action), step.method);
  }

  const std::string file_;
};

}  // namespace

absl::StatusOr<std::vector<ScenarioStep>> ReadScenario(
    const std::filesystem::path& file) {
  const absl::StatusOr<std::string> text = ReadFile(file, kMaxScenarioBytes);
  if (!text.ok()) {
    return InvalidArgumentError("scenario: {}", MessageOf(text.status()));
  }
  try {
    return Reader(file.string()).Read(*text);
  } catch (const YAML::Exception& error) {
    return InvalidArgumentError("{}:{}: {}", file.string(), error.mark.line + 1,
                                error.msg);
  }
}

}  // namespace devmgr::testing
