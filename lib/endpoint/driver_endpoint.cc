// SPDX-License-Identifier: Apache-2.0
//
// The public face of the room: the endpoint as a source of slices, and what it
// shows of claims.
#include <devmgr/driver_endpoint.h>
#include <devmgr/manifests.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>
#include <variant>

#include "api/names.h"
#include "common/atomic_file.h"
#include "common/executor.h"
#include "common/mutex.h"
#include "common/run_on.h"
#include "common/status.h"
#include "endpoint/endpoint.h"
#include "endpoint/node_uid.h"
#include "endpoint/object_journal.h"

namespace devmgr {
namespace {

using endpoint::DriverChange;
using endpoint::Endpoint;

using Slices = ObjectMap<ResourceSlice>;

/// Null for what is none: the endpoint has checked what it took.
std::shared_ptr<const ResourceSlice> SliceOf(const std::string& json,
                                             const std::string& node_name) {
  DecodedManifest decoded = DecodeManifest(json, "ResourceSlice", node_name);
  auto* slice = decoded.objects.size() == 1
                    ? std::get_if<ResourceSlice>(&decoded.objects[0].object)
                    : nullptr;
  if (slice == nullptr) return nullptr;
  return std::make_shared<const ResourceSlice>(std::move(*slice));
}

/// What drivers say of the devices of a claim; null for what is none.
std::shared_ptr<const ClaimDeviceStatus> StatusOf(
    const std::string& json, const std::string& node_name) {
  DecodedManifest decoded = DecodeManifest(json, "ResourceClaim", node_name);
  auto* claim = decoded.objects.size() == 1
                    ? std::get_if<ResourceClaim>(&decoded.objects[0].object)
                    : nullptr;
  if (claim == nullptr) return nullptr;
  return std::make_shared<const ClaimDeviceStatus>(
      ClaimDeviceStatus{claim->metadata.uid, std::move(claim->status.devices)});
}

ObjectName ClaimNameOf(const std::string& json) {
  const auto claim = nlohmann::json::parse(json, nullptr, false);
  static const nlohmann::json::json_pointer kMeta("/metadata");
  if (!claim.is_object() || !claim.contains(kMeta)) return {};
  const auto& metadata = claim.at(kMeta);
  return {metadata.value("namespace", ""), metadata.value("name", "")};
}

std::string NodeJson(const std::string& name, const std::string& uid) {
  const nlohmann::json node = {{"apiVersion", "v1"},
                               {"kind", "Node"},
                               {"metadata", {{"name", name}, {"uid", uid}}}};
  return node.dump();
}

/// The objects of one source, with the slices and the statuses of devices that
/// are set here.
class SourceWithSlices final : public ObjectSource {
 public:
  explicit SourceWithSlices(ObjectSource& objects) : objects_(objects) {
    Join();
  }

  /// Shows a claim to drivers, and then calls back.
  using ShowClaim = std::function<void(const ObjectName& claim,
                                       std::function<void(absl::Status)>)>;
  /// As long as there are no drivers, which `has_drivers` says, nothing is
  /// shown, and nothing waits for it.
  void OnRefresh(std::function<bool()> has_drivers, ShowClaim show) {
    has_drivers_ = std::move(has_drivers);
    show_ = std::move(show);
  }

  /// From here on it has what `objects` has. Before that it has nothing, as
  /// what is decided without the slices may be another thing than with them.
  void Open() {
    {
      MutexLock lock(mutex_);
      is_open_ = true;
    }
    OnChange();
  }

  void SetSlice(const std::string& name,
                std::shared_ptr<const ResourceSlice> slice) {
    {
      MutexLock lock(mutex_);
      if (slice == nullptr) {
        slices_.erase(ObjectName{"", name});
      } else {
        slices_.insert_or_assign(ObjectName{"", name}, std::move(slice));
      }
    }
    OnChange();
  }

  /// Null: there is none any more.
  void SetDeviceStatus(const ObjectName& claim,
                       std::shared_ptr<const ClaimDeviceStatus> status) {
    {
      MutexLock lock(mutex_);
      if (status != nullptr) {
        statuses_.insert_or_assign(claim, std::move(status));
      } else if (statuses_.erase(claim) == 0) {
        return;
      }
    }
    OnChange();
  }

  /// Those of other claims go: the claims have gone from the endpoint.
  void KeepDeviceStatusesOf(const std::map<ObjectName, std::string>& claims) {
    std::vector<ObjectName> gone;
    {
      MutexLock lock(mutex_);
      for (const auto& [name, status] : statuses_) {
        if (claims.count(name) == 0) gone.push_back(name);
      }
      for (const ObjectName& name : gone) statuses_.erase(name);
    }
    if (!gone.empty()) OnChange();
  }

  std::set<std::string> SliceNames() const {
    MutexLock lock(mutex_);
    std::set<std::string> names;
    for (const auto& [name, slice] : slices_) names.insert(name.name);
    return names;
  }

  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    MutexLock lock(mutex_);
    return joined_;
  }
  void Subscribe(std::function<void()> changed) override {
    {
      MutexLock lock(call_mutex_);
      changed_ = std::move(changed);
    }
    objects_.Subscribe([this] { OnChange(); });
    Join();
  }
  void Unsubscribe() override {
    objects_.Unsubscribe();
    MutexLock lock(call_mutex_);
    changed_ = nullptr;
  }
  std::string Describe() const override { return objects_.Describe(); }
  void Mark(const std::string& id, std::uint64_t watch) override {
    objects_.Mark(id, watch);
  }
  bool Refresh(ObjectKind kind, const ObjectName& name,
               std::function<void(const absl::Status&)> done) override {
    if (kind != ObjectKind::kResourceClaim || !has_drivers_()) {
      return objects_.Refresh(kind, name, std::move(done));
    }
    const auto show = [this, name, done] { show_(name, done); };
    const bool reads = objects_.Refresh(
        kind, name, [this, show, done](const absl::Status& status) {
          if (!status.ok()) return done(status);
          Join();
          show();
        });
    if (!reads) show();
    return true;
  }

 private:
  void Join() {
    // From the look at the objects on: of two calls the later one has the newer
    // objects, and stays. The source is called with no other lock held.
    MutexLock one_at_a_time(join_mutex_);
    const auto objects = objects_.Snapshot();
    auto joined = std::make_shared<ObjectSnapshot>(*objects);
    MutexLock lock(mutex_);
    if (!is_open_) {
      joined_ = std::make_shared<const ObjectSnapshot>();
      return;
    }
    if (joined->resource_slices.empty()) {
      joined->resource_slices = slices_;
    } else {
      for (const auto& [name, slice] : slices_) {
        joined->resource_slices.insert_or_assign(name, slice);
      }
    }
    joined->device_statuses = statuses_;
    joined_ = std::move(joined);
  }
  void OnChange() {
    Join();
    MutexLock lock(call_mutex_);
    if (changed_) changed_();
  }

  ObjectSource& objects_;
  std::function<bool()> has_drivers_;
  ShowClaim show_;
  Mutex join_mutex_;  ///< Of Join, and taken before the next one.
  mutable Mutex mutex_;
  bool is_open_ DEVMGR_GUARDED_BY(mutex_) = false;
  Slices slices_ DEVMGR_GUARDED_BY(mutex_);
  ObjectMap<ClaimDeviceStatus> statuses_ DEVMGR_GUARDED_BY(mutex_);
  std::shared_ptr<const ObjectSnapshot> joined_ DEVMGR_GUARDED_BY(mutex_);
  Mutex call_mutex_;
  std::function<void()> changed_ DEVMGR_GUARDED_BY(call_mutex_);
};

class NodeEndpoint final : public DriverEndpoint {
 public:
  NodeEndpoint(const DriverEndpointOptions& options, ObjectSource& objects)
      : options_(options),
        executor_(ThreadExecutor::Start("devmgr-claims")),
        source_(objects) {
    source_.OnRefresh(
        [this] { return !server().empty(); },
        [this](const ObjectName& claim,
               std::function<void(absl::Status)> done) {
          executor_->Post([this, claim, done] { done(ShowClaim(claim)); });
        });
  }
  ~NodeEndpoint() override {
    ShowObjectsOf(nullptr);
    Stop();
    executor_->Stop();
  }

  absl::Status Serve(std::shared_ptr<ObjectSpace> kept) override {
    if (kept == nullptr) {
      return InvalidArgumentError(
          "the endpoint for drivers needs a manager that keeps objects");
    }
    return RunOn(*executor_, [&]() -> absl::Status {
      endpoint::ObjectJournal::Options options;
      options.folder = options_.state_dir / "objects";
      options.drops_damaged = options_.recovery == Recovery::kLenient;
      if (options_.log) {
        options.log = [this](const std::string& text) {
          options_.log(LogLevel::kWarning, text);
        };
      }
      journal_ = std::make_unique<endpoint::ObjectJournal>(std::move(kept),
                                                           std::move(options));
      const absl::Status begun = Begin();
      if (!begun.ok()) {
        endpoint_.reset();
        journal_.reset();
        return begun;
      }
      source_.Open();
      SetServing(Serving::kYes);
      OnObjects();
      return absl::OkStatus();
    });
  }

  void Stop() override {
    SetServing(Serving::kEnded);
    RunOn(*executor_, [&] {
      {
        MutexLock lock(mutex_);
        server_.clear();
      }
      endpoint_.reset();
      journal_.reset();
    });
  }

  absl::StatusOr<std::filesystem::path> AddDriver(
      const std::string& driver) override {
    if (const std::string problem = api::CheckSubdomain(driver);
        !problem.empty()) {
      return InvalidArgumentError("driver '{}': {}", driver, problem);
    }
    AwaitServing();
    return RunOn(*executor_, [&]() -> absl::StatusOr<std::filesystem::path> {
      DEVMGR_RETURN_IF_ERROR(CheckServing());
      DEVMGR_RETURN_IF_ERROR(Remember(driver));
      if (endpoint_ == nullptr) {
        DEVMGR_RETURN_IF_ERROR(Listen({driver}));
      } else {
        DEVMGR_RETURN_IF_ERROR(endpoint_->AddDriver(driver));
      }
      if (options_.log) {
        options_.log(LogLevel::kInfo,
                     fmt::format("driver '{}' may publish at {}", driver,
                                 endpoint_->server()));
      }
      OnObjects();
      return options_.kubeconfig_dir / driver;
    });
  }

  absl::StatusOr<std::size_t> DeleteSlices(const std::string& driver) override {
    AwaitServing();
    return RunOn(*executor_, [&]() -> absl::StatusOr<std::size_t> {
      DEVMGR_RETURN_IF_ERROR(CheckServing());
      if (endpoint_ == nullptr) return 0;
      return endpoint_->DeleteSlices(driver);
    });
  }

  std::set<std::string> SliceNames() const override {
    return source_.SliceNames();
  }

  ObjectSource& source() override { return source_; }
  std::string server() const override {
    MutexLock lock(mutex_);
    return server_;
  }

  void ShowObjectsOf(
      std::function<std::shared_ptr<const ObjectSnapshot>()> objects) override {
    const bool is_set = objects != nullptr;
    RunOn(*executor_, [&] { objects_ = std::move(objects); });
    if (is_set) OnObjects();
  }
  void OnObjects() override {
    executor_->Post([this] {
      const absl::Status status = ShowClaims();
      const std::string problem = status.ok() ? "" : MessageOf(status);
      if (std::exchange(problem_, problem) == problem || problem.empty()) {
        return;
      }
      if (options_.log) options_.log(LogLevel::kWarning, problem);
    });
  }

 private:
  enum class Serving { kNotYet, kYes, kEnded };

  void SetServing(Serving serving) {
    MutexLock lock(mutex_);
    serving_ = serving;
    serving_changed_.NotifyAll();
  }
  /// For those that ask before the ledger is loaded.
  void AwaitServing() const {
    constexpr std::chrono::seconds kLongest{10};
    const auto deadline = std::chrono::steady_clock::now() + kLongest;
    MutexLock lock(mutex_);
    while (serving_ == Serving::kNotYet) {
      if (!serving_changed_.WaitUntil(mutex_, deadline)) return;
    }
  }
  absl::Status CheckServing() const {
    if (journal_ != nullptr) return absl::OkStatus();
    return UnavailableError(
        "the endpoint for drivers does not serve now: the ledger is still "
        "being loaded, or the program is stopping");
  }

  /// Without drivers, and without anything that one has published, there is
  /// nothing to serve.
  absl::Status Begin() {
    std::vector<std::string> drivers = options_.drivers;
    DEVMGR_RETURN_IF_ERROR(ReadAddedDrivers(&drivers));
    DEVMGR_ASSIGN_OR_RETURN(const bool is_used, journal_->IsUsed());
    if (drivers.empty() && !is_used) return absl::OkStatus();
    return Listen(drivers);
  }

  /// Those of AddDriver: each has an empty file of its name.
  std::filesystem::path AddedDrivers() const {
    return options_.state_dir / "drivers";
  }
  absl::Status Remember(const std::string& driver) const {
    std::error_code error;
    std::filesystem::create_directories(AddedDrivers(), error);
    if (error) {
      return UnavailableError("cannot make directory '{}': {}",
                              AddedDrivers().string(), error.message());
    }
    return WriteFileAtomically(AddedDrivers() / driver, "");
  }
  absl::Status ReadAddedDrivers(std::vector<std::string>* drivers) const {
    std::error_code error;
    std::filesystem::directory_iterator entry(AddedDrivers(), error);
    while (!error && entry != std::filesystem::directory_iterator()) {
      const std::string name = entry->path().filename().string();
      // What is left of a write that was cut short is no name of a driver.
      if (api::CheckSubdomain(name).empty() &&
          std::find(drivers->begin(), drivers->end(), name) == drivers->end()) {
        drivers->push_back(name);
      }
      entry.increment(error);
    }
    if (!error || error == std::errc::no_such_file_or_directory) {
      return absl::OkStatus();
    }
    return UnavailableError("cannot read directory '{}': {}",
                            AddedDrivers().string(), error.message());
  }

  /// On the executor: listens, and takes in what drivers have published.
  absl::Status Listen(const std::vector<std::string>& drivers) {
    DEVMGR_ASSIGN_OR_RETURN(
        const std::string uid,
        endpoint::KeepNodeUid(options_.state_dir / "node-uid"));
    endpoint::EndpointOptions options;
    options.node_name = options_.node_name;
    options.node_uid = uid;
    options.drivers = drivers;
    options.kubeconfig_dir = options_.kubeconfig_dir;
    options.address = options_.address;
    options.port = options_.port;
    options.on_change = [this](const DriverChange& change) { Take(change); };
    DEVMGR_ASSIGN_OR_RETURN(auto served, Endpoint::Start(options, *journal_));
    // Slices name it as their owner.
    DEVMGR_RETURN_IF_ERROR(
        served->SetObjects("Node", {NodeJson(options_.node_name, uid)}));
    for (const std::string& json : served->Objects("ResourceSlice")) {
      auto slice = SliceOf(json, options_.node_name);
      if (slice != nullptr) {
        const std::string name = slice->metadata.name;
        source_.SetSlice(name, std::move(slice));
      }
    }
    for (const std::string& json : served->Objects("ResourceClaim")) {
      auto status = StatusOf(json, options_.node_name);
      if (status != nullptr) {
        source_.SetDeviceStatus(ClaimNameOf(json), std::move(status));
      }
    }
    endpoint_ = std::move(served);
    MutexLock lock(mutex_);
    server_ = endpoint_->server();
    return absl::OkStatus();
  }

  /// On the thread of the endpoint: what a driver has written.
  void Take(const DriverChange& change) {
    switch (change.kind) {
      case DriverChange::Kind::kSlice:
        source_.SetSlice(change.name,
                         change.json.empty()
                             ? nullptr
                             : SliceOf(change.json, options_.node_name));
        break;
      case DriverChange::Kind::kClaimStatus:
        source_.SetDeviceStatus(
            {change.ns, change.name},
            change.json.empty() ? nullptr
                                : StatusOf(change.json, options_.node_name));
        break;
      case DriverChange::Kind::kEvent:
        break;
    }
  }

  /// Claims as they are now; what could not be shown is tried again with the
  /// next change, and before a prepare. None is taken away by objects that are
  /// not complete, as before the first scan: drivers unprepare what is gone.
  absl::Status ShowClaims() {
    if (!objects_ || endpoint_ == nullptr) return absl::OkStatus();
    const auto now = objects_();
    now->claims.VisitChangesSince(shown_, [&](const auto* was, const auto* is) {
      const ObjectName& name = (is != nullptr ? is : was)->first;
      // Drivers see no others.
      if (is != nullptr && is->second->status.allocation.has_value()) {
        claims_[name] = EncodeResourceClaim(*is->second);
        unshown_[name] = absl::OkStatus();
      } else if (claims_.erase(name) > 0) {
        unshown_.erase(name);
        has_stale_ = true;
      }
    });
    shown_ = now->claims;
    return Publish(now->IsComplete(ObjectKind::kResourceClaim));
  }

  /// The same before a prepare of that claim: others that are refused are not
  /// in its way.
  absl::Status ShowClaim(const ObjectName& name) {
    ShowClaims().IgnoreError();
    const auto refused = unshown_.find(name);
    return refused == unshown_.end() ? absl::OkStatus() : refused->second;
  }

  absl::Status Publish(bool is_complete) {
    const auto shown = [](const absl::Status& status) {
      return WithContext(status, "show claims to drivers");
    };
    absl::Status first;
    for (auto it = unshown_.begin(); it != unshown_.end();) {
      it->second = shown(endpoint_->PutObject(claims_.at(it->first)));
      first.Update(it->second);
      it = it->second.ok() ? unshown_.erase(it) : std::next(it);
    }
    if (!has_stale_ || !is_complete) return first;
    std::vector<std::string> all;
    for (const auto& [name, json] : claims_) all.push_back(json);
    first.Update(shown(endpoint_->SetObjects("ResourceClaim", all)));
    if (!first.ok()) return first;
    has_stale_ = false;
    source_.KeepDeviceStatusesOf(claims_);
    return absl::OkStatus();
  }

  const DriverEndpointOptions options_;
  const std::unique_ptr<ThreadExecutor> executor_;
  SourceWithSlices source_;
  mutable Mutex mutex_;
  mutable CondVar serving_changed_;
  Serving serving_ DEVMGR_GUARDED_BY(mutex_) = Serving::kNotYet;
  std::string server_ DEVMGR_GUARDED_BY(mutex_);
  // On the executor.
  std::unique_ptr<endpoint::ObjectJournal> journal_;  ///< Null: not serving.
  std::unique_ptr<Endpoint> endpoint_;  ///< Null: nothing is served.
  std::function<std::shared_ptr<const ObjectSnapshot>()> objects_;
  ObjectMap<ResourceClaim> shown_;            ///< Or being shown.
  std::map<ObjectName, std::string> claims_;  ///< As JSON.
  /// Of `claims_`: those that are still to be shown, and why they were refused.
  std::map<ObjectName, absl::Status> unshown_;
  /// Drivers may see claims that are not there, as from before the start.
  bool has_stale_ = true;
  std::string problem_;  ///< That was logged last.
};

}  // namespace

absl::StatusOr<std::unique_ptr<DriverEndpoint>> DriverEndpoint::Create(
    const DriverEndpointOptions& options, ObjectSource& objects) {
  if (options.node_name.empty()) {
    return InvalidArgumentError(
        "the endpoint for drivers needs the name of the node");
  }
  for (const std::string& driver : options.drivers) {
    if (const std::string problem = api::CheckSubdomain(driver);
        !problem.empty()) {
      return InvalidArgumentError("driver '{}': {}", driver, problem);
    }
  }
  return std::make_unique<NodeEndpoint>(options, objects);
}

}  // namespace devmgr
