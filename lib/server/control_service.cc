// SPDX-License-Identifier: Apache-2.0
#include "server/control_service.h"

#include <random>
#include <utility>

#include "common/status.h"
#include "rpc/message.h"
#include "server/convert.h"

namespace devmgr::server {
namespace {

namespace cpb = ::devmgr::control::v1;

std::string ControlPath(std::string_view method) {
  return "/devmgr.control.v1.Controller/" + std::string(method);
}

/// Another one for each server that ever was.
std::string NewInstance() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

ControlService::ControlService(DeviceManager& manager, WantedPods& wanted,
                               const Access& access, DriverEndpoint* endpoint)
    : manager_(manager),
      drives_(manager.View()->Node().actuate == Actuate::kWanted),
      wanted_(wanted),
      access_(access),
      endpoint_(endpoint),
      watch_(*executor_, NewInstance(), [this](const PodUid& uid) {
        return manager_.View()->PodInfoOf(uid);
      }) {}

ControlService::~ControlService() {
  observation_.reset();
  executor_->Stop();
}

void ControlService::Begin() {
  observation_ = manager_.Observe(*this);
  const auto wanted = wanted_.Snapshot();
  // The last that is noted of a pod is as new as the list, or newer.
  executor_->Post([this, pods = manager_.View()->Pods(), wanted] {
    for (const PodInfo& pod : pods) watch_.Put(pod, false);
    for (const PodUid& uid : wanted->gone_pods) ForgetIfUnknown(uid);
  });
  {
    const MutexLock lock(mutex_);
    has_list_ = true;
  }
  executor_->Post([this] { TakeNotes(); });
  if (!drives_) return;
  for (const auto& [name, pod] : wanted->pods) {
    manager_.WantPod(*pod).IgnoreError();  // Only where kWanted is missing.
  }
  for (const PodUid& uid : wanted->gone_pods) {
    manager_.UnwantPod(uid).IgnoreError();
  }
}

/// Decodes, counts the call and runs `run(caller, request, respond)` on the
/// executor.
template <typename Request, typename Run>
rpc::CallerHandler ControlService::Handler(Run run) {
  return [this, run](const rpc::Caller& caller, const std::string& bytes,
                     const rpc::Respond& respond) {
    absl::StatusOr<Request> request = rpc::Decode<Request>(bytes);
    if (!request.ok()) return respond(request.status());
    auto counted = calls_.Take();
    if (!counted.ok()) return respond(counted.status());
    executor_->Post([run, caller, request = *std::move(request), respond,
                     counted = *std::move(counted)] {
      run(caller, request,
          [respond, counted](const absl::StatusOr<std::string>& answer) {
            respond(answer);
          });
    });
  };
}

/// A method that answers at once: `answer(caller, request)`.
template <typename Request, typename Function>
rpc::CallerHandler ControlService::Method(Function answer) {
  return Handler<Request>([answer](const rpc::Caller& caller,
                                   const Request& request,
                                   const rpc::Respond& respond) {
    const auto message = answer(caller, request);
    if (!message.ok()) return respond(message.status());
    respond(rpc::Encode(*message));
  });
}

std::map<std::string, rpc::CallerHandler> ControlService::Methods() {
  std::map<std::string, rpc::CallerHandler> methods;
  methods[ControlPath("WantPod")] = Method<cpb::WantPodRequest>(
      [this](const rpc::Caller& caller, const cpb::WantPodRequest& request) {
        return WantPod(caller, request.manifest());
      });
  methods[ControlPath("UnwantPod")] = Method<cpb::UnwantPodRequest>(
      [this](const rpc::Caller& caller, const cpb::UnwantPodRequest& request) {
        return UnwantPod(caller, {request.uid()});
      });
  methods[ControlPath("ContainerDevices")] =
      Method<cpb::ContainerDevicesRequest>(
          [this](const rpc::Caller&,
                 const cpb::ContainerDevicesRequest& request)
              -> absl::StatusOr<pb::ContainerDevices> {
            const auto devices = manager_.ContainerDevicesOf(
                {request.uid()}, request.container());
            if (!devices.ok()) return devices.status();
            return ToProto(**devices);
          });
  methods[ControlPath("PodDevices")] = Method<cpb::PodDevicesRequest>(
      [this](const rpc::Caller&, const cpb::PodDevicesRequest& request)
          -> absl::StatusOr<pb::PodDevices> {
        const auto devices = manager_.PodDevicesOf({request.uid()});
        if (!devices.ok()) return devices.status();
        return ToProto(**devices);
      });
  methods[ControlPath("DriverKubeconfig")] =
      Method<cpb::DriverKubeconfigRequest>(
          [this](const rpc::Caller& caller,
                 const cpb::DriverKubeconfigRequest& request) {
            return DriverKubeconfig(caller, request.driver());
          });
  methods[ControlPath("DeleteSlices")] = Method<cpb::DeleteSlicesRequest>(
      [this](const rpc::Caller& caller,
             const cpb::DeleteSlicesRequest& request) {
        return DeleteSlices(caller, request);
      });
  methods[ControlPath("BeforeContainerStart")] =
      Handler<cpb::BeforeContainerStartRequest>(
          [this](const rpc::Caller& caller,
                 const cpb::BeforeContainerStartRequest& request,
                 const rpc::Respond& respond) {
            const absl::Status allowed =
                access_.CheckUser(caller, "BeforeContainerStart");
            if (!allowed.ok()) return respond(allowed);
            manager_.StartBeforeContainerStart(
                {request.uid()}, request.container(),
                [respond](const absl::Status& status) {
                  if (!status.ok()) return respond(status);
                  respond(rpc::Encode(cpb::BeforeContainerStartResponse()));
                });
          });
  return methods;
}

std::map<std::string, rpc::StreamHandler> ControlService::Streams() {
  std::map<std::string, rpc::StreamHandler> streams;
  streams[ControlPath("WatchPods")] =
      [this](const std::string& bytes,
             std::shared_ptr<rpc::ServerStream> stream) {
        const auto request = rpc::Decode<cpb::WatchPodsRequest>(bytes);
        if (!request.ok()) return stream->Finish(request.status());
        executor_->Post(
            [this, token = request->resume_token(),
             stream = std::move(stream)] { watch_.Add(token, stream); });
      };
  return streams;
}

absl::StatusOr<cpb::WantPodResponse> ControlService::WantPod(
    const rpc::Caller& caller, const std::string& manifest) {
  DEVMGR_RETURN_IF_ERROR(access_.CheckUser(caller, "WantPod"));
  DEVMGR_ASSIGN_OR_RETURN(
      const WantedPod pod,
      wanted_.Want(manifest, [&](const WantedPod& checked) -> absl::Status {
        DEVMGR_RETURN_IF_ERROR(CheckName(checked));
        return Record(caller, checked, true);
      }));
  if (drives_) DEVMGR_RETURN_IF_ERROR(manager_.WantPod(*pod.pod));
  cpb::WantPodResponse response;
  response.set_uid(pod.uid.value);
  *response.mutable_name() = ToProto(pod.name);
  response.set_was_wanted(pod.was_wanted);
  for (const ManifestProblem& warning : pod.warnings) {
    response.add_warnings(ValidUtf8(warning.ToString()));
  }
  return response;
}

/// The directory of manifests may have a pod of that name that it cannot show
/// now. Then the ledger knows it.
absl::Status ControlService::CheckName(const WantedPod& pod) const {
  const auto known = manager_.FindPod(pod.name);
  if (!known.ok() || *known == pod.uid) return absl::OkStatus();
  const auto objects = manager_.Objects();
  if (objects->complete || objects->gone_pods.contains(*known)) {
    return absl::OkStatus();
  }
  const auto wanted = wanted_.Snapshot();
  if (wanted->gone_pods.contains(*known)) return absl::OkStatus();
  return AlreadyExistsError(
      "pod '{}' with UID '{}' is on this node, whose manifests cannot all be "
      "used now; whether it is gone is not known",
      pod.name.ToString(), known->value);
}

absl::StatusOr<cpb::UnwantPodResponse> ControlService::UnwantPod(
    const rpc::Caller& caller, const PodUid& uid) {
  DEVMGR_RETURN_IF_ERROR(access_.CheckUser(caller, "UnwantPod"));
  DEVMGR_ASSIGN_OR_RETURN(const WantedPod pod,
                          wanted_.Unwant(uid, [&](const WantedPod& checked) {
                            return Record(caller, checked, false);
                          }));
  if (pod.was_wanted) {
    if (drives_) DEVMGR_RETURN_IF_ERROR(manager_.UnwantPod(uid));
    executor_->PostAfter(kForgetUnwanted,
                         [this, uid] { ForgetIfUnknown(uid); });
  }
  cpb::UnwantPodResponse response;
  response.set_was_wanted(pod.was_wanted);
  if (!pod.name.name.empty()) *response.mutable_name() = ToProto(pod.name);
  return response;
}

absl::Status ControlService::CheckEndpoint() const {
  if (endpoint_ != nullptr) return absl::OkStatus();
  return FailedPreconditionError(
      "this devmgrd serves no endpoint for drivers: it needs a nodeName and "
      "authority: node, no apiServer, and no driverEndpoint: false");
}

absl::StatusOr<cpb::DriverKubeconfigResponse> ControlService::DriverKubeconfig(
    const rpc::Caller& caller, const std::string& driver) {
  DEVMGR_RETURN_IF_ERROR(access_.CheckOwner(caller, "DriverKubeconfig"));
  DEVMGR_RETURN_IF_ERROR(CheckEndpoint());
  const auto path = endpoint_->AddDriver(driver);
  if (!path.ok()) return AboutOurs(path.status());
  cpb::DriverKubeconfigResponse response;
  response.set_path(ValidUtf8(path->string()));
  response.set_server(ValidUtf8(endpoint_->server()));
  return response;
}

absl::StatusOr<cpb::DeleteSlicesResponse> ControlService::DeleteSlices(
    const rpc::Caller& caller, const cpb::DeleteSlicesRequest& request) {
  DEVMGR_RETURN_IF_ERROR(access_.CheckOwner(caller, "DeleteSlices"));
  if (request.driver().empty()) {
    return InvalidArgumentError("the driver is missing");
  }
  DEVMGR_RETURN_IF_ERROR(CheckReason(request.reason()));
  DEVMGR_RETURN_IF_ERROR(CheckEndpoint());
  DEVMGR_RETURN_IF_ERROR(AboutOurs(manager_.maintenance().RecordSliceDeletion(
      {request.driver(), CallerText(caller), request.reason()})));
  const auto deleted = endpoint_->DeleteSlices(request.driver());
  if (!deleted.ok()) return AboutOurs(deleted.status());
  cpb::DeleteSlicesResponse response;
  response.set_deleted(*deleted);
  return response;
}

/// Before anything is written: so nothing is wanted without a caller in the
/// history.
absl::Status ControlService::Record(const rpc::Caller& caller,
                                    const WantedPod& pod, bool wanted) {
  return manager_.maintenance().RecordWish(
      {wanted, pod.uid, pod.name, CallerText(caller)});
}

void ControlService::ForgetIfUnknown(const PodUid& uid) {
  if (absl::IsNotFound(manager_.View()->PodInfoOf(uid).status()))
    wanted_.Forget(uid);
}

void ControlService::OnPod(const PodInfo& pod, bool gone) {
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    is_first = notes_.empty() && has_list_;
    notes_.insert_or_assign(pod.uid, std::make_pair(pod, gone));
  }
  if (is_first) executor_->Post([this] { TakeNotes(); });
}

void ControlService::OnResourceHealth(const std::vector<PodUid>& pods) {
  for (const PodUid& uid : pods) {
    const auto pod = manager_.View()->PodInfoOf(uid);
    if (pod.ok()) OnPod(*pod, false);
  }
}

void ControlService::TakeNotes() {
  std::map<PodUid, std::pair<PodInfo, bool>> notes;
  {
    const MutexLock lock(mutex_);
    notes.swap(notes_);
  }
  for (const auto& [uid, note] : notes) {
    watch_.Put(note.first, note.second);
    if (note.second) wanted_.Forget(uid);
  }
  watch_.Send();
}

}  // namespace devmgr::server
