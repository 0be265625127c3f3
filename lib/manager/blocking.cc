// SPDX-License-Identifier: Apache-2.0
//
// The blocking forms of the operations: start, then wait for the completion.
#include <devmgr/device_manager.h>

#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace devmgr {

void DeviceManager::RunUntilFinished(
    const std::function<void(std::function<void()> finish)>& begin) {
  // Shared: the completion may still be returning from set_value when the
  // waiter goes on.
  auto finished = std::make_shared<std::promise<void>>();
  begin([finished] { finished->set_value(); });
  finished->get_future().wait();
}

/// Starts an operation with a completion, and waits for its result.
template <typename Result, typename Start>
Result DeviceManager::WaitFor(Start start) {
  auto result = std::make_shared<std::optional<Result>>();
  RunUntilFinished([&](std::function<void()> finish) {
    start([result, finish = std::move(finish)](Result value) {
      result->emplace(std::move(value));
      finish();
    });
  });
  return *std::move(*result);
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

absl::Status DeviceManager::BeforeContainerStart(const PodUid& pod,
                                                 const std::string& container) {
  return WaitFor<absl::Status>([&](Done done) {
    StartBeforeContainerStart(pod, container, std::move(done));
  });
}

absl::Status DeviceManager::ReleaseInitContainers(const PodUid& pod) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartReleaseInitContainers(pod, std::move(done)); });
}

absl::Status DeviceManager::ForceReleaseClaim(const ObjectName& claim,
                                              const std::string& reason) {
  return WaitFor<absl::Status>([&](Done done) {
    StartForceReleaseClaim(claim, reason, std::move(done));
  });
}

absl::Status DeviceManager::HandOverResource(const std::string& resource,
                                             ResourceOwner owner,
                                             const std::string& reason) {
  return WaitFor<absl::Status>([&](Done done) {
    StartHandOverResource(resource, owner, reason, std::move(done));
  });
}

absl::Status DeviceManager::ConfirmSource(const std::string& reason) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartConfirmSource(reason, std::move(done)); });
}

absl::Status DeviceManager::FreeHolder(const std::string& container,
                                       const std::string& reason) {
  return WaitFor<absl::Status>(
      [&](Done done) { StartFreeHolder(container, reason, std::move(done)); });
}

}  // namespace devmgr
