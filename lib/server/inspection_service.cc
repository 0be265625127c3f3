// SPDX-License-Identifier: Apache-2.0
#include "server/inspection_service.h"

#include <devmgr/driver_endpoint.h>
#include <devmgr/inspection.h>
#include <devmgr/manifests.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/status.h"
#include "rpc/message.h"
#include "server/access.h"
#include "server/pod_lookup.h"

namespace devmgr::server {
namespace {

std::string Path(std::string_view method) {
  return std::string(kServicePath) + std::string(method);
}

absl::Status CheckName(const ObjectName& name) {
  if (!name.ns.empty() && !name.name.empty()) return absl::OkStatus();
  return InvalidArgumentError("'{}' is not given as namespace/name",
                              name.ToString());
}

std::string StateText(const PodInfo& pod) {
  std::string text(PodStateName(pod.state));
  if (!pod.reason.empty()) text += ": " + pod.reason;
  if (!pod.message.empty()) text += ": " + pod.message;
  return text;
}

template <typename Info, typename Repeated>
void PutAll(const std::vector<Info>& infos, Repeated* to) {
  for (const Info& info : infos) *to->Add() = ToProto(info);
}

template <typename Message>
absl::StatusOr<std::string> Encoded(const absl::StatusOr<Message>& message) {
  if (!message.ok()) return message.status();
  return rpc::Encode(*message);
}

/// The pod as the source knows it, while nobody has asked for it yet.
absl::StatusOr<PodInfo> FindInSource(const ObjectSnapshot& objects,
                                     const ObjectName& name) {
  PodInfo info;
  info.name = name;
  if (const auto pod = objects.pods.find(name); pod != objects.pods.end()) {
    info.uid.value = pod->second->metadata.uid;
    const std::string& phase = pod->second->status.phase;
    if (phase == "Succeeded" || phase == "Failed") {
      info.reason = std::string(kFinishedReason);
      info.message = fmt::format(
          "the pod has finished ({}), and holds nothing any more", phase);
      return info;
    }
    info.reason = std::string(kNotRequestedReason);
    info.message = "the source has this pod; nothing was asked for it yet";
    return info;
  }
  if (const auto malformed = objects.malformed_pods.find(name);
      malformed != objects.malformed_pods.end()) {
    info.uid.value = malformed->second->pod.metadata.uid;
    info.reason = std::string(kNotRequestedReason);
    info.message = malformed->second->problem.ToString();
    return info;
  }
  return NotFoundError(
      "pod '{}' is known neither to the source nor to the ledger",
      name.ToString());
}

}  // namespace

InspectionService::InspectionService(DeviceManager& manager, Executor& executor,
                                     SourcesFunction sources,
                                     ReportedRuntimeSource* runtime,
                                     const DriverEndpoint* endpoint)
    : manager_(manager),
      executor_(executor),
      sources_(std::move(sources)),
      runtime_(runtime),
      endpoint_(endpoint),
      change_polls_(manager, executor),
      simulations_(manager) {}

/// Decodes, counts the call and runs `run(request, respond)` on the executor.
template <typename Request, typename Run>
rpc::UnaryHandler InspectionService::Handler(Run run) {
  return [this, run](std::string bytes, rpc::Respond respond) {
    absl::StatusOr<Request> request = rpc::Decode<Request>(bytes);
    if (!request.ok()) return respond(request.status());
    auto counted = calls_.Take();
    if (!counted.ok()) return respond(counted.status());
    executor_.Post([this, run, request = *std::move(request),
                    respond = std::move(respond),
                    counted = *std::move(counted)] {
      run(*this, request,
          [respond, counted](absl::StatusOr<std::string> answer) {
            respond(std::move(answer));
          });
    });
  };
}

/// A method that answers at once: `answer(service, request)`.
template <typename Request, typename Function>
rpc::UnaryHandler InspectionService::Method(Function answer) {
  return Handler<Request>([answer](InspectionService& self,
                                   const Request& request,
                                   const rpc::Respond& respond) {
    respond(Encoded(answer(self, request)));
  });
}

std::vector<SourceInfo> InspectionService::Sources() const {
  if (sources_) return sources_();
  const NodeInfo node = manager_.View()->Node();
  SourceInfo info;
  info.name = node.source;
  info.state = node.source_problems.empty() ? "Watching" : "Failing";
  info.complete = node.source_complete;
  if (!node.source_problems.empty()) {
    info.last_error = node.source_problems.front();
  }
  return {info};
}

std::vector<SliceInfo> InspectionService::Slices() const {
  std::vector<SliceInfo> slices = manager_.View()->Slices();
  const std::set<std::string> published =
      endpoint_ != nullptr ? endpoint_->SliceNames() : std::set<std::string>();
  for (SliceInfo& slice : slices) {
    if (published.contains(slice.name)) {
      slice.origin = "endpoint";
    } else if (!sources_) {
      slice.origin = "manifest";
    }
  }
  return slices;
}

std::vector<ClaimInfo> InspectionService::ClaimsWithObjects() const {
  std::vector<ClaimInfo> claims = manager_.View()->Claims();
  const std::shared_ptr<const ObjectSnapshot> objects = manager_.Objects();
  for (ClaimInfo& claim : claims) {
    const auto found = objects->claims.find(claim.name);
    if (found == objects->claims.end() ||
        found->second->metadata.uid != claim.uid.value) {
      continue;
    }
    claim.object = EncodeResourceClaim(*found->second);
  }
  return claims;
}

std::map<std::string, rpc::UnaryHandler> InspectionService::Methods() {
  using Self = InspectionService;
  using absl::StatusOr;
  std::map<std::string, rpc::UnaryHandler> methods;
  methods[Path("Node")] = Method<pb::NodeRequest>([](Self& self, const auto&) {
    return StatusOr<pb::NodeInfo>(ToProto(self.manager_.View()->Node()));
  });
  methods[Path("Pods")] = Method<pb::PodsRequest>([](Self& self, const auto&) {
    pb::PodsResponse response;
    PutAll(self.manager_.View()->Pods(), response.mutable_pods());
    return StatusOr<pb::PodsResponse>(std::move(response));
  });
  methods[Path("Claims")] = Method<pb::ClaimsRequest>(
      [](Self& self, const pb::ClaimsRequest& request) {
        pb::ClaimsResponse response;
        PutAll(request.objects() ? self.ClaimsWithObjects()
                                 : self.manager_.View()->Claims(),
               response.mutable_claims());
        return StatusOr<pb::ClaimsResponse>(std::move(response));
      });
  methods[Path("Debts")] =
      Method<pb::DebtsRequest>([](Self& self, const auto&) {
        pb::DebtsResponse response;
        PutAll(self.manager_.View()->Debts(), response.mutable_debts());
        return StatusOr<pb::DebtsResponse>(std::move(response));
      });
  methods[Path("Plugins")] =
      Method<pb::PluginsRequest>([](Self& self, const auto&) {
        pb::PluginsResponse response;
        PutAll(self.manager_.View()->Plugins(), response.mutable_plugins());
        return StatusOr<pb::PluginsResponse>(std::move(response));
      });
  methods[Path("Devices")] =
      Method<pb::DevicesRequest>([](Self& self, const auto&) {
        pb::DevicesResponse response;
        PutAll(self.manager_.View()->Devices(), response.mutable_devices());
        return StatusOr<pb::DevicesResponse>(std::move(response));
      });
  methods[Path("Resources")] =
      Method<pb::ResourcesRequest>([](Self& self, const auto&) {
        pb::ResourcesResponse response;
        PutAll(self.manager_.View()->Resources(), response.mutable_resources());
        return StatusOr<pb::ResourcesResponse>(std::move(response));
      });
  methods[Path("DeviceClasses")] =
      Method<pb::DeviceClassesRequest>([](Self& self, const auto&) {
        pb::DeviceClassesResponse response;
        PutAll(self.manager_.View()->DeviceClasses(),
               response.mutable_device_classes());
        return StatusOr<pb::DeviceClassesResponse>(std::move(response));
      });
  methods[Path("Slices")] =
      Method<pb::SlicesRequest>([](Self& self, const auto&) {
        pb::SlicesResponse response;
        PutAll(self.Slices(), response.mutable_slices());
        return StatusOr<pb::SlicesResponse>(std::move(response));
      });
  methods[Path("Numa")] = Method<pb::NumaRequest>([](Self& self, const auto&) {
    return StatusOr<pb::NumaInfo>(ToProto(self.manager_.View()->Numa()));
  });
  methods[Path("Alignment")] = Method<pb::AlignmentRequest>(
      [](Self& self,
         const pb::AlignmentRequest& request) -> StatusOr<pb::PodAlignment> {
        const auto info =
            self.manager_.View()->AlignmentOf(PodUid{request.pod_uid()});
        if (!info.ok()) return info.status();
        return ToProto(*info);
      });
  methods[Path("Sources")] =
      Method<pb::SourcesRequest>([](Self& self, const auto&) {
        pb::SourcesResponse response;
        PutAll(self.Sources(), response.mutable_sources());
        return StatusOr<pb::SourcesResponse>(std::move(response));
      });
  methods[Path("DeviceHolders")] =
      Method<pb::DeviceHoldersRequest>([](Self& self, const auto&) {
        pb::DeviceHoldersResponse response;
        PutAll(self.manager_.View()->DeviceHolders(),
               response.mutable_holders());
        return StatusOr<pb::DeviceHoldersResponse>(std::move(response));
      });
  methods[Path("ForeignHolders")] =
      Method<pb::ForeignHoldersRequest>([](Self& self, const auto&) {
        pb::ForeignHoldersResponse response;
        PutAll(self.manager_.View()->ForeignHolders(),
               response.mutable_holders());
        return StatusOr<pb::ForeignHoldersResponse>(std::move(response));
      });
  methods[Path("History")] = Method<pb::HistoryRequest>(
      [](Self& self, const pb::HistoryRequest& request) {
        return self.History(request.after());
      });
  methods[Path("StateAt")] = Method<pb::StateAtRequest>(
      [](Self& self,
         const pb::StateAtRequest& request) -> StatusOr<pb::LedgerView> {
        const auto view =
            self.manager_.maintenance().StateAt(FromProto(request));
        if (!view.ok()) return AboutOurs(view.status());
        return ToProto(*view);
      });
  methods[Path("FindPod")] = Method<pb::FindPodRequest>(
      [](Self& self, const pb::FindPodRequest& request) {
        return self.FindPod(FromProto(request.name()));
      });
  methods[Path("Resolve")] = Method<pb::ResolveRequest>(
      [](Self& self, const pb::ResolveRequest& request) {
        return self.Resolve(FromProto(request.name()));
      });
  methods[Path("PreparePod")] = Method<pb::PreparePodRequest>(
      [](Self& self, const pb::PreparePodRequest& request)
          -> StatusOr<pb::PreparePodResponse> {
        DEVMGR_RETURN_IF_ERROR(self.PreparePod(FromProto(request.name())));
        return pb::PreparePodResponse();
      });
  methods[Path("ReleasePod")] = Method<pb::ReleasePodRequest>(
      [](Self& self, const pb::ReleasePodRequest& request)
          -> StatusOr<pb::ReleasePodResponse> {
        DEVMGR_RETURN_IF_ERROR(self.ReleasePod(FromProto(request.name())));
        return pb::ReleasePodResponse();
      });
  methods[Path("ForceReleaseClaim")] = Method<pb::ForceReleaseClaimRequest>(
      [](Self& self, const pb::ForceReleaseClaimRequest& request)
          -> StatusOr<pb::ForceReleaseClaimResponse> {
        DEVMGR_RETURN_IF_ERROR(self.ForceReleaseClaim(FromProto(request.name()),
                                                      request.reason()));
        return pb::ForceReleaseClaimResponse();
      });
  methods[Path("HandOverResource")] = Method<pb::HandOverResourceRequest>(
      [](Self& self, const pb::HandOverResourceRequest& request)
          -> StatusOr<pb::HandOverResourceResponse> {
        DEVMGR_RETURN_IF_ERROR(self.HandOverResource(request));
        return pb::HandOverResourceResponse();
      });
  methods[Path("FreeHolder")] = Method<pb::FreeHolderRequest>(
      [](Self& self, const pb::FreeHolderRequest& request)
          -> StatusOr<pb::FreeHolderResponse> {
        DEVMGR_RETURN_IF_ERROR(
            self.FreeHolder(request.container(), request.reason()));
        return pb::FreeHolderResponse();
      });
  methods[Path("RecheckDevices")] = Method<pb::RecheckDevicesRequest>(
      [](Self& self, const pb::RecheckDevicesRequest& request)
          -> StatusOr<pb::RecheckDevicesResponse> {
        DEVMGR_RETURN_IF_ERROR(self.RecheckDevices(request));
        return pb::RecheckDevicesResponse();
      });
  methods[Path("ConfirmSource")] = Method<pb::ConfirmSourceRequest>(
      [](Self& self, const pb::ConfirmSourceRequest& request)
          -> StatusOr<pb::ConfirmSourceResponse> {
        DEVMGR_RETURN_IF_ERROR(self.ConfirmSource(request.reason()));
        return pb::ConfirmSourceResponse();
      });
  methods[Path("SetAuthority")] = Method<pb::SetAuthorityRequest>(
      [](Self& self, const pb::SetAuthorityRequest& request)
          -> StatusOr<pb::SetAuthorityResponse> {
        DEVMGR_RETURN_IF_ERROR(self.SetAuthority(request));
        return pb::SetAuthorityResponse();
      });
  methods[Path("Fsck")] = Method<pb::FsckRequest>(
      [](Self& self,
         const pb::FsckRequest& request) -> StatusOr<pb::FsckReport> {
        const auto report = self.manager_.maintenance().Fsck(
            request.repair() ? FsckMode::kRepair : FsckMode::kCheck);
        if (!report.ok()) return AboutOurs(report.status());
        return ToProto(*report);
      });
  methods[Path("Simulate")] = Handler<pb::SimulateRequest>(
      [](Self& self, const pb::SimulateRequest& request, rpc::Respond respond) {
        self.simulations_.Run(request,
                              [respond = std::move(respond)](
                                  const absl::StatusOr<std::string>& document) {
                                if (!document.ok())
                                  return respond(AboutOurs(document.status()));
                                pb::SimulateResponse response;
                                response.set_document(*document);
                                respond(rpc::Encode(response));
                              });
      });
  methods[Path("PodDevicesOf")] = Method<pb::PodDevicesRequest>(
      [](Self& self,
         const pb::PodDevicesRequest& request) -> StatusOr<pb::PodDevices> {
        const auto devices = LookUpPod(self.manager_, {request.uid()},
                                       FromProto(request.name()));
        if (!devices.ok()) return devices.status();
        return ToProto(**devices);
      });
  methods[Path("ReportRuntime")] =
      Method<pb::RuntimeReport>([](Self& self, const pb::RuntimeReport& request)
                                    -> StatusOr<pb::ReportRuntimeResponse> {
        DEVMGR_RETURN_IF_ERROR(self.ReportRuntime(request));
        return pb::ReportRuntimeResponse();
      });
  methods[Path("BeforeContainerStart")] =
      Handler<pb::BeforeContainerStartRequest>(
          [](Self& self, const pb::BeforeContainerStartRequest& request,
             rpc::Respond respond) {
            self.BeforeContainerStart(request, std::move(respond));
          });
  methods[Path("Events")] = Handler<pb::EventsRequest>(
      [](Self& self, const pb::EventsRequest& request, rpc::Respond respond) {
        self.Events(request, std::move(respond));
      });
  methods[Path("Changes")] = Handler<pb::ChangesRequest>(
      [](Self& self, const pb::ChangesRequest& request, rpc::Respond respond) {
        self.change_polls_.Poll(request, kMaxWait, std::move(respond));
      });
  methods[Path("WaitForChange")] = Handler<pb::WaitForChangeRequest>(
      [](Self& self, const pb::WaitForChangeRequest& request,
         rpc::Respond respond) {
        self.WaitForChange(request, std::move(respond));
      });
  return methods;
}

absl::StatusOr<pb::HistoryResponse> InspectionService::History(
    std::uint64_t after) {
  const auto decisions = manager_.maintenance().History(after, kMaxDecisions);
  if (!decisions.ok()) return AboutOurs(decisions.status());
  pb::HistoryResponse response;
  std::size_t bytes = 0;
  for (const DecisionInfo& decision : *decisions) {
    pb::DecisionInfo message = ToProto(decision);
    bytes += message.ByteSizeLong();
    // One there is always, or the client would take it for the end.
    if (bytes > kMaxHistoryBytes && response.decisions_size() > 0) break;
    *response.add_decisions() = std::move(message);
  }
  return response;
}

absl::StatusOr<pb::PodInfo> InspectionService::FindPod(const ObjectName& name) {
  DEVMGR_RETURN_IF_ERROR(CheckName(name));
  if (const auto uid = manager_.FindPod(name); uid.ok()) {
    if (const auto pod = manager_.View()->PodInfoOf(*uid); pod.ok()) {
      return ToProto(*pod);
    }
  }
  DEVMGR_ASSIGN_OR_RETURN(const PodInfo info,
                          FindInSource(*manager_.Objects(), name));
  return ToProto(info);
}

absl::StatusOr<pb::PodDevices> InspectionService::Resolve(
    const ObjectName& name) {
  DEVMGR_RETURN_IF_ERROR(CheckName(name));
  const auto uid = manager_.FindPod(name);
  if (uid.ok()) {
    const auto devices = manager_.PodDevicesOf(*uid);
    if (devices.ok()) return ToProto(**devices);
    const auto pod = manager_.View()->PodInfoOf(*uid);
    if (pod.ok() && pod->state != PodState::kReady) {
      return FailedPreconditionError("pod '{}' is {}", name.ToString(),
                                     StateText(*pod));
    }
    return AboutOurs(devices.status());
  }
  DEVMGR_ASSIGN_OR_RETURN(const PodInfo info,
                          FindInSource(*manager_.Objects(), name));
  return FailedPreconditionError("pod '{}' is {}", name.ToString(),
                                 StateText(info));
}

absl::Status InspectionService::CheckWanting() const {
  if (manager_.View()->Node().actuate == Actuate::kWanted)
    return absl::OkStatus();
  return FailedPreconditionError(
      "the daemon acts on manifests by itself: change the pod's manifest, or "
      "start the daemon with 'actuate: embedder'");
}

absl::Status InspectionService::PreparePod(const ObjectName& name) {
  DEVMGR_RETURN_IF_ERROR(CheckName(name));
  DEVMGR_RETURN_IF_ERROR(CheckWanting());
  const std::shared_ptr<const ObjectSnapshot> objects = manager_.Objects();
  if (const auto pod = objects->pods.find(name); pod != objects->pods.end()) {
    return manager_.WantPod(*pod->second);
  }
  if (const auto malformed = objects->malformed_pods.find(name);
      malformed != objects->malformed_pods.end()) {
    return InvalidArgumentError("pod '{}' is malformed: {}", name.ToString(),
                                malformed->second->problem.ToString());
  }
  return NotFoundError("pod '{}' is not in the source", name.ToString());
}

absl::Status InspectionService::ReleasePod(const ObjectName& name) {
  DEVMGR_RETURN_IF_ERROR(CheckName(name));
  DEVMGR_RETURN_IF_ERROR(CheckWanting());
  DEVMGR_ASSIGN_OR_RETURN(const PodUid uid, manager_.FindPod(name));
  return manager_.UnwantPod(uid);
}

absl::Status InspectionService::ForceReleaseClaim(const ObjectName& name,
                                                  const std::string& reason) {
  DEVMGR_RETURN_IF_ERROR(CheckName(name));
  DEVMGR_RETURN_IF_ERROR(CheckReason(reason));
  return AboutOurs(manager_.maintenance().ForceReleaseClaim(name, reason));
}

absl::Status InspectionService::HandOverResource(
    const pb::HandOverResourceRequest& request) {
  DEVMGR_RETURN_IF_ERROR(CheckReason(request.reason()));
  const auto owner = FromProto(request.owner());
  if (!owner.has_value()) {
    return InvalidArgumentError("owner {} is not known",
                                static_cast<int>(request.owner()));
  }
  return AboutOurs(manager_.maintenance().HandOverResource(
      request.resource(), *owner, request.reason()));
}

absl::Status InspectionService::FreeHolder(const std::string& container_id,
                                           const std::string& reason) {
  DEVMGR_RETURN_IF_ERROR(CheckReason(reason));
  return AboutOurs(manager_.maintenance().FreeHolder(container_id, reason));
}

absl::Status InspectionService::RecheckDevices(
    const pb::RecheckDevicesRequest& request) {
  DEVMGR_RETURN_IF_ERROR(CheckReason(request.reason()));
  return AboutOurs(manager_.maintenance().RecheckDevices(
      request.name(), request.device(), request.reason()));
}

absl::Status InspectionService::SetAuthority(
    const pb::SetAuthorityRequest& request) {
  DEVMGR_RETURN_IF_ERROR(CheckReason(request.reason()));
  for (const Authority to : {Authority::kNode, Authority::kScheduler}) {
    if (AuthorityName(to) != request.authority()) continue;
    return AboutOurs(manager_.maintenance().SetAuthority(to, request.reason()));
  }
  return InvalidArgumentError("authority '{}': node and scheduler can be set",
                              request.authority());
}

absl::Status InspectionService::ConfirmSource(const std::string& reason) {
  DEVMGR_RETURN_IF_ERROR(CheckReason(reason));
  return AboutOurs(manager_.maintenance().ConfirmSource(reason));
}

void InspectionService::BeforeContainerStart(
    const pb::BeforeContainerStartRequest& request, rpc::Respond respond) {
  manager_.StartBeforeContainerStart(
      {request.uid()}, request.container(),
      [respond = std::move(respond)](const absl::Status& status) {
        if (!status.ok()) return respond(status);
        respond(rpc::Encode(pb::BeforeContainerStartResponse()));
      });
}

void InspectionService::Events(const pb::EventsRequest& request,
                               rpc::Respond respond) {
  Waiter waiter;
  waiter.waits_for = News::kEvent;
  waiter.after = request.after();
  waiter.respond = std::move(respond);
  // An event that comes after this look posts a change, which runs after this
  // task: none is missed.
  if (request.wait_ms() <= 0 || !manager_.Events(waiter.after).empty()) {
    return Answer(waiter);
  }
  AddWaiter(std::move(waiter), request.wait_ms());
}

void InspectionService::WaitForChange(const pb::WaitForChangeRequest& request,
                                      rpc::Respond respond) {
  Waiter waiter;
  waiter.respond = std::move(respond);
  // Any other number counts as a change: it may stem from an earlier daemon.
  if (request.wait_ms() <= 0 || request.version() != version_) {
    return Answer(waiter);
  }
  AddWaiter(std::move(waiter), request.wait_ms());
}

absl::Status InspectionService::ReportRuntime(
    const pb::RuntimeReport& request) {
  const RuntimeReport report = FromProto(request);
  DEVMGR_RETURN_IF_ERROR(manager_.ReportRuntime(report));
  if (runtime_ != nullptr) runtime_->Take(report);
  return absl::OkStatus();
}

void InspectionService::AddWaiter(Waiter waiter, std::int64_t wait_ms) {
  const std::uint64_t id = ++last_waiter_;
  const auto wait = std::min<std::chrono::milliseconds>(
      std::chrono::milliseconds(wait_ms), kMaxWait);
  waiter.timer = executor_.PostAfter(wait, [this, id] {
    const auto found = waiters_.find(id);
    if (found == waiters_.end()) return;
    const Waiter over = std::move(found->second);
    waiters_.erase(found);
    Answer(over);
  });
  waiters_.emplace(id, std::move(waiter));
}

void InspectionService::Answer(const Waiter& waiter) {
  if (waiter.waits_for == News::kEvent) {
    pb::EventsResponse response;
    PutAll(manager_.Events(waiter.after), response.mutable_events());
    return waiter.respond(rpc::Encode(response));
  }
  pb::WaitForChangeResponse response;
  response.set_version(version_);
  waiter.respond(rpc::Encode(response));
}

void InspectionService::PostChange(News news) {
  executor_.Post([this, news] { OnChange(news); });
}

void InspectionService::OnChange(News news) {
  ++version_;
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    const News waits_for = it->second.waits_for;
    if (waits_for != news && waits_for != News::kChange) {
      ++it;
      continue;
    }
    const Waiter over = std::move(it->second);
    it = waiters_.erase(it);
    executor_.Cancel(over.timer);
    Answer(over);
  }
}

}  // namespace devmgr::server
