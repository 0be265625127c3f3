// SPDX-License-Identifier: Apache-2.0
//
// The blocking forms of the operations: start, then wait for the completion.
#include <devmgr/device_manager.h>
#include <devmgr/maintenance.h>

#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "common/status.h"

namespace devmgr {
namespace {

using Finish = std::function<void()>;

bool WaitForFinish(const std::function<void(Finish)>& begin) {
  // Shared: the completion may still be returning from set_value when the
  // waiter goes on.
  auto finished = std::make_shared<std::promise<void>>();
  begin([finished] { finished->set_value(); });
  finished->get_future().wait();
  return true;
}

/// Starts an operation with a completion, and waits for its result with `run`,
/// which is one of the RunUntilFinished.
template <typename Result, typename Run, typename Start>
Result WaitWith(Run run, Start start) {
  auto result = std::make_shared<std::optional<Result>>();
  const bool ran = run([&](Finish finish) {
    start([result, finish = std::move(finish)](Result value) {
      result->emplace(std::move(value));
      finish();
    });
  });
  if (!ran) {
    return FailedPreconditionError(
        "a call that waits cannot end on the manager's own thread: use its "
        "Start... form in completions and observers");
  }
  return *std::move(*result);
}

}  // namespace

bool DeviceManager::RunUntilFinished(
    const std::function<void(Finish finish)>& begin) {
  return WaitForFinish(begin);
}

bool Maintenance::RunUntilFinished(
    const std::function<void(Finish finish)>& begin) {
  return WaitForFinish(begin);
}

template <typename Result, typename Start>
Result DeviceManager::WaitFor(Start start) {
  return WaitWith<Result>(
      [this](const auto& begin) { return RunUntilFinished(begin); }, start);
}

template <typename Result, typename Start>
Result Maintenance::WaitFor(Start start) {
  return WaitWith<Result>(
      [this](const auto& begin) { return RunUntilFinished(begin); }, start);
}

absl::StatusOr<Verdict> DeviceManager::AdmitPod(const Pod& pod) {
  return WaitFor<absl::StatusOr<Verdict>>(
      [&](AdmitDone done) { StartAdmitPod(pod, std::move(done)); });
}

absl::Status DeviceManager::PreparePod(const PodUid& pod) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartPreparePod(pod, std::move(done)); });
}

absl::Status DeviceManager::UnpreparePod(const PodUid& pod) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartUnpreparePod(pod, std::move(done)); });
}

absl::Status DeviceManager::ReleasePod(const PodUid& pod) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartReleasePod(pod, std::move(done)); });
}

absl::Status DeviceManager::EndPod(const PodUid& pod) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartEndPod(pod, std::move(done)); });
}

absl::Status DeviceManager::BeforeContainerStart(
    const PodUid& pod, const ContainerName& container) {
  return WaitFor<absl::Status>([&](Done done) {
    StartBeforeContainerStart(pod, container, std::move(done));
  });
}

absl::Status DeviceManager::ReleaseInitContainers(const PodUid& pod) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartReleaseInitContainers(pod, std::move(done)); });
}

absl::Status Maintenance::ForceReleaseClaim(const ObjectName& claim,
                                            const std::string& reason) {
  return WaitFor<absl::Status>([&](Done done) {
    StartForceReleaseClaim(claim, reason, std::move(done));
  });
}

absl::Status Maintenance::HandOverResource(const ResourceName& resource,
                                           ResourceOwner owner,
                                           const std::string& reason) {
  return WaitFor<absl::Status>([&](Done done) {
    StartHandOverResource(resource, owner, reason, std::move(done));
  });
}

absl::Status Maintenance::ConfirmSource(const std::string& reason) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartConfirmSource(reason, std::move(done)); });
}

absl::Status Maintenance::FreeHolder(const std::string& container_id,
                                     const std::string& reason) {
  return WaitFor<absl::Status>([&](Done done) {
    StartFreeHolder(container_id, reason, std::move(done));
  });
}

absl::Status Maintenance::RecheckDevices(const std::string& name,
                                         const std::string& device,
                                         const std::string& reason) {
  return WaitFor<absl::Status>([&](Done done) {
    StartRecheckDevices(name, device, reason, std::move(done));
  });
}

absl::Status Maintenance::SetAuthority(Authority to,
                                       const std::string& reason) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartSetAuthority(to, reason, std::move(done)); });
}

absl::Status Maintenance::RecordSliceDeletion(const SliceDeletion& deletion) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartRecordSliceDeletion(deletion, std::move(done)); });
}

absl::Status Maintenance::RecordWish(const PodWish& wish) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartRecordWish(wish, std::move(done)); });
}

}  // namespace devmgr
