// SPDX-License-Identifier: Apache-2.0
#include <devmgr/control/v1/control.pb.h>
#include <devmgr/inspection.h>

#include <algorithm>
#include <future>
#include <utility>

#include "common/peer_status.h"
#include "common/status.h"
#include "rpc/connection.h"
#include "rpc/message.h"
#include "server/convert.h"
#include "server/simulations.h"

namespace devmgr {
namespace {

using server::FromProto;
using server::ToProto;
namespace pb = server::pb;
namespace cpb = control::v1;

constexpr std::string_view kController = "/devmgr.control.v1.Controller/";

/// How long one long poll asks the server to hold it; longer waits repeat it.
constexpr std::chrono::milliseconds kPoll{30'000};

template <typename Info, typename Repeated>
std::vector<Info> GetAll(const Repeated& from) {
  std::vector<Info> infos;
  infos.reserve(static_cast<std::size_t>(from.size()));
  for (const auto& message : from) infos.push_back(FromProto(message));
  return infos;
}

class ConnectedInspector : public Inspector {
 public:
  ConnectedInspector(std::filesystem::path endpoint,
                     std::chrono::milliseconds timeout,
                     std::unique_ptr<rpc::Runtime> runtime,
                     std::unique_ptr<rpc::Connection> connection)
      : endpoint_(std::move(endpoint)),
        timeout_(timeout),
        runtime_(std::move(runtime)),
        connection_(std::move(connection)) {}

  absl::StatusOr<NodeInfo> Node() override {
    DEVMGR_ASSIGN_OR_RETURN(const auto info,
                            Call<pb::NodeInfo>("Node", pb::NodeRequest()));
    return FromProto(info);
  }

  absl::StatusOr<std::vector<PodInfo>> Pods() override {
    DEVMGR_ASSIGN_OR_RETURN(const auto response,
                            Call<pb::PodsResponse>("Pods", pb::PodsRequest()));
    std::vector<PodInfo> pods;
    for (const auto& message : response.pods()) {
      DEVMGR_ASSIGN_OR_RETURN(PodInfo pod, FromProto(message));
      pods.push_back(std::move(pod));
    }
    return pods;
  }

  absl::StatusOr<std::vector<ClaimInfo>> Claims() override {
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        Call<pb::ClaimsResponse>("Claims", pb::ClaimsRequest()));
    return GetAll<ClaimInfo>(response.claims());
  }

  absl::StatusOr<std::vector<ClaimInfo>> ClaimsWithObjects() override {
    pb::ClaimsRequest request;
    request.set_objects(true);
    DEVMGR_ASSIGN_OR_RETURN(const auto response,
                            Call<pb::ClaimsResponse>("Claims", request));
    return GetAll<ClaimInfo>(response.claims());
  }

  absl::StatusOr<std::vector<DebtInfo>> Debts() override {
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        Call<pb::DebtsResponse>("Debts", pb::DebtsRequest()));
    return GetAll<DebtInfo>(response.debts());
  }

  absl::StatusOr<std::vector<PluginInfo>> Plugins() override {
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        Call<pb::PluginsResponse>("Plugins", pb::PluginsRequest()));
    return GetAll<PluginInfo>(response.plugins());
  }

  absl::StatusOr<std::vector<DeviceInfo>> Devices() override {
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        Call<pb::DevicesResponse>("Devices", pb::DevicesRequest()));
    return GetAll<DeviceInfo>(response.devices());
  }

  absl::StatusOr<std::vector<ResourceInfo>> Resources() override {
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        Call<pb::ResourcesResponse>("Resources", pb::ResourcesRequest()));
    return GetAll<ResourceInfo>(response.resources());
  }

  absl::StatusOr<std::vector<DeviceClassInfo>> DeviceClasses() override {
    DEVMGR_ASSIGN_OR_RETURN(const auto response,
                            Call<pb::DeviceClassesResponse>(
                                "DeviceClasses", pb::DeviceClassesRequest()));
    return GetAll<DeviceClassInfo>(response.device_classes());
  }

  absl::StatusOr<std::vector<SliceInfo>> Slices() override {
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        Call<pb::SlicesResponse>("Slices", pb::SlicesRequest()));
    return GetAll<SliceInfo>(response.slices());
  }

  absl::StatusOr<NumaInfo> Numa() override {
    DEVMGR_ASSIGN_OR_RETURN(const auto info,
                            Call<pb::NumaInfo>("Numa", pb::NumaRequest()));
    return FromProto(info);
  }

  absl::StatusOr<PodAlignmentInfo> AlignmentOf(const PodUid& pod) override {
    pb::AlignmentRequest request;
    request.set_pod_uid(pod.value);
    DEVMGR_ASSIGN_OR_RETURN(const auto info,
                            Call<pb::PodAlignment>("Alignment", request));
    return FromProto(info);
  }

  absl::StatusOr<std::vector<ForeignHolderInfo>> ForeignHolders() override {
    DEVMGR_ASSIGN_OR_RETURN(const auto response,
                            Call<pb::ForeignHoldersResponse>(
                                "ForeignHolders", pb::ForeignHoldersRequest()));
    return GetAll<ForeignHolderInfo>(response.holders());
  }

  absl::StatusOr<std::vector<DeviceHolderInfo>> DeviceHolders() override {
    DEVMGR_ASSIGN_OR_RETURN(const auto response,
                            Call<pb::DeviceHoldersResponse>(
                                "DeviceHolders", pb::DeviceHoldersRequest()));
    return GetAll<DeviceHolderInfo>(response.holders());
  }

  absl::StatusOr<std::vector<SourceInfo>> Sources() override {
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        Call<pb::SourcesResponse>("Sources", pb::SourcesRequest()));
    return GetAll<SourceInfo>(response.sources());
  }

  absl::StatusOr<std::vector<DecisionInfo>> History(
      std::uint64_t after) override {
    std::vector<DecisionInfo> history;
    for (;;) {
      pb::HistoryRequest request;
      request.set_after(after);
      DEVMGR_ASSIGN_OR_RETURN(const auto response,
                              Call<pb::HistoryResponse>("History", request));
      for (const auto& decision : response.decisions()) {
        // A server that does not go on must not keep us here.
        if (decision.sequence() <= after) return history;
        after = decision.sequence();
        history.push_back(FromProto(decision));
      }
      if (response.decisions().empty()) return history;
    }
  }

  absl::StatusOr<LedgerView> StateAt(const LedgerPoint& at) override {
    DEVMGR_ASSIGN_OR_RETURN(const auto view,
                            Call<pb::LedgerView>("StateAt", ToProto(at)));
    return FromProto(view);
  }

  absl::StatusOr<std::vector<EventInfo>> Events(
      std::uint64_t after, std::chrono::milliseconds wait) override {
    pb::EventsRequest request;
    request.set_after(after);
    for (;;) {
      const auto slice = std::clamp(wait, std::chrono::milliseconds(0), kPoll);
      request.set_wait_ms(slice.count());
      DEVMGR_ASSIGN_OR_RETURN(
          const auto response,
          Call<pb::EventsResponse>("Events", request, slice));
      wait -= slice;
      if (response.events_size() > 0 || wait.count() <= 0) {
        return GetAll<EventInfo>(response.events());
      }
    }
  }

  absl::StatusOr<DeviceChanges> Changes(
      const ChangesFrom& from, std::chrono::milliseconds wait) override {
    pb::ChangesRequest request = ToProto(from);
    for (;;) {
      const auto slice = std::clamp(wait, std::chrono::milliseconds(0), kPoll);
      request.set_wait_ms(slice.count());
      DEVMGR_ASSIGN_OR_RETURN(
          const auto response,
          Call<pb::ChangesResponse>("Changes", request, slice));
      wait -= slice;
      if (response.changes_size() > 0 || wait.count() <= 0) {
        return FromProto(response);
      }
      *request.mutable_after() = response.next();
    }
  }

  absl::StatusOr<PodInfo> FindPod(const ObjectName& name) override {
    pb::FindPodRequest request;
    *request.mutable_name() = ToProto(name);
    DEVMGR_ASSIGN_OR_RETURN(const auto info,
                            Call<pb::PodInfo>("FindPod", request));
    return FromProto(info);
  }

  absl::StatusOr<PodDevices> Resolve(const ObjectName& name) override {
    pb::ResolveRequest request;
    *request.mutable_name() = ToProto(name);
    DEVMGR_ASSIGN_OR_RETURN(const auto devices,
                            Call<pb::PodDevices>("Resolve", request));
    return FromProto(devices);
  }

  absl::StatusOr<std::uint64_t> WaitForChange(
      std::uint64_t version, std::chrono::milliseconds wait) override {
    pb::WaitForChangeRequest request;
    request.set_version(version);
    for (;;) {
      const auto slice = std::clamp(wait, std::chrono::milliseconds(0), kPoll);
      request.set_wait_ms(slice.count());
      DEVMGR_ASSIGN_OR_RETURN(
          const auto response,
          Call<pb::WaitForChangeResponse>("WaitForChange", request, slice));
      wait -= slice;
      if (response.version() != version || wait.count() <= 0) {
        return response.version();
      }
    }
  }

  absl::Status PreparePod(const ObjectName& name) override {
    pb::PreparePodRequest request;
    *request.mutable_name() = ToProto(name);
    return Call<pb::PreparePodResponse>("PreparePod", request).status();
  }

  absl::Status ReleasePod(const ObjectName& name) override {
    pb::ReleasePodRequest request;
    *request.mutable_name() = ToProto(name);
    return Call<pb::ReleasePodResponse>("ReleasePod", request).status();
  }

  absl::Status ForceReleaseClaim(const ObjectName& claim,
                                 const std::string& reason) override {
    pb::ForceReleaseClaimRequest request;
    *request.mutable_name() = ToProto(claim);
    request.set_reason(reason);
    return Call<pb::ForceReleaseClaimResponse>("ForceReleaseClaim", request)
        .status();
  }

  absl::Status HandOverResource(const ResourceName& resource,
                                ResourceOwner owner,
                                const std::string& reason) override {
    pb::HandOverResourceRequest request;
    request.set_resource(resource);
    request.set_owner(ToProto(owner));
    request.set_reason(reason);
    return Call<pb::HandOverResourceResponse>("HandOverResource", request)
        .status();
  }

  absl::Status FreeHolder(const std::string& container_id,
                          const std::string& reason) override {
    pb::FreeHolderRequest request;
    request.set_container(container_id);
    request.set_reason(reason);
    return Call<pb::FreeHolderResponse>("FreeHolder", request).status();
  }

  absl::Status RecheckDevices(const std::string& name,
                              const std::string& device,
                              const std::string& reason) override {
    pb::RecheckDevicesRequest request;
    request.set_name(name);
    request.set_device(device);
    request.set_reason(reason);
    return Call<pb::RecheckDevicesResponse>("RecheckDevices", request).status();
  }

  absl::Status SetAuthority(Authority to, const std::string& reason) override {
    pb::SetAuthorityRequest request;
    request.set_authority(std::string(AuthorityName(to)));
    request.set_reason(reason);
    return Call<pb::SetAuthorityResponse>("SetAuthority", request).status();
  }

  absl::Status ConfirmSource(const std::string& reason) override {
    pb::ConfirmSourceRequest request;
    request.set_reason(reason);
    return Call<pb::ConfirmSourceResponse>("ConfirmSource", request).status();
  }

  absl::StatusOr<std::filesystem::path> DriverKubeconfig(
      const std::string& driver) override {
    cpb::DriverKubeconfigRequest request;
    request.set_driver(driver);
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        CallPath<cpb::DriverKubeconfigResponse>(
            std::string(kController) + "DriverKubeconfig", request));
    return std::filesystem::path(response.path());
  }

  absl::StatusOr<std::size_t> DeleteSlices(const std::string& driver,
                                           const std::string& reason) override {
    cpb::DeleteSlicesRequest request;
    request.set_driver(driver);
    request.set_reason(reason);
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        CallPath<cpb::DeleteSlicesResponse>(
            std::string(kController) + "DeleteSlices", request));
    return static_cast<std::size_t>(response.deleted());
  }

  absl::StatusOr<std::string> Simulate(
      const SimulationDocuments& request) override {
    DEVMGR_ASSIGN_OR_RETURN(
        const auto response,
        Call<pb::SimulateResponse>("Simulate", ToProto(request),
                                   request.deadline * kMostSimulations));
    return response.document();
  }

  absl::StatusOr<FsckReport> Fsck(const FsckRequest& request) override {
    pb::FsckRequest message;
    message.set_repair(request.mode == FsckMode::kRepair);
    DEVMGR_ASSIGN_OR_RETURN(const auto report,
                            Call<pb::FsckReport>("Fsck", message));
    return FromProto(report);
  }

 private:
  /// `held` is how long the server may hold the call by our own wish.
  template <typename Response>
  absl::StatusOr<Response> Call(
      std::string_view method, const google::protobuf::MessageLite& request,
      std::chrono::milliseconds held = std::chrono::milliseconds(0)) {
    return CallPath<Response>(
        std::string(server::kServicePath) + std::string(method), request, held);
  }

  template <typename Response>
  absl::StatusOr<Response> CallPath(
      const std::string& path, const google::protobuf::MessageLite& request,
      std::chrono::milliseconds held = std::chrono::milliseconds(0)) {
    // Shared, because the completion may run a moment after it woke us.
    auto answer = std::make_shared<std::promise<absl::StatusOr<std::string>>>();
    auto answered = answer->get_future();
    rpc::Connection::CallOptions options;
    options.timeout = timeout_ + held;
    connection_->Call(path, rpc::Encode(request), options,
                      [answer](absl::StatusOr<std::string> bytes) {
                        answer->set_value(std::move(bytes));
                      });
    const absl::StatusOr<std::string> bytes = answered.get();
    if (!bytes.ok()) return WithEndpoint(path, Unmarked(bytes.status()));
    absl::StatusOr<Response> response = rpc::Decode<Response>(*bytes);
    if (!response.ok()) {
      // The request was fine: it is the answer that makes no sense.
      return InternalError("'{}': {}", endpoint_.string(),
                           MessageOf(response.status()));
    }
    return response;
  }

  /// Errors of the connection name it; those of the daemon stay as they are.
  absl::Status WithEndpoint(std::string_view path,
                            const absl::Status& status) const {
    switch (status.code()) {
      case absl::StatusCode::kCancelled:
        // We cancel nothing: a server that stops does.
        return UnavailableError("no answer from '{}': {}", endpoint_.string(),
                                MessageOf(status));
      case absl::StatusCode::kDeadlineExceeded:
        return WithContext(status, "'{}'", endpoint_.string());
      case absl::StatusCode::kUnavailable:
        return WithContext(status, "no answer from '{}'", endpoint_.string());
      case absl::StatusCode::kUnimplemented:
        return NotServed(path, status);
      default:
        return status;
    }
  }

  /// A call that the server does not have; or a manager that cannot do what
  /// was asked for, and says so.
  absl::Status NotServed(std::string_view path,
                         const absl::Status& status) const {
    const std::string why = MessageOf(status);
    const std::string_view method = path.substr(path.rfind('/') + 1);
    if (why.starts_with("unknown service") &&
        path.starts_with(server::kServicePath)) {
      return UnimplementedError("'{}' is no socket of devmgrd: {}",
                                endpoint_.string(), why);
    }
    if (why.empty() || why.starts_with("unknown ")) {
      return UnimplementedError(
          "the daemon at '{}' has no call {}: it is older than this program, "
          "which is of version {}, or leaves that call out",
          endpoint_.string(), method, DEVMGR_VERSION);
    }
    return WithContext(status, "'{}'", endpoint_.string());
  }

  const std::filesystem::path endpoint_;
  const std::chrono::milliseconds timeout_;
  const std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<rpc::Connection> connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Inspector>> Inspector::Connect(
    const std::filesystem::path& endpoint, std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0) {
    return InvalidArgumentError("timeout of {} ms: must be positive",
                                timeout.count());
  }
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<rpc::Runtime> runtime,
                          rpc::Runtime::Start());
  auto connection = rpc::Dial(*runtime, endpoint, [] {});
  if (!connection.ok()) {
    // A missing file or one that is no socket: nobody listens either way.
    const absl::Status status =
        WithContext(connection.status(), "'{}'", endpoint.string());
    return status.code() == absl::StatusCode::kPermissionDenied
               ? status
               : MakeStatus(absl::StatusCode::kUnavailable, MessageOf(status));
  }
  return std::make_unique<ConnectedInspector>(
      endpoint, timeout, std::move(runtime), *std::move(connection));
}

}  // namespace devmgr
