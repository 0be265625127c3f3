// SPDX-License-Identifier: Apache-2.0
#include <devmgr/inspection.h>
#include <devmgr/version.h>

#include <utility>
#include <variant>

#include "checkpoint/convert.h"
#include "checkpoint/ledger_store.h"
#include "common/status.h"
#include "server/stopped_store_fsck.h"
#include "state/history.h"
#include "state/views.h"
#include "view/change_replay.h"
#include "view/device_changes.h"
#include "view/node_view.h"

namespace devmgr {
namespace {

absl::Status NeedsDaemon(std::string_view what) {
  return FailedPreconditionError(
      "{} needs a running daemon; a state directory holds only the ledger",
      what);
}

/// What the ledger alone says.
std::shared_ptr<const NodeView> ViewOf(
    const std::filesystem::path& state_dir,
    const checkpoint::StoreContents& contents) {
  view::Moment moment;
  moment.state = contents.state;
  view::Surroundings around;
  around.sequence = contents.state.seq;
  NodeInfo node;
  node.version = std::string(Version());
  node.state_dir = state_dir.string();
  node.recovery = checkpoint::RecoveryInfoOf(contents.report);
  around.node = std::make_shared<const NodeInfo>(std::move(node));
  return view::NodeViewOf(std::move(moment), std::move(around));
}

/// What the ledger of a stopped manager tells; read once, then a value.
class StateDirInspector : public Inspector {
 public:
  StateDirInspector(std::filesystem::path state_dir,
                    checkpoint::StoreContents contents)
      : state_dir_(std::move(state_dir)),
        contents_(std::move(contents)),
        view_(ViewOf(state_dir_, contents_)) {}

  absl::StatusOr<NodeInfo> Node() override { return view_->Node(); }
  absl::StatusOr<std::vector<PodInfo>> Pods() override { return view_->Pods(); }
  absl::StatusOr<std::vector<ClaimInfo>> Claims() override {
    return view_->Claims();
  }
  absl::StatusOr<std::vector<ClaimInfo>> ClaimsWithObjects() override {
    return NeedsDaemon("showing claims as objects");
  }
  absl::StatusOr<std::vector<DebtInfo>> Debts() override {
    return view_->Debts();
  }
  // Drivers and classes come and go with the daemon: the ledger has none.
  absl::StatusOr<std::vector<PluginInfo>> Plugins() override {
    return view_->Plugins();
  }
  absl::StatusOr<std::vector<DeviceClassInfo>> DeviceClasses() override {
    return view_->DeviceClasses();
  }
  absl::StatusOr<std::vector<SliceInfo>> Slices() override {
    return NeedsDaemon("showing slices");
  }
  absl::StatusOr<NumaInfo> Numa() override {
    return NeedsDaemon("showing NUMA nodes");
  }
  absl::StatusOr<PodAlignmentInfo> AlignmentOf(const PodUid& pod) override {
    return view_->AlignmentOf(pod);
  }
  absl::StatusOr<std::vector<DeviceInfo>> Devices() override {
    return view_->Devices();
  }
  absl::StatusOr<std::vector<ResourceInfo>> Resources() override {
    return view_->Resources();
  }
  absl::StatusOr<std::vector<DeviceHolderInfo>> DeviceHolders() override {
    return view_->DeviceHolders();
  }
  absl::StatusOr<std::vector<ForeignHolderInfo>> ForeignHolders() override {
    return view_->ForeignHolders();
  }

  absl::StatusOr<std::vector<SourceInfo>> Sources() override {
    return std::vector<SourceInfo>();
  }

  absl::StatusOr<std::vector<DecisionInfo>> History(
      std::uint64_t after) override {
    std::vector<DecisionInfo> decisions;
    for (const state::Batch& batch : contents_.history) {
      if (batch.seq > after) decisions.push_back(state::DecisionInfoOf(batch));
    }
    return decisions;
  }

  absl::StatusOr<LedgerView> StateAt(const LedgerPoint& at) override {
    const auto read = [&](std::uint64_t after, std::size_t most) {
      return state::BatchesAfter(contents_.history, after, most);
    };
    DEVMGR_ASSIGN_OR_RETURN(const state::StateThen then,
                            state::StateAt(contents_.state, at, read));
    return state::LedgerViewOf(then.state, then.time_ms);
  }

  absl::StatusOr<std::vector<EventInfo>> Events(
      std::uint64_t, std::chrono::milliseconds) override {
    return NeedsDaemon("reading events");
  }

  absl::StatusOr<DeviceChanges> Changes(const ChangesFrom& from,
                                        std::chrono::milliseconds) override {
    const state::State& now = contents_.state;
    const auto read = [&](std::uint64_t after, std::size_t most) {
      return state::BatchesAfter(contents_.history, after, most);
    };
    ChangeToken token{now.seq};
    if (std::holds_alternative<FromSnapshot>(from)) {
      return DeviceChanges{view::HoldingsOf(now, {}), token, false};
    }
    state::State then;
    if (const auto* given = std::get_if<ChangeToken>(&from)) {
      token = *given;
      DEVMGR_ASSIGN_OR_RETURN(then, view::StateOf(now, token, read));
    } else {
      DEVMGR_ASSIGN_OR_RETURN(then, state::EarliestState(now, read));
      token = ChangeToken{then.seq};
    }
    DEVMGR_ASSIGN_OR_RETURN(
        view::Replay replay,
        view::ReplayChanges(std::move(then), token, now.seq,
                            DeviceManager::kMostDeviceChanges, read));
    return std::move(replay.found);
  }

  absl::StatusOr<PodInfo> FindPod(const ObjectName& name) override {
    DEVMGR_ASSIGN_OR_RETURN(const state::PodRecord* const pod, Newest(name));
    return state::PodInfoOf(*pod, contents_.state);
  }

  absl::StatusOr<PodDevices> Resolve(const ObjectName& name) override {
    DEVMGR_ASSIGN_OR_RETURN(const state::PodRecord* const pod, Newest(name));
    if (pod->phase == state::PodPhase::kReady && pod->answer != nullptr) {
      return *pod->answer;
    }
    const PodInfo info = state::PodInfoOf(*pod, contents_.state);
    std::string why(PodStateName(info.state));
    if (!info.reason.empty()) why += ": " + info.reason;
    if (!info.message.empty()) why += ": " + info.message;
    return FailedPreconditionError("pod '{}' is {}", name.ToString(), why);
  }

  absl::StatusOr<std::uint64_t> WaitForChange(
      std::uint64_t, std::chrono::milliseconds) override {
    return NeedsDaemon("waiting");
  }
  absl::Status PreparePod(const ObjectName&) override {
    return NeedsDaemon("preparing a pod");
  }
  absl::Status ReleasePod(const ObjectName&) override {
    return NeedsDaemon("releasing a pod");
  }

  absl::Status ForceReleaseClaim(const ObjectName&,
                                 const std::string&) override {
    return NeedsDaemon("releasing a claim");
  }
  absl::Status HandOverResource(const ResourceName&, ResourceOwner,
                                const std::string&) override {
    return NeedsDaemon("handing over a resource");
  }
  absl::StatusOr<std::filesystem::path> DriverKubeconfig(
      const std::string&) override {
    return NeedsDaemon("letting a driver connect");
  }
  absl::StatusOr<std::size_t> DeleteSlices(const std::string&,
                                           const std::string&) override {
    return NeedsDaemon("deleting slices");
  }
  absl::Status FreeHolder(const std::string&, const std::string&) override {
    return NeedsDaemon("freeing a foreign holder");
  }
  absl::Status RecheckDevices(const std::string&, const std::string&,
                              const std::string&) override {
    return NeedsDaemon("rechecking devices");
  }
  absl::Status SetAuthority(Authority, const std::string&) override {
    return NeedsDaemon("handing over the authority");
  }
  absl::Status ConfirmSource(const std::string&) override {
    return NeedsDaemon("confirming a source");
  }

  absl::StatusOr<std::string> Simulate(
      const SimulationDocuments& /*request*/) override {
    return FailedPreconditionError(
        "a simulation needs a running daemon: devices and classes are not in "
        "the ledger");
  }

  absl::StatusOr<FsckReport> Fsck(const FsckRequest& request) override {
    if (request.mode == FsckMode::kRepair) {
      return server::RepairStoppedStore(state_dir_, request);
    }
    return server::CheckContents(contents_, request);
  }

 private:
  absl::StatusOr<const state::PodRecord*> Newest(const ObjectName& name) const {
    const state::PodRecord* newest = nullptr;
    for (const auto& [uid, pod] : contents_.state.pods) {
      if (pod->name != name) continue;
      if (newest == nullptr || pod->first_seen_seq > newest->first_seen_seq) {
        newest = pod.get();
      }
    }
    if (newest != nullptr) return newest;
    return NotFoundError("pod '{}' is not in the ledger of '{}'",
                         name.ToString(), state_dir_.string());
  }

  const std::filesystem::path state_dir_;
  const checkpoint::StoreContents contents_;
  const std::shared_ptr<const NodeView> view_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Inspector>> Inspector::OpenStateDir(
    const std::filesystem::path& state_dir) {
  DEVMGR_ASSIGN_OR_RETURN(checkpoint::StoreContents contents,
                          checkpoint::ReadStoppedStore(state_dir));
  return std::make_unique<StateDirInspector>(state_dir, std::move(contents));
}

absl::StatusOr<LedgerConversion> ConvertStateDir(
    const std::filesystem::path& state_dir, std::uint64_t format, bool apply) {
  DEVMGR_ASSIGN_OR_RETURN(auto conversion, checkpoint::ConvertStoppedStore(
                                               state_dir, format, apply));
  return LedgerConversion{conversion.batches, std::move(conversion.lost)};
}

}  // namespace devmgr
