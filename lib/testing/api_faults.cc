// SPDX-License-Identifier: Apache-2.0
#include "testing/api_faults.h"

#include <absl/strings/numbers.h>
#include <devmgr/duration.h>

#include <utility>

#include "api/parser.h"
#include "common/status.h"

namespace devmgr::testing {
namespace {

using FaultAction = ApiFault::Action;

constexpr std::pair<std::string_view, FaultAction> kActions[] = {
    {"delay", FaultAction::kDelay},
    {"fail", FaultAction::kFail},
    {"lose-answer", FaultAction::kLoseAnswer},
    {"cut", FaultAction::kCut},
    {"silence", FaultAction::kSilence},
    {"lie", FaultAction::kLie},
    {"half-event", FaultAction::kHalfEvent},
    {"error-event", FaultAction::kErrorEvent},
    {"end", FaultAction::kEnd},
};

bool IsForWatches(FaultAction action) {
  return action == FaultAction::kHalfEvent ||
         action == FaultAction::kErrorEvent || action == FaultAction::kEnd;
}

bool Fits(const ApiFault& fault, const ScriptedApiServer::Call& call) {
  const auto fits = [](const std::string& wanted, const std::string& is) {
    return wanted.empty() || wanted == is;
  };
  if (IsForWatches(fault.action) && call.verb != "watch") return false;
  return fits(fault.verb, call.verb) && fits(fault.resource, call.resource) &&
         fits(fault.ns, call.ns) && fits(fault.name, call.name);
}

absl::Status ReadAction(const std::string& text, FaultAction& action) {
  for (const auto& [name, one] : kActions) {
    if (name == text) {
      action = one;
      return absl::OkStatus();
    }
  }
  return InvalidArgumentError("'action': '{}' is none", text);
}

template <typename Number>
absl::Status ReadNumber(std::string_view key, const std::string& text,
                        Number& number) {
  if (absl::SimpleAtoi(text, &number)) return absl::OkStatus();
  return InvalidArgumentError("'{}': '{}' is no number", key, text);
}

absl::Status ReadField(std::string_view key, const std::string& text,
                       ApiFault& fault) {
  const std::pair<std::string_view, std::string*> texts[] = {
      {"verb", &fault.verb},       {"resource", &fault.resource},
      {"namespace", &fault.ns},    {"name", &fault.name},
      {"message", &fault.message}, {"resourceVersion", &fault.resource_version},
  };
  for (const auto& [name, target] : texts) {
    if (name == key) {
      *target = text;
      return absl::OkStatus();
    }
  }
  if (key == "action") return ReadAction(text, fault.action);
  if (key == "skip") return ReadNumber(key, text, fault.skip);
  if (key == "times") return ReadNumber(key, text, fault.times);
  if (key == "code") return ReadNumber(key, text, fault.code);
  if (key == "retryAfter") return ReadNumber(key, text, fault.retry_after);
  if (key == "bytes") {
    std::uint64_t bytes = 0;
    DEVMGR_RETURN_IF_ERROR(ReadNumber(key, text, bytes));
    fault.bytes = bytes;
    return absl::OkStatus();
  }
  if (key == "delay") {
    const auto delay = devmgr::ParseDuration(text);
    if (!delay.has_value()) {
      return InvalidArgumentError("'delay': '{}' is no duration", text);
    }
    fault.delay = *delay;
    return absl::OkStatus();
  }
  return InvalidArgumentError("'{}' is no field of a fault", key);
}

}  // namespace

std::optional<ApiFault> ApiFaults::Take(const ScriptedApiServer::Call& call) {
  for (auto it = faults_.begin(); it != faults_.end(); ++it) {
    if (!Fits(*it, call)) continue;
    if (it->skip > 0) {
      --it->skip;
      continue;
    }
    const ApiFault fault = *it;
    if (it->times > 0 && --it->times == 0) faults_.erase(it);
    return fault;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<ApiFault>> ReadApiFaults(std::string_view text) {
  const api::ParsedText parsed = api::ParseText(text, /*json_only=*/false);
  if (!parsed.error.empty()) {
    return InvalidArgumentError("line {}: {}", parsed.error_line, parsed.error);
  }
  std::vector<ApiFault> faults;
  for (const api::ValuePtr& document : parsed.documents) {
    const api::Value* list = document->Find("faults");
    if (list == nullptr || list->kind != api::Value::Kind::kList) {
      return InvalidArgumentError("line {}: 'faults' is missing, or no list",
                                  document->line);
    }
    for (const api::ValuePtr& item : list->items) {
      if (item->Find("action") == nullptr) {
        return InvalidArgumentError("line {}: 'action' is missing", item->line);
      }
      ApiFault fault;
      for (const auto& [key, member] : item->members) {
        DEVMGR_RETURN_IF_ERROR(WithContext(
            ReadField(key, member.value->text, fault), "line {}", member.line));
      }
      faults.push_back(std::move(fault));
    }
  }
  return faults;
}

}  // namespace devmgr::testing
