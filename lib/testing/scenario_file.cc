// SPDX-License-Identifier: Apache-2.0
//
// Scenario files, decoded by hand so that every mistake is told with its line.
#include <devmgr/duration.h>
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "testing/files.h"
#include "testing/scenario.h"

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;

constexpr std::size_t kMaxScenarioBytes = 1024 * 1024;

/// Fields of a step, in the order they are told in.
constexpr std::string_view kDriverFields[] = {
    "action", "method", "claim", "device", "times", "delay", "after", "message",
};
constexpr std::string_view kPluginFields[] = {
    "action", "method", "device", "times", "delay", "after", "count", "message",
};

std::span<const std::string_view> FieldsOf(Fake fake) {
  if (fake == Fake::kDriver) return kDriverFields;
  return kPluginFields;
}

/// What happens when the call is served, and may happen some time after that.
bool ComesAfter(Action action) {
  switch (action) {
    case Action::kCrashAfter:
    case Action::kReRegister:
    case Action::kSetDevices:
    case Action::kFlapDevice:
    case Action::kDropStream:
    case Action::kRestart:
    case Action::kRollingUpgrade:
    case Action::kTakeOver:
    case Action::kSetHealth:
      return true;
    default:
      return false;
  }
}

/// Whole milliseconds or seconds; null for anything else.
std::optional<std::chrono::milliseconds> ParsePause(std::string_view text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string_view::npos) return std::nullopt;
  const std::string_view unit = text.substr(digits);
  if (unit != "ms" && unit != "s") return std::nullopt;
  return devmgr::ParseDuration(text);
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
  Reader(Fake fake, std::string file) : fake_(fake), file_(std::move(file)) {}

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
      const std::string path = fmt::format("{}.{}", field, key);
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
    DEVMGR_RETURN_IF_ERROR(CheckStep(node, field, step, seen));
    return step;
  }

  absl::Status ReadMember(const std::string& key, const YAML::Node& key_node,
                          const YAML::Node& node, const std::string& path,
                          ScenarioStep* step) const {
    const std::string& value = node.Scalar();
    const auto fields = FieldsOf(fake_);
    if (std::find(fields.begin(), fields.end(), key) == fields.end()) {
      return Error(key_node, path, "unknown field; known are {}",
                   fmt::join(fields, ", "));
    }
    if (key == "action") return ReadAction(node, value, path, step);
    if (key == "method") return ReadMethod(node, value, path, step);
    if (key == "times") return ReadCount(node, value, path, &step->times);
    if (key == "count") return ReadCount(node, value, path, &step->count);
    if (key == "delay") return ReadDuration(node, value, path, &step->delay);
    if (key == "after") return ReadDuration(node, value, path, &step->after);
    if (key == "claim") step->claim = value;
    if (key == "device") step->device = value;
    if (key == "message") step->message = value;
    return absl::OkStatus();
  }

  absl::Status ReadAction(const YAML::Node& node, const std::string& value,
                          const std::string& path, ScenarioStep* step) const {
    std::vector<std::string_view> known;
    for (const Action action : ActionsOf(fake_)) {
      step->action = action;
      if (NameOf(action) == value) return absl::OkStatus();
      known.push_back(NameOf(action));
    }
    return Error(node, path, "unknown action '{}'; known are {}", value,
                 fmt::join(known, ", "));
  }

  absl::Status ReadMethod(const YAML::Node& node, const std::string& value,
                          const std::string& path, ScenarioStep* step) const {
    const std::vector<std::string_view> known = MethodsOf(fake_);
    if (std::find(known.begin(), known.end(), value) == known.end()) {
      return Error(node, path, "unknown method '{}'; known are {}", value,
                   fmt::join(known, ", "));
    }
    step->method = value;
    return absl::OkStatus();
  }

  absl::Status ReadCount(const YAML::Node& node, const std::string& value,
                         const std::string& path, int* count) const {
    const std::optional<int> number = ParseCount(value);
    if (!number) {
      return Error(node, path, "'{}' is not a count{}", value,
                   path.ends_with("times") ? " (0: always)" : "");
    }
    *count = *number;
    return absl::OkStatus();
  }

  absl::Status ReadDuration(const YAML::Node& node, const std::string& value,
                            const std::string& path,
                            std::chrono::milliseconds* duration) const {
    const auto parsed = ParsePause(value);
    if (!parsed) {
      return Error(node, path, "'{}' is not a duration such as 250ms or 2s",
                   value);
    }
    *duration = *parsed;
    return absl::OkStatus();
  }

  /// Steps that could never do anything, and fields that say nothing, are
  /// mistakes.
  absl::Status CheckStep(const YAML::Node& node, const std::string& field,
                         const ScenarioStep& step,
                         const std::set<std::string>& seen) const {
    const std::string_view action = NameOf(step.action);
    if (!GoesWith(fake_, step.action, step.method)) {
      return Error(node, field, "action {} does not go with method {}", action,
                   step.method);
    }
    if (step.action == Action::kDelay && step.delay.count() == 0) {
      return Error(node, field, "action delay needs a 'delay'");
    }
    const bool handshake =
        step.method == "get-info" || step.method == "notify-registration";
    if (!step.claim.empty() && handshake) {
      return Error(node, field, "calls of {} carry no claim", step.method);
    }
    const bool flaps = step.action == Action::kFlapDevice;
    const bool of_one = flaps || step.action == Action::kSetHealth;
    if (of_one && step.device.empty()) {
      return Error(node, field, "action {} needs a 'device'", action);
    }
    if (!step.device.empty() && !of_one &&
        (handshake || step.method == "get-options" ||
         !GoesWith(fake_, step.action, "allocate"))) {
      return Error(node, field, "calls of {} carry no device", step.method);
    }
    const bool sets = step.action == Action::kSetDevices;
    if (sets && seen.count("count") == 0) {
      return Error(node, field, "action {} needs a 'count'", action);
    }
    if (seen.count("count") != 0 && !sets && !flaps) {
      return Error(node, field, "action {} has no use for 'count'", action);
    }
    if (sets && step.count > kMaxDevices) {
      return Error(node, field, "count is {}, more than {}", step.count,
                   kMaxDevices);
    }
    if (step.after.count() != 0 && !ComesAfter(step.action)) {
      return Error(node, field, "action {} has no use for 'after'", action);
    }
    return absl::OkStatus();
  }

  const Fake fake_;
  const std::string file_;
};

absl::StatusOr<std::vector<ScenarioStep>> ReadScenarioOf(
    Fake fake, const std::filesystem::path& file) {
  const absl::StatusOr<std::string> text = ReadFile(file, kMaxScenarioBytes);
  if (!text.ok()) {
    return InvalidArgumentError("scenario: {}", MessageOf(text.status()));
  }
  try {
    return Reader(fake, file.string()).Read(*text);
  } catch (const YAML::Exception& error) {
    return InvalidArgumentError("{}:{}: {}", file.string(), error.mark.line + 1,
                                error.msg);
  }
}

}  // namespace

absl::StatusOr<std::vector<ScenarioStep>> ReadScenario(
    const std::filesystem::path& file) {
  return ReadScenarioOf(Fake::kDriver, file);
}

absl::StatusOr<std::vector<ScenarioStep>> ReadPluginScenario(
    const std::filesystem::path& file) {
  return ReadScenarioOf(Fake::kPlugin, file);
}

}  // namespace devmgr::testing
