// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/inspection.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace devmgr {

/// What fake inspectors show; shared by all connections of a test.
struct FakeNode {
  absl::Status health;  ///< Not OK: every call fails with it.
  NodeInfo node;
  std::vector<PodInfo> pods;
  std::vector<ClaimInfo> claims;
  std::vector<DebtInfo> debts;
  std::vector<PluginInfo> plugins;
  std::vector<DeviceInfo> devices;
  std::vector<ResourceInfo> resources;
  std::vector<DeviceClassInfo> classes;
  std::vector<SliceInfo> slices;
  absl::StatusOr<std::filesystem::path> kubeconfig = "/kubeconfig/d";
  std::vector<ForeignHolderInfo> holders;
  std::vector<DeviceHolderInfo> device_holders;
  std::vector<SourceInfo> sources;
  std::vector<DecisionInfo> history;
  std::function<absl::StatusOr<LedgerView>(const LedgerPoint&)> state_at;
  std::vector<EventInfo> events;
  std::function<absl::StatusOr<DeviceChanges>(const ChangesFrom&)> changes;
  absl::StatusOr<PodDevices> answer = absl::NotFoundError("no answer set");
  std::uint64_t version = 1;

  /// Called instead of letting time pass in a wait; may change this node.
  std::function<void(std::chrono::milliseconds)> on_wait;
  std::function<absl::Status(const ObjectName&)> on_prepare;
  std::function<absl::Status(const ObjectName&)> on_release;
  /// What an operator decided: `release ns/name: why`, `hand-over name: why`.
  std::vector<std::string> decisions;
  absl::Status decided = absl::OkStatus();

  NumaInfo numa;
  std::map<PodUid, PodAlignmentInfo> alignments;
  absl::StatusOr<std::string> simulation = std::string("{}");
  std::vector<SimulationDocuments> simulations;  ///< That were asked for.

  absl::StatusOr<FsckReport> fsck = FsckReport();
  std::vector<FsckRequest> fsck_requests;
};

/// An inspector over a value. One thread, as all inspectors.
class FakeInspector : public Inspector {
 public:
  /// `node` is borrowed.
  explicit FakeInspector(FakeNode& node) : node_(node) {}

  absl::StatusOr<NodeInfo> Node() override { return Get(&FakeNode::node); }
  absl::StatusOr<std::vector<PodInfo>> Pods() override {
    return Get(&FakeNode::pods);
  }
  absl::StatusOr<std::vector<ClaimInfo>> Claims() override {
    return Get(&FakeNode::claims);
  }
  absl::StatusOr<std::vector<ClaimInfo>> ClaimsWithObjects() override {
    return Get(&FakeNode::claims);
  }
  absl::StatusOr<std::vector<DebtInfo>> Debts() override {
    return Get(&FakeNode::debts);
  }
  absl::StatusOr<std::vector<PluginInfo>> Plugins() override {
    return Get(&FakeNode::plugins);
  }
  absl::StatusOr<std::vector<DeviceInfo>> Devices() override {
    return Get(&FakeNode::devices);
  }
  absl::StatusOr<std::vector<ResourceInfo>> Resources() override {
    return Get(&FakeNode::resources);
  }
  absl::StatusOr<std::vector<DeviceClassInfo>> DeviceClasses() override {
    return Get(&FakeNode::classes);
  }
  absl::StatusOr<std::vector<SliceInfo>> Slices() override {
    return Get(&FakeNode::slices);
  }
  absl::StatusOr<NumaInfo> Numa() override { return Get(&FakeNode::numa); }
  absl::StatusOr<PodAlignmentInfo> AlignmentOf(const PodUid& pod) override {
    if (!node_.health.ok()) return node_.health;
    const auto found = node_.alignments.find(pod);
    if (found == node_.alignments.end()) {
      return absl::NotFoundError("not judged by alignment");
    }
    return found->second;
  }
  absl::StatusOr<std::vector<ForeignHolderInfo>> ForeignHolders() override {
    return Get(&FakeNode::holders);
  }
  absl::StatusOr<std::vector<DeviceHolderInfo>> DeviceHolders() override {
    return Get(&FakeNode::device_holders);
  }
  absl::StatusOr<std::vector<SourceInfo>> Sources() override {
    return Get(&FakeNode::sources);
  }
  absl::StatusOr<std::vector<DecisionInfo>> History(
      std::uint64_t after) override {
    auto history = Get(&FakeNode::history);
    if (!history.ok()) return history;
    std::erase_if(*history, [&](const DecisionInfo& decision) {
      return decision.sequence <= after;
    });
    return history;
  }
  absl::StatusOr<LedgerView> StateAt(const LedgerPoint& at) override {
    if (!node_.health.ok()) return node_.health;
    return node_.state_at(at);
  }
  absl::StatusOr<std::vector<EventInfo>> Events(
      std::uint64_t after, std::chrono::milliseconds wait) override {
    std::vector<EventInfo> events = After(after);
    if (events.empty() && wait.count() > 0 && node_.on_wait) {
      node_.on_wait(wait);
      events = After(after);
    }
    if (!node_.health.ok()) return node_.health;
    return events;
  }
  absl::StatusOr<DeviceChanges> Changes(
      const ChangesFrom& from, std::chrono::milliseconds wait) override {
    if (!node_.health.ok()) return node_.health;
    auto changes = node_.changes(from);
    if (!changes.ok() || !changes->changes.empty() || wait.count() <= 0 ||
        !node_.on_wait) {
      return changes;
    }
    node_.on_wait(wait);
    if (!node_.health.ok()) return node_.health;
    return node_.changes(changes->next);
  }
  absl::StatusOr<PodInfo> FindPod(const ObjectName& name) override {
    if (!node_.health.ok()) return node_.health;
    const auto found =
        std::find_if(node_.pods.rbegin(), node_.pods.rend(),
                     [&](const PodInfo& pod) { return pod.name == name; });
    if (found == node_.pods.rend()) {
      return absl::NotFoundError("pod '" + name.ToString() + "' is not known");
    }
    return *found;
  }
  absl::StatusOr<PodDevices> Resolve(const ObjectName& name) override {
    const auto pod = FindPod(name);
    if (!pod.ok()) return pod.status();
    return node_.answer;
  }
  absl::StatusOr<std::uint64_t> WaitForChange(
      std::uint64_t version, std::chrono::milliseconds wait) override {
    if (node_.health.ok() && version == node_.version && wait.count() > 0 &&
        node_.on_wait) {
      node_.on_wait(wait);
    }
    return Get(&FakeNode::version);
  }
  absl::Status PreparePod(const ObjectName& name) override {
    if (!node_.health.ok()) return node_.health;
    return node_.on_prepare(name);
  }
  absl::Status ReleasePod(const ObjectName& name) override {
    if (!node_.health.ok()) return node_.health;
    return node_.on_release(name);
  }
  absl::Status ForceReleaseClaim(const ObjectName& claim,
                                 const std::string& reason) override {
    if (!node_.health.ok()) return node_.health;
    node_.decisions.push_back("release " + claim.ToString() + ": " + reason);
    return node_.decided;
  }
  absl::Status HandOverResource(const ResourceName& resource,
                                ResourceOwner owner,
                                const std::string& reason) override {
    if (!node_.health.ok()) return node_.health;
    const char* to = owner == ResourceOwner::kDevicePlugin  ? "plugin"
                     : owner == ResourceOwner::kDeviceClass ? "class"
                                                            : "automatic";
    node_.decisions.push_back("hand-over " + resource.value + " to " + to +
                              ": " + reason);
    return node_.decided;
  }
  absl::Status SetAuthority(Authority to, const std::string& reason) override {
    if (!node_.health.ok()) return node_.health;
    node_.decisions.push_back("authority " + std::string(AuthorityName(to)) +
                              ": " + reason);
    return node_.decided;
  }
  absl::Status FreeHolder(const std::string& container_id,
                          const std::string& reason) override {
    if (!node_.health.ok()) return node_.health;
    node_.decisions.push_back("free holder " + container_id + ": " + reason);
    return node_.decided;
  }
  absl::Status RecheckDevices(const std::string& name,
                              const std::string& device,
                              const std::string& reason) override {
    if (!node_.health.ok()) return node_.health;
    node_.decisions.push_back("recheck " + name + " " + device + ": " + reason);
    return node_.decided;
  }
  absl::Status ConfirmSource(const std::string& reason) override {
    if (!node_.health.ok()) return node_.health;
    node_.decisions.push_back("confirm source: " + reason);
    return node_.decided;
  }
  absl::StatusOr<std::filesystem::path> DriverKubeconfig(
      const std::string& driver) override {
    if (!node_.health.ok()) return node_.health;
    node_.decisions.push_back("kubeconfig of " + driver);
    return node_.kubeconfig;
  }
  absl::StatusOr<std::size_t> DeleteSlices(const std::string& driver,
                                           const std::string& reason) override {
    if (!node_.health.ok()) return node_.health;
    node_.decisions.push_back("delete slices of " + driver + ": " + reason);
    if (!node_.decided.ok()) return node_.decided;
    return static_cast<std::size_t>(
        std::erase_if(node_.slices, [&](const SliceInfo& slice) {
          return slice.driver == driver && slice.origin == "endpoint";
        }));
  }
  absl::StatusOr<std::string> Simulate(
      const SimulationDocuments& request) override {
    node_.simulations.push_back(request);
    return node_.simulation;
  }
  absl::StatusOr<FsckReport> Fsck(const FsckRequest& request) override {
    node_.fsck_requests.push_back(request);
    return node_.fsck;
  }

 private:
  template <typename T>
  absl::StatusOr<T> Get(T FakeNode::*member) const {
    if (!node_.health.ok()) return node_.health;
    return node_.*member;
  }

  std::vector<EventInfo> After(std::uint64_t sequence) const {
    std::vector<EventInfo> events = node_.events;
    std::erase_if(events, [&](const EventInfo& event) {
      return event.sequence <= sequence;
    });
    return events;
  }

  FakeNode& node_;
};

}  // namespace devmgr
