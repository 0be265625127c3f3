// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cdi.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "claim/container_answer.h"
#include "fsck/fsck.h"

namespace devmgr::fsck {

inline constexpr char kBoot[] = "boot-1";
inline constexpr char kDriver[] = "d.example.com";
inline constexpr char kKind[] = "d.example.com/claim";
/// Claims of the ledger, one released, one that nobody knows.
inline constexpr char kHeld[] = "11111111-0000-4000-8000-000000000001";
inline constexpr char kReleased[] = "22222222-0000-4000-8000-000000000002";
inline constexpr char kStranger[] = "33333333-0000-4000-8000-000000000003";

inline state::ClaimRecord PreparedClaim(const std::string& uid,
                                        const std::string& name) {
  state::ClaimRecord claim;
  claim.uid = {uid};
  claim.name = {"default", name};
  claim.pods = {{"pod-uid"}};
  claim.drivers[kDriver] = {
      state::DriverPhase::kPrepared,
      {{{"r"}, "pool", "gpu-0", {kKind + ("=" + uid) + "-gpu-0"}, ""}},
      kBoot};
  return claim;
}

/// Spec files of one directory, to be changed at will.
struct SpecFiles {
  struct Spec {
    std::string kind;
    std::vector<std::string> devices;
  };
  struct File {
    std::string path;
    Spec spec;
    std::string problem;
    int priority = 0;
  };
  std::vector<File> files;
  std::vector<std::string> unread;

  CdiRegistry Registry() const {
    std::vector<CdiSpecFile> made;
    for (const File& file : files) {
      made.push_back({file.path, file.priority, nullptr, file.problem});
      if (!file.problem.empty()) continue;
      auto spec = std::make_shared<CdiSpec>();
      spec->kind = file.spec.kind;
      for (const std::string& device : file.spec.devices) {
        spec->devices.push_back({device, {}, {}});
      }
      made.back().spec = std::move(spec);
    }
    return CdiRegistry(std::move(made), unread);
  }
};

/// A node with a Ready pod `default/p`, whose claim `default/held` is defined
/// in a spec file, and with a claim in its history that was released.
class FsckTest : public ::testing::Test {
 protected:
  FsckTest() {
    state_.seq = 4;
    Put(PreparedClaim(kHeld, "held"));
    state::PodRecord pod;
    pod.uid = {"pod-uid"};
    pod.name = {"default", "p"};
    pod.phase = state::PodPhase::kReady;
    pod.claims = {{kHeld}};
    pod.needs = {{"c", false, {{{kHeld}, "r", ""}}}};
    pod.boot_id = kBoot;
    pod.answer = *claim::AnswerFor(
        pod, [this](const ClaimUid& uid) { return state_.FindClaim(uid); });
    Put(pod);
    state::Batch batch;
    batch.seq = 3;
    batch.decision.changes.push_back(
        state::PutClaim{std::make_shared<state::ClaimRecord>(
            PreparedClaim(kReleased, "released"))});
    history_ = {batch};
    AddSpec("/cdi/held.json", kKind, {std::string(kHeld) + "-gpu-0"});
    AddSpec("/cdi/static.json", "nvidia.com/gpu",
            {"0", "all", "GPU-" + std::string(kStranger)});
    running_.registered = {kDriver};
    running_.source_pods = {{{"pod-uid"}}};
  }

  template <typename Record>
  void Put(Record record) {
    state_.Put(std::make_shared<const Record>(std::move(record)));
  }
  void AddSpec(const std::string& path, const std::string& kind,
               const std::vector<std::string>& devices) {
    specs_.files.push_back({path, {kind, devices}, "", 0});
  }
  state::ClaimRecord Held() { return *state_.FindClaim({kHeld}); }
  state::PodRecord Pod() { return *state_.FindPod({"pod-uid"}); }
  void PutAllIntoAnotherBoot() {
    state::ClaimRecord claim = Held();
    claim.drivers[kDriver].boot_id = "boot-0";
    Put(claim);
    state::PodRecord pod = Pod();
    pod.boot_id = "boot-0";
    Put(pod);
  }

  std::vector<Finding> Run() {
    const CdiRegistry specs = specs_.Registry();
    return RunChecks(
        {state_, kBoot, Past(), &specs, &running_, {"/etc/cdi", "/cdi"}});
  }
  PastDevices Past() const {
    PastDevices past;
    for (const state::Batch& batch : history_) past.Learn(batch);
    return past;
  }
  /// The only finding there is, of this check.
  Finding Only(const std::string& check) {
    const std::vector<Finding> findings = Run();
    EXPECT_THAT(findings, ::testing::SizeIs(1)) << check;
    if (findings.size() != 1) return {};
    EXPECT_EQ(findings[0].shown.check, check);
    return findings[0];
  }

  state::State state_;
  std::vector<state::Batch> history_;
  SpecFiles specs_;
  RunningView running_;
};

}  // namespace devmgr::fsck
