// SPDX-License-Identifier: Apache-2.0
#include "podstatus/phase.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "podstatus/pod_facts.h"

namespace devmgr::podstatus {
namespace {

/// `r`: it runs. `0`, `1`: it has exited with that. `w`: it was not made yet.
/// `W`: it is to be made again after an exit with 1. `V`: the same after 0.
void PutContainer(const std::string& name, char what, KnownPod* known) {
  switch (what) {
    case 'r':
      known->run.containers.push_back(RunningContainer(name));
      break;
    case '0':
    case '1':
      known->run.containers.push_back(ExitedContainer(name, what - '0'));
      break;
    case 'V':
    case 'W': {
      ContainerRun created = RunningContainer(name, 1);
      created.state = RuntimeContainer::State::kCreated;
      known->run.containers.push_back(created);
      known->run.containers.push_back(ExitedContainer(name, what == 'W'));
      break;
    }
    default:
      break;
  }
}

struct PhaseCase {
  std::string policy;
  std::string init;      ///< Of each, as above.
  std::string sidecars;  ///< The same.
  std::string apps;
  std::string phase;
  std::string phase_when_deleted;  ///< When nothing runs any more.
};

std::string PhaseIn(const PhaseCase& one, bool deleted) {
  KnownPod known;
  known.pod.spec.restart_policy = one.policy;
  known.pod.spec.containers.clear();
  const auto put = [&](const std::string& all, const std::string& prefix,
                       const std::string& restart_policy, auto* list) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string name = prefix + std::to_string(i);
      list->push_back(NamedContainer(name, restart_policy));
      PutContainer(name, all[i], &known);
    }
  };
  put(one.init, "i", "", &known.pod.spec.init_containers);
  put(one.sidecars, "s", "Always", &known.pod.spec.init_containers);
  put(one.apps, "c", "", &known.pod.spec.containers);
  known.AddSandbox(!deleted);
  if (deleted) {
    known.pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z";
  }
  const auto status = known.Status();
  return status ? status->phase : "nothing";
}

TEST(PhaseTest, FollowsContainersAndTheRestartPolicy) {
  const std::vector<PhaseCase> cases = {
      // Apps alone.
      {"Always", "", "", "w", "Pending", "Failed"},
      {"Always", "", "", "r", "Running", ""},
      {"Always", "", "", "rw", "Pending", ""},
      {"Always", "", "", "r1", "Running", ""},
      {"Always", "", "", "0", "Running", "Succeeded"},
      {"Always", "", "", "1", "Running", "Failed"},
      {"Always", "", "", "W", "Running", ""},
      {"OnFailure", "", "", "w", "Pending", "Failed"},
      {"OnFailure", "", "", "r0", "Running", ""},
      {"OnFailure", "", "", "00", "Succeeded", "Succeeded"},
      {"OnFailure", "", "", "01", "Running", "Failed"},
      {"OnFailure", "", "", "0W", "Running", ""},
      {"Never", "", "", "w", "Pending", "Failed"},
      {"Never", "", "", "r1", "Running", ""},
      {"Never", "", "", "0", "Succeeded", "Succeeded"},
      {"Never", "", "", "00", "Succeeded", "Succeeded"},
      {"Never", "", "", "01", "Failed", "Failed"},
      {"Never", "", "", "11", "Failed", "Failed"},
      // Init containers.
      {"Always", "w", "", "w", "Pending", "Failed"},
      {"Always", "r", "", "w", "Pending", ""},
      {"Always", "1", "", "w", "Pending", "Failed"},
      {"Always", "W", "", "w", "Pending", ""},
      {"Always", "0", "", "r", "Running", ""},
      {"OnFailure", "1", "", "w", "Pending", "Failed"},
      {"OnFailure", "0", "", "0", "Succeeded", "Succeeded"},
      {"Never", "1", "", "w", "Failed", "Failed"},
      {"Never", "W", "", "w", "Failed", ""},
      {"Never", "00", "", "0", "Succeeded", "Succeeded"},
      {"Never", "01", "", "w", "Failed", "Failed"},
      {"Never", "0w", "", "w", "Pending", "Failed"},
      // Sidecars.
      {"Always", "", "w", "w", "Pending", "Failed"},
      {"Always", "", "r", "w", "Pending", ""},
      {"Always", "", "r", "r", "Running", ""},
      {"Always", "", "W", "r", "Running", ""},
      {"Never", "", "r", "0", "Running", ""},
      {"Never", "", "0", "0", "Succeeded", "Succeeded"},
      {"Never", "", "1", "0", "Succeeded", "Succeeded"},
      {"Never", "", "1", "1", "Failed", "Failed"},
      {"Never", "0", "r", "r", "Running", ""},
      {"Never", "1", "r", "w", "Pending", ""},
      {"Never", "1", "0", "w", "Failed", "Failed"},
  };
  for (const PhaseCase& one : cases) {
    const std::string name = one.policy + " init '" + one.init +
                             "' sidecars '" + one.sidecars + "' apps '" +
                             one.apps + "'";
    EXPECT_EQ(PhaseIn(one, false), one.phase) << name;
    if (one.phase_when_deleted.empty()) continue;
    EXPECT_EQ(PhaseIn(one, true), one.phase_when_deleted) << name;
  }
}

}  // namespace
}  // namespace devmgr::podstatus
