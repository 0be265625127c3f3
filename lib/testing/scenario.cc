// SPDX-License-Identifier: Apache-2.0
#include "testing/scenario.h"

#include <algorithm>
#include <utility>

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;

/// Actions that change what is said about a claim, not the whole call.
bool IsAboutClaims(Action action) {
  switch (action) {
    case Action::kFailClaim:
    case Action::kTooLittle:
    case Action::kGarbageNames:
      return true;
    default:
      return false;
  }
}

/// Methods as bits.
using Methods = unsigned;
constexpr Methods kPrepare = 1U << 0U;
constexpr Methods kUnprepare = 1U << 1U;
constexpr Methods kInfo = 1U << 2U;
constexpr Methods kNotify = 1U << 3U;
constexpr Methods kOptions = 1U << 4U;
constexpr Methods kList = 1U << 5U;
constexpr Methods kPreferred = 1U << 6U;
constexpr Methods kAllocate = 1U << 7U;
constexpr Methods kPreStart = 1U << 8U;
/// `any` is `list-and-watch`.
constexpr Methods kListByDefault = 1U << 9U;

constexpr Methods kClaims = kPrepare | kUnprepare;
constexpr Methods kHandshake = kInfo | kNotify;
constexpr Methods kDevices = kPreferred | kAllocate | kPreStart;
constexpr Methods kOfPlugins = kHandshake | kOptions | kList | kDevices;
constexpr Methods kListOnly = kList | kListByDefault;
constexpr Methods kLife = kDevices | kList | kListByDefault;

struct NamedMethod {
  std::string_view name;
  Methods bit;
};
constexpr NamedMethod kMethods[] = {
    {"prepare", kPrepare},
    {"unprepare", kUnprepare},
    {"get-preferred-allocation", kPreferred},
    {"allocate", kAllocate},
    {"pre-start-container", kPreStart},
    {"get-options", kOptions},
    {"list-and-watch", kList},
    {"get-info", kInfo},
    {"notify-registration", kNotify},
};

/// On which methods an action can be told to a driver, and to a plugin.
struct Rule {
  Action action;
  std::string_view name;
  Methods driver;
  Methods plugin;
};
constexpr Rule kRules[] = {
    {Action::kDelay, "delay", kClaims | kHandshake, kOfPlugins},
    {Action::kFail, "fail", kClaims | kHandshake, kOfPlugins},
    {Action::kFailClaim, "fail-claim", kClaims, 0},
    {Action::kHang, "hang", kClaims | kHandshake, kOfPlugins},
    {Action::kTooLittle, "too-little", kClaims, kPreferred | kAllocate},
    {Action::kUnknownClaim, "unknown-claim", kClaims, 0},
    {Action::kGarbageNames, "garbage-names", kClaims | kInfo,
     kAllocate | kInfo},
    {Action::kCrashBefore, "crash-before", kClaims | kHandshake, kOfPlugins},
    {Action::kCrashAfter, "crash-after", kClaims | kHandshake, kOfPlugins},
    {Action::kDropSocket, "drop-socket", kClaims, kDevices | kOptions | kList},
    {Action::kReRegister, "re-register", kClaims | kHandshake, kLife},
    {Action::kGarbageBytes, "garbage-bytes", 0, kOfPlugins},
    {Action::kUnknownDevice, "unknown-device", 0, kPreferred},
    {Action::kDuplicateIds, "duplicate-ids", 0, kListOnly},
    {Action::kUnknownHealth, "unknown-health", 0, kListOnly},
    {Action::kGarbageIds, "garbage-ids", 0, kListOnly},
    {Action::kGarbageNuma, "garbage-numa", 0, kListOnly},
    {Action::kSetDevices, "set-devices", 0, kLife},
    {Action::kFlapDevice, "flap-device", 0, kLife},
    {Action::kDropStream, "drop-stream", 0, kLife},
    {Action::kRestart, "restart", 0, kLife},
    {Action::kRollingUpgrade, "rolling-upgrade", 0, kLife},
    {Action::kTakeOver, "take-over", 0, kLife},
    {Action::kSetHealth, "set-health", kClaims, 0},
    {Action::kRemember, "remember", kPrepare, 0},
};

Methods MethodsOf(Fake fake, Action action) {
  for (const Rule& rule : kRules) {
    if (rule.action == action) {
      return fake == Fake::kDriver ? rule.driver : rule.plugin;
    }
  }
  return 0;
}

/// 0 for a name that is none.
Methods BitOf(std::string_view method) {
  for (const NamedMethod& each : kMethods) {
    if (each.name == method) return each.bit;
  }
  return 0;
}

Methods MethodsOf(Fake fake, const ScenarioStep& step) {
  const Methods all = MethodsOf(fake, step.action);
  if (step.method != "any") return all & BitOf(step.method);
  if ((all & kListByDefault) != 0) return kList;
  return all & (kClaims | kDevices);
}

/// What a call has to be about for the step to fit; empty: anything. Lists are
/// about all devices.
const std::string& SubjectOf(Fake fake, const ScenarioStep& step,
                             std::string_view method) {
  static const std::string anything;
  if (fake == Fake::kDriver) return step.claim;
  return method == "list-and-watch" ? anything : step.device;
}

/// The claims or devices of the call that the step names.
std::vector<std::size_t> Named(const std::string& subject,
                               const std::vector<std::string>& subjects) {
  std::vector<std::size_t> named;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    if (subject == subjects[i]) named.push_back(i);
  }
  return named;
}

}  // namespace

std::string_view NameOf(Action action) {
  for (const Rule& rule : kRules) {
    if (rule.action == action) return rule.name;
  }
  return "";
}

std::vector<Action> ActionsOf(Fake fake) {
  std::vector<Action> actions;
  for (const Rule& rule : kRules) {
    if (MethodsOf(fake, rule.action) != 0) actions.push_back(rule.action);
  }
  return actions;
}

std::vector<std::string_view> MethodsOf(Fake fake) {
  const Methods all = fake == Fake::kDriver ? kClaims | kHandshake : kOfPlugins;
  std::vector<std::string_view> names = {"any"};
  for (const NamedMethod& each : kMethods) {
    if ((each.bit & all) != 0) names.push_back(each.name);
  }
  return names;
}

bool GoesWith(Fake fake, Action action, std::string_view method) {
  ScenarioStep step;
  step.action = action;
  step.method = method;
  return MethodsOf(fake, step) != 0;
}

Scenario::Scenario(Fake fake, std::vector<ScenarioStep> steps) : fake_(fake) {
  for (ScenarioStep& step : steps) Add(std::move(step));
}

void Scenario::Add(ScenarioStep step) {
  const int left = std::max(step.times, 0);
  entries_.push_back({std::move(step), left});
}

std::vector<TakenStep> Scenario::Take(
    std::string_view method, const std::vector<std::string>& subjects) {
  std::vector<TakenStep> taken;
  std::vector<std::size_t> covered;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const ScenarioStep& step = entry->step;
    const std::string& subject = SubjectOf(fake_, step, method);
    std::vector<std::size_t> named = Named(subject, subjects);
    const bool about_claims =
        fake_ == Fake::kDriver && IsAboutClaims(step.action);
    bool fits = (MethodsOf(fake_, step) & BitOf(method)) != 0 &&
                (subject.empty() || !named.empty());
    if (about_claims && named.empty() && !subjects.empty()) {
      named.push_back(subjects.size() - 1);
    }
    fits = fits && (about_claims || taken.empty()) &&
           std::none_of(named.begin(), named.end(), [&](std::size_t claim) {
             return std::count(covered.begin(), covered.end(), claim) > 0;
           });
    if (!fits) {
      ++entry;
      continue;
    }
    if (!about_claims) named.clear();
    covered.insert(covered.end(), named.begin(), named.end());
    taken.push_back({step, std::move(named)});
    const bool used_up = entry->step.times > 0 && --entry->left == 0;
    entry = used_up ? entries_.erase(entry) : entry + 1;
    if (!about_claims) break;
  }
  return taken;
}

ScenarioStep StepForCall(const std::vector<TakenStep>& taken) {
  ScenarioStep whole;
  for (const TakenStep& each : taken) {
    if (each.claims.empty()) return each.step;
    whole.delay = std::max(whole.delay, each.step.delay);
  }
  return whole;
}

const ScenarioStep* StepForClaim(const std::vector<TakenStep>& taken,
                                 std::size_t claim) {
  for (const TakenStep& each : taken) {
    if (std::count(each.claims.begin(), each.claims.end(), claim) > 0) {
      return &each.step;
    }
  }
  return nullptr;
}

}  // namespace devmgr::testing
