// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claim/pod_plan.h"
#include "claim/prepare_intent.h"
#include "claim/release.h"
#include "support/builders.h"
#include "support/status_matchers.h"
#include "support/test_ledger.h"

namespace devmgr::claim {

using Kind = Verdict::Kind;

/// Calls that a driver is due: per driver, the UIDs of the claims it is told.
using Calls = std::map<std::string, std::set<std::string>>;

/// Takes pods through their life in the order of the manager, with calls to
/// drivers left to the test.
class ClaimTest : public testing::Test {
 protected:
  static PodIdentity IdentityOf(const Pod& pod) {
    return {PodUid{pod.metadata.uid}, pod.metadata.FullName()};
  }

  const state::State& state() const { return ledger_.state(); }

  /// Judges by the objects, and books what is admitted.
  Verdict Prepare(const Pod& pod) {
    const PlanResult planned = PlanPod(pod, objects_, options_);
    if (planned.verdict.kind != Kind::kAdmit) return planned.verdict;
    return Book(pod, &planned.plan);
  }

  Verdict Book(const Pod& pod, const PodPlan* plan) {
    const auto booked =
        BookPod(state(), IdentityOf(pod), 1'000, plan, ledger_.boot_id());
    EXPECT_THAT(booked, IsOk());
    if (!booked.ok()) return {Kind::kReject, "BookPod failed", "", {}};
    if (booked->verdict.kind != Kind::kAdmit) {
      EXPECT_TRUE(booked->decision.changes.empty());
    }
    ledger_.Take(booked->decision);
    return booked->verdict;
  }

  /// What has to be sent now. The manager sends one call per driver.
  Calls Due(state::DriverPhase phase) const {
    Calls calls;
    for (const auto& [uid, claim] : state().claims) {
      for (const auto& [driver, part] : claim->drivers) {
        if (part.phase == phase) calls[driver].insert(uid.value);
      }
    }
    return calls;
  }
  Calls ToPrepare() const { return Due(state::DriverPhase::kPreparing); }
  Calls ToUnprepare() const { return Due(state::DriverPhase::kUnpreparing); }

  /// The driver answers that it prepared these claims, one device each, named
  /// after claim and driver.
  void Answers(const std::string& driver, const std::set<std::string>& claims) {
    std::map<ClaimUid, std::vector<state::PreparedDevice>> prepared;
    for (const std::string& uid : claims) {
      prepared[ClaimUid{uid}] = {
          Prepared("dev-1", {driver + "/x=" + uid}, {"r"})};
    }
    Answers(driver, prepared);
  }
  void Answers(
      const std::string& driver,
      const std::map<ClaimUid, std::vector<state::PreparedDevice>>& prepared) {
    ledger_.Take(RecordPrepared(state(), driver, prepared, ledger_.boot_id()));
  }
  void Unprepared(const std::string& driver,
                  const std::set<std::string>& claims,
                  const std::set<PodUid>& ending = {}) {
    std::set<ClaimUid> uids;
    for (const std::string& uid : claims) uids.insert(ClaimUid{uid});
    ledger_.Take(RecordUnprepared(state(), driver, uids, {}, ending));
  }
  void AnswerAll() {
    for (const auto& [driver, claims] : ToPrepare()) Answers(driver, claims);
    for (const auto& [driver, claims] : ToUnprepare()) {
      Unprepared(driver, claims);
    }
  }

  /// False when the pod had nothing to give up.
  bool Release(const Pod& pod) {
    return ledger_.Take(BeginRelease(state(), PodUid{pod.metadata.uid}));
  }
  /// The same, of a pod that is forgotten with its last claim.
  bool End(const Pod& pod) {
    ReleaseTerms terms;
    terms.ends = true;
    return ledger_.Take(BeginRelease(state(), PodUid{pod.metadata.uid}, terms));
  }
  absl::Status Forget(const Pod& pod) {
    const auto decision = ForgetPod(state(), PodUid{pod.metadata.uid});
    if (decision.ok()) ledger_.Take(*decision);
    return decision.status();
  }

  const state::PodRecord& PodOf(const Pod& pod) const {
    const auto* record = state().FindPod(PodUid{pod.metadata.uid});
    static const state::PodRecord kNone;
    EXPECT_NE(record, nullptr) << pod.metadata.uid;
    return record == nullptr ? kNone : *record;
  }
  const state::ClaimRecord& ClaimOf(const std::string& uid) const {
    const auto* record = state().FindClaim(ClaimUid{uid});
    static const state::ClaimRecord kNone;
    EXPECT_NE(record, nullptr) << uid;
    return record == nullptr ? kNone : *record;
  }
  bool Knows(const std::string& claim) const {
    return state().FindClaim(ClaimUid{claim}) != nullptr;
  }
  std::set<std::string> PodsOf(const std::string& claim) const {
    std::set<std::string> pods;
    for (const PodUid& pod : ClaimOf(claim).pods) pods.insert(pod.value);
    return pods;
  }

  /// The CDI names of a container, as resolve would answer.
  std::vector<std::string> CdiOf(const Pod& pod,
                                 const std::string& container) const {
    std::vector<std::string> names;
    const auto& answer = PodOf(pod).answer;
    if (answer == nullptr) return {"no answer"};
    for (const ContainerDevices& devices : answer->containers) {
      if (devices.name != container) continue;
      for (const CdiDevice& device : devices.cdi_devices) {
        names.push_back(device.name);
      }
    }
    return names;
  }

  TestLedger ledger_;
  ObjectSnapshot objects_;
  PlanOptions options_;
};

}  // namespace devmgr::claim
