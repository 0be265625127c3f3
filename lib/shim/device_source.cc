// SPDX-License-Identifier: Apache-2.0
#include "shim/device_source.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <utility>
#include <vector>

#include "common/counted.h"
#include "common/mutex.h"
#include "common/status.h"
#include "rpc/message.h"
#include "server/convert.h"
#include "server/pod_lookup.h"

namespace devmgr::shim {
namespace {

namespace pb = server::pb;

constexpr std::chrono::milliseconds kLongPoll = std::chrono::seconds(20);

/// Counts changes. Thread-safe.
class Changes : public DeviceManagerObserver {
 public:
  void OnPod(const PodInfo&, bool) override { Count(); }
  void OnObjects() override { Count(); }

  void WaitFor(std::uint64_t version, DeviceSource::VersionDone done) {
    std::uint64_t now = 0;
    {
      const MutexLock lock(mutex_);
      if (version == version_) return waiting_.push_back(std::move(done));
      now = version_;
    }
    done(now);
  }

 private:
  void Count() {
    std::uint64_t now = 0;
    std::vector<DeviceSource::VersionDone> waiting;
    {
      const MutexLock lock(mutex_);
      now = ++version_;
      waiting.swap(waiting_);
    }
    for (const auto& done : waiting) done(now);
  }

  Mutex mutex_;
  std::uint64_t version_ DEVMGR_GUARDED_BY(mutex_) = 1;
  std::vector<DeviceSource::VersionDone> waiting_ DEVMGR_GUARDED_BY(mutex_);
};

class ManagerSource : public DeviceSource {
 public:
  ManagerSource(DeviceManager& manager, std::shared_ptr<Executor> executor)
      : manager_(manager),
        executor_(std::move(executor)),
        observation_(manager.Observe(changes_)) {}

  void DevicesOf(const PodUid& pod, const ObjectName& name,
                 std::chrono::milliseconds /*timeout*/,
                 DevicesDone done) override {
    done(server::LookUpPod(manager_, pod, name));
  }

  void BeforeContainerStart(const PodUid& pod, const ContainerName& container,
                            std::chrono::milliseconds timeout,
                            Done done) override {
    // Of two ends, on two threads, the first counts.
    const auto once = [done = std::move(done),
                       ended = std::make_shared<std::atomic<bool>>(false)](
                          const absl::Status& status) {
      if (!ended->exchange(true)) done(status);
    };
    const OperationId operation =
        manager_.StartBeforeContainerStart(pod, container, once);
    executor_->PostAfter(
        timeout, [once, timeout, operation, &manager = manager_, container] {
          once(DeadlineExceededError(
              "container '{}': plugins have not answered within {}", container,
              SpanText(timeout)));
          manager.Cancel(operation);
        });
  }

  void WaitForChange(std::uint64_t version, VersionDone done) override {
    changes_.WaitFor(version, std::move(done));
  }

  void Report(const RuntimeReport& report, Done done) override {
    done(manager_.ReportRuntime(report));
  }

  void WaitForLook(const ShimIdentity& /*shim*/, std::uint64_t /*look*/,
                   LookDone done) override {
    done(FailedPreconditionError(
        "a manager in this process goes by its own source"));
  }

 private:
  DeviceManager& manager_;
  const std::shared_ptr<Executor> executor_;
  Changes changes_;
  const std::unique_ptr<Observation> observation_;  ///< Of `changes_`.
};

class DaemonSource : public DeviceSource {
 public:
  DaemonSource(rpc::Runtime& runtime, std::filesystem::path endpoint,
               std::chrono::milliseconds timeout, std::function<void()> on_lost)
      : runtime_(runtime),
        endpoint_(std::move(endpoint)),
        timeout_(timeout),
        on_lost_(std::move(on_lost)) {}

  void DevicesOf(const PodUid& pod, const ObjectName& name,
                 std::chrono::milliseconds timeout, DevicesDone done) override {
    pb::PodDevicesRequest request;
    request.set_uid(pod.value);
    *request.mutable_name() = server::ToProto(name);
    Call(
        "PodDevicesOf", request, timeout,
        [done = std::move(done)](const absl::StatusOr<std::string>& bytes) {
          if (!bytes.ok()) return done(bytes.status());
          const auto message = rpc::Decode<pb::PodDevices>(*bytes);
          if (!message.ok()) {
            return done(UnavailableError("the answer of devmgrd is invalid: {}",
                                         MessageOf(message.status())));
          }
          done(std::make_shared<const PodDevices>(server::FromProto(*message)));
        });
  }

  void BeforeContainerStart(const PodUid& pod, const ContainerName& container,
                            std::chrono::milliseconds timeout,
                            Done done) override {
    pb::BeforeContainerStartRequest request;
    request.set_uid(pod.value);
    request.set_container(container);
    Call("BeforeContainerStart", request, timeout,
         [done = std::move(done)](const absl::StatusOr<std::string>& bytes) {
           done(bytes.status());
         });
  }

  void WaitForChange(std::uint64_t version, VersionDone done) override {
    pb::WaitForChangeRequest request;
    request.set_version(version);
    request.set_wait_ms(version == 0 ? 0 : kLongPoll.count());
    Call("WaitForChange", request, kLongPoll + timeout_,
         NumberTo<pb::WaitForChangeResponse>(
             std::move(done), [](const auto& m) { return m.version(); }));
  }

  void Report(const RuntimeReport& report, Done done) override {
    Call("ReportRuntime", server::ToProto(report), timeout_,
         [done = std::move(done)](const absl::StatusOr<std::string>& bytes) {
           done(bytes.status());
         });
  }

  void WaitForLook(const ShimIdentity& shim, std::uint64_t look,
                   LookDone done) override {
    pb::RuntimeLookRequest request;
    request.set_name(shim.name);
    request.set_session(shim.session);
    request.set_look(look);
    request.set_wait_ms(look == 0 ? 0 : kLongPoll.count());
    Call("WaitForRuntimeLook", request, kLongPoll + timeout_,
         NumberTo<pb::RuntimeLookResponse>(
             std::move(done), [](const auto& m) { return m.look(); }));
  }

 private:
  /// Hands on the number in an answer.
  template <typename Response, typename Read>
  static rpc::CallDone NumberTo(VersionDone done, Read read) {
    return [done = std::move(done), read](absl::StatusOr<std::string> bytes) {
      if (!bytes.ok()) return done(bytes.status());
      const auto message = rpc::Decode<Response>(*bytes);
      if (!message.ok()) {
        return done(UnavailableError("the answer of devmgrd is invalid: {}",
                                     MessageOf(message.status())));
      }
      done(read(*message));
    };
  }

  void Call(std::string_view method,
            const google::protobuf::MessageLite& request,
            std::chrono::milliseconds timeout, rpc::CallDone done) {
    if (connection_ == nullptr || connection_->over()) {
      connection_.reset();
      auto dialed = rpc::Dial(runtime_, endpoint_, on_lost_);
      if (!dialed.ok()) {
        return done(UnavailableError("devmgrd at '{}' cannot be reached: {}",
                                     endpoint_.string(),
                                     MessageOf(dialed.status())));
      }
      connection_ = *std::move(dialed);
    }
    connection_->Call(
        std::string(server::kServicePath) + std::string(method),
        rpc::Encode(request), {timeout},
        [endpoint = endpoint_.string(), timeout,
         done = std::move(done)](absl::StatusOr<std::string> bytes) {
          if (const auto code = bytes.status().code();
              code == absl::StatusCode::kCancelled ||
              code == absl::StatusCode::kUnimplemented) {
            // It stops, or is too old to tell.
            bytes = UnavailableError("no answer from devmgrd at '{}': {}",
                                     endpoint, MessageOf(bytes.status()));
          } else if (code == absl::StatusCode::kDeadlineExceeded) {
            bytes = DeadlineExceededError(
                "devmgrd at '{}' has not answered within {}: {}", endpoint,
                SpanText(timeout), MessageOf(bytes.status()));
          }
          done(std::move(bytes));
        });
  }

  rpc::Runtime& runtime_;
  const std::filesystem::path endpoint_;
  const std::chrono::milliseconds timeout_;
  const std::function<void()> on_lost_;
  std::unique_ptr<rpc::Connection> connection_;
};

}  // namespace

std::string NewShimSession() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}-{}", getpid(), now.count());
}

std::unique_ptr<DeviceSource> MakeManagerSource(
    DeviceManager& manager, std::shared_ptr<Executor> executor) {
  return std::make_unique<ManagerSource>(manager, std::move(executor));
}

std::unique_ptr<DeviceSource> MakeDaemonSource(
    rpc::Runtime& runtime, std::filesystem::path endpoint,
    std::chrono::milliseconds timeout, std::function<void()> on_lost) {
  return std::make_unique<DaemonSource>(runtime, std::move(endpoint), timeout,
                                        std::move(on_lost));
}

}  // namespace devmgr::shim
