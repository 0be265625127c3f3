// SPDX-License-Identifier: Apache-2.0
//
// A small node as the ledger knows it, for tests of the projection and of the
// stores: a pod `default/a` and a claim `default/gpu` of driver
// `d.example.com`.
#pragma once

#include <devmgr/manifests.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "state/decision.h"

namespace devmgr::state {

inline const PodUid kPodA{"pod-a"};
inline const PodUid kPodB{"pod-b"};
inline const ClaimUid kGpu{"claim-gpu"};
inline constexpr const char* kDriver = "d.example.com";
inline constexpr const char* kBoot = "boot-1";

inline ClaimRecord MakeClaim(DriverPhase phase, std::set<PodUid> pods) {
  ClaimRecord claim;
  claim.uid = kGpu;
  claim.name = {"default", "gpu"};
  claim.pods = std::move(pods);
  DriverRecord& driver = claim.drivers[kDriver];
  driver.phase = phase;
  if (phase == DriverPhase::kPrepared) {
    driver.boot_id = kBoot;
    driver.devices = {
        {{"req"}, "pool", "gpu-0", {"example.com/gpu=gpu-0"}, "share-1"}};
  }
  return claim;
}

inline PodRecord MakePod(const PodUid& uid, const std::string& name,
                         PodPhase phase) {
  PodRecord pod;
  pod.uid = uid;
  pod.name = {"default", name};
  pod.first_seen_ms = 1'000;
  pod.first_seen_seq = 1;
  pod.phase = phase;
  if (phase == PodPhase::kRejected) {
    pod.reason = "ClaimNotOwned";
    pod.message = "claim 'default/gpu' is owned by another pod";
  }
  if (phase == PodPhase::kPreparing || phase == PodPhase::kReady) {
    pod.claims = {kGpu};
    pod.needs = {{"init", true, {}},
                 {"main", false, {{kGpu, "req", "example.com/gpu"}}}};
  }
  if (phase == PodPhase::kReleasing) pod.claims = {kGpu};
  if (phase == PodPhase::kReady) {
    auto answer = std::make_shared<PodDevices>();
    answer->name = pod.name;
    answer->uid = uid;
    ContainerDevices main;
    main.name = "main";
    main.cdi_devices = {
        {"example.com/gpu=gpu-0",
         {"gpu", "req", kDriver, "pool", "gpu-0", "example.com/gpu"}}};
    ContainerDevices init;
    init.name = "init";
    init.init = true;
    answer->containers = {init, main};
    pod.answer = std::move(answer);
    pod.boot_id = kBoot;
  }
  return pod;
}

inline IdentityRecord MakeIdentity(const std::string& name,
                                   const std::string& uid) {
  return {"Pod", {"default", name}, uid, 1'000};
}

inline Change Put(PodRecord pod) {
  return PutPod{std::make_shared<const PodRecord>(std::move(pod))};
}
inline Change Put(ClaimRecord claim) {
  return PutClaim{std::make_shared<const ClaimRecord>(std::move(claim))};
}
inline Change Put(IdentityRecord identity) {
  return PutIdentity{
      std::make_shared<const IdentityRecord>(std::move(identity))};
}

inline Change Put(ResourceRecord resource) {
  return PutResource{
      std::make_shared<const ResourceRecord>(std::move(resource))};
}

inline Change Put(SourceRecord source) {
  return PutSource{std::make_shared<const SourceRecord>(std::move(source))};
}
inline Change Put(HealthRecord health) {
  return PutHealth{std::make_shared<const HealthRecord>(std::move(health))};
}

inline Change Put(ForeignHolderRecord holder) {
  return PutHolder{
      std::make_shared<const ForeignHolderRecord>(std::move(holder))};
}

inline Change Put(LocalClaimRecord claim) {
  return PutLocalClaim{
      std::make_shared<const LocalClaimRecord>(std::move(claim))};
}

inline Change Put(AuthorityRecord authority) {
  return PutAuthority{
      std::make_shared<const AuthorityRecord>(std::move(authority))};
}

/// Of devices of `example.com/tpu`; its pod is `default/stray`.
inline ForeignHolderRecord MakeHolder(const std::string& id,
                                      const std::vector<std::string>& devices) {
  ForeignHolderRecord holder;
  holder.id.value = id;
  holder.endpoint = "/run/runtime.sock";
  holder.pod_uid.value = "pod-stray";
  holder.pod = {"default", "stray"};
  holder.container = "main";
  for (const std::string& device : devices) {
    holder.devices.emplace("example.com/tpu", device);
  }
  holder.since_ms = 9;
  holder.why = "the ledger has no pod with its UID";
  return holder;
}

/// A claim of the extended resources of `default/a`, allocated here: device
/// `gpu-UID`, which uses a counter.
inline LocalClaimRecord MakeLocalClaim(const std::string& uid) {
  ResourceClaim claim;
  claim.metadata.name = "a-extended-resources-" + uid;
  claim.metadata.ns = "default";
  claim.metadata.uid = uid;
  claim.metadata.annotations = {
      {"resource.kubernetes.io/extended-resource-claim", "true"}};
  claim.metadata.finalizers = {"resource.kubernetes.io/delete-protection"};
  claim.metadata.owner_references = {
      {"v1", "Pod", "a", kPodA.value, /*controller=*/true}};
  DeviceSubRequest exactly;
  exactly.name = "container-0-request-0";
  exactly.device_class_name = "gpu.example.com";
  exactly.allocation_mode = "ExactCount";
  exactly.count = 1;
  claim.spec.requests = {{exactly.name, exactly, false, false, {}}};
  AllocationResult& allocation = claim.status.allocation.emplace();
  DeviceRequestAllocationResult& result = allocation.results.emplace_back();
  result.request = exactly.name;
  result.driver = kDriver;
  result.pool = "pool";
  result.device = "gpu-" + uid;
  claim.status.reserved_for = {{"", "pods", "a", kPodA.value}};
  // As it is read: with the handles that old drivers would be called with.
  claim = std::get<ResourceClaim>(
      DecodeManifest(EncodeResourceClaim(claim), "test").objects.at(0).object);
  return {
      .uid = {uid},
      .origin = ClaimOrigin::kExtendedResources,
      .object = std::make_shared<const ResourceClaim>(std::move(claim)),
      .counters = {{{kDriver, "pool", "gpu-" + uid},
                    {{{"memory", "slices"}, Quantity{2, 0, "2"}}}}},
      .pod = kPodA,
      .mappings = {{"main", "example.com/gpu", exactly.name}},
  };
}

/// Devices of `example.com/tpu` in container `main`.
inline DeviceHold MakeHold(
    const std::vector<std::string>& devices,
    device::ReservationPhase phase = device::ReservationPhase::kCommitted) {
  DeviceHold hold;
  hold.container = "main";
  hold.resource = "example.com/tpu";
  hold.phase = phase;
  for (const std::string& id : devices) hold.devices.push_back({id, {0, 1}});
  if (phase == device::ReservationPhase::kCommitted) {
    hold.edits.env = {{"TPUS", "all"}};
    hold.edits.mounts = {{"/in", "/out", true}};
    hold.edits.devices = {{"/dev/tpu", "/dev/tpu0", "rw"}};
    hold.edits.annotations = {{"a", "b"}};
    hold.edits.cdi_devices = {"example.com/tpu=0"};
  }
  return hold;
}

inline Batch MakeBatch(std::uint64_t seq, DecisionKind kind,
                       std::vector<Change> changes) {
  Batch batch;
  batch.seq = seq;
  batch.time_ms = 1'700'000'000'000 + static_cast<std::int64_t>(seq);
  batch.decision.kind = kind;
  batch.decision.pods = {{"default", "a"}};
  batch.decision.claims = {{"default", "gpu"}};
  batch.decision.message = "decision of a test";
  batch.decision.changes = std::move(changes);
  return batch;
}

/// The life of pod `default/a` until it is Ready, with the identity it got.
inline std::vector<Batch> PreparedPodBatches() {
  return {
      MakeBatch(1, DecisionKind::kIdentity, {Put(MakeIdentity("a", "pod-a"))}),
      MakeBatch(2, DecisionKind::kSeen,
                {Put(MakePod(kPodA, "a", PodPhase::kWaiting))}),
      MakeBatch(3, DecisionKind::kPrepareIntent,
                {Put(MakeClaim(DriverPhase::kPreparing, {kPodA})),
                 Put(MakePod(kPodA, "a", PodPhase::kPreparing))}),
      MakeBatch(4, DecisionKind::kPrepareResult,
                {Put(MakeClaim(DriverPhase::kPrepared, {kPodA})),
                 Put(MakePod(kPodA, "a", PodPhase::kReady))}),
  };
}

/// How it ends.
inline std::vector<Batch> ReleasedPodBatches() {
  return {
      MakeBatch(5, DecisionKind::kUnprepareIntent,
                {Put(MakeClaim(DriverPhase::kUnpreparing, {kPodA})),
                 Put(MakePod(kPodA, "a", PodPhase::kReleasing))}),
      MakeBatch(6, DecisionKind::kUnprepareResult,
                {EraseClaim{kGpu}, Put([] {
                   PodRecord pod = MakePod(kPodA, "a", PodPhase::kReleasing);
                   pod.claims.clear();
                   return pod;
                 }())}),
      MakeBatch(7, DecisionKind::kRelease,
                {ErasePod{kPodA}, EraseIdentity{"Pod", {"default", "a"}}}),
  };
}

}  // namespace devmgr::state
