// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/testing.h>

#include <string>
#include <string_view>
#include <vector>

namespace devmgr::testing {

/// As many devices a fake plugin can have.
inline constexpr int kMaxDevices = 1'000'000;

/// Whose steps they are.
enum class Fake { kDriver, kPlugin };

/// Name of an action in scenario files and events: `fail-claim`.
std::string_view NameOf(ScenarioStep::Action action);

/// What a fake can be made to do, and on which calls.
std::vector<ScenarioStep::Action> ActionsOf(Fake fake);
std::vector<std::string_view> MethodsOf(Fake fake);
/// True if a step with that method (also `any`) can ever be taken.
bool GoesWith(Fake fake, ScenarioStep::Action action, std::string_view method);

/// A step that a call uses up, and what it is about.
struct TakenStep {
  ScenarioStep step;
  /// Indices into the call's claims. Of a step about single claims: those it
  /// names, or the last one. Of all others: empty.
  std::vector<std::size_t> claims;
};

/// The steps of a fake, and how often each is still to be used. Thread-bound.
class Scenario {
 public:
  Scenario(Fake fake, std::vector<ScenarioStep> steps);

  void Add(ScenarioStep step);
  void Clear() { entries_.clear(); }

  /// The steps that a call of `method` takes: the first in order that fits it.
  /// `subjects` are names of claim objects, or IDs of devices. Steps about
  /// single claims go together as long as each is about another claim.
  std::vector<TakenStep> Take(std::string_view method,
                              const std::vector<std::string>& subjects);

 private:
  struct Entry {
    ScenarioStep step;
    int left = 0;  ///< 0 in steps that are never used up.
  };

  const Fake fake_;
  std::vector<Entry> entries_;
};

/// The first of the steps that is about the whole call, else an idle step that
/// carries the longest delay.
ScenarioStep StepForCall(const std::vector<TakenStep>& taken);
/// The step about this claim of the call; null when there is none.
const ScenarioStep* StepForClaim(const std::vector<TakenStep>& taken,
                                 std::size_t claim);

}  // namespace devmgr::testing
