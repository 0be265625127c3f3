// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/mutex.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "rpc/server.h"
#include "support/mailbox.h"

namespace devmgr {

inline constexpr std::uint64_t kCriSecond = 1'000'000'000;

inline std::string CriField(std::uint32_t number, const std::string& value) {
  std::string bytes;
  cri::AppendBytesField(&bytes, number, value);
  return bytes;
}
inline std::string CriField(std::uint32_t number, std::uint64_t value) {
  std::string bytes;
  cri::AppendVarintField(&bytes, number, value);
  return bytes;
}

/// Items of lists: the sandbox of the pod with that UID has the ID `s-UID`.
inline std::string CriSandbox(const std::string& uid, bool ready,
                              std::uint64_t attempt = 0) {
  return CriField(
      1, CriField(1, "s-" + uid) +
             CriField(2, CriField(1, "pod-" + uid) + CriField(2, uid) +
                             CriField(3, "ns") + CriField(4, attempt)) +
             CriField(3, std::uint64_t{ready ? 0u : 1u}) +
             CriField(4, 5 * kCriSecond));
}
inline std::string CriContainer(const std::string& id, const std::string& uid,
                                const std::string& name, std::uint64_t state) {
  return CriField(
      1, CriField(1, id) + CriField(2, "s-" + uid) +
             CriField(3, CriField(1, name)) +
             CriField(4, CriField(1, "sha256:1") + CriField(18, "image:v1")) +
             CriField(5, "sha256:2") + CriField(6, state) +
             CriField(7, 6 * kCriSecond));
}
inline std::string CriStatus(const std::string& id, std::uint64_t state,
                             const std::string& end = "") {
  return CriField(1, CriField(1, id) + CriField(3, state) +
                         CriField(5, 7 * kCriSecond) + end);
}

/// A CRI runtime that has what a test says, over a real socket. It may come and
/// go.
class FakeCriRuntime {
 public:
  FakeCriRuntime() {
    Answer(cri::method::kVersion,
           CriField(2, "containerd") + CriField(3, "1.7.0"));
    Answer(cri::method::kPodSandboxStatus, "");
    Has("", "");
  }

  void Answer(std::string_view method, absl::StatusOr<std::string> answer) {
    const MutexLock lock(mutex_);
    answers_[std::string(method)] = std::move(answer);
  }
  void Has(const std::string& sandboxes, const std::string& containers) {
    Answer(cri::method::kListPodSandbox, sandboxes);
    Answer(cri::method::kListContainers, containers);
  }

  /// The method is not answered: what would answer it is put into `asked`,
  /// until that is null.
  void Hang(std::string_view method, Mailbox<rpc::Respond>* asked) {
    const MutexLock lock(mutex_);
    hanging_[std::string(method)] = asked;
  }

  bool Start(const std::filesystem::path& socket) {
    rpc::ServerOptions options;
    options.socket = socket;
    for (const std::string_view method :
         {cri::method::kVersion, cri::method::kListPodSandbox,
          cri::method::kListContainers, cri::method::kContainerStatus,
          cri::method::kPodSandboxStatus}) {
      options.methods[std::string(method)] = [this, method](
                                                 const std::string& request,
                                                 const rpc::Respond& respond) {
        if (method == cri::method::kContainerStatus) statuses.Put(request);
        if (method == cri::method::kListContainers) looks.Put(0);
        if (method == cri::method::kPodSandboxStatus) addresses.Put(0);
        if (Mailbox<rpc::Respond>* const asked = AskedOf(method)) {
          return asked->Put(respond);
        }
        respond(AnswerOf(method));
      };
    }
    // Calls of a client; what they do is up to the test.
    for (const std::string_view method :
         {cri::method::kRunPodSandbox, cri::method::kStopPodSandbox,
          cri::method::kRemovePodSandbox, cri::method::kCreateContainer,
          cri::method::kStartContainer, cri::method::kStopContainer,
          cri::method::kRemoveContainer}) {
      options.methods[std::string(method)] = [this, method](
                                                 const std::string& request,
                                                 const rpc::Respond& respond) {
        if (method == cri::method::kRunPodSandbox) {
          sandbox_requests.Put(request);
        }
        respond(CriField(1, "made"));
      };
    }
    auto server = rpc::Server::Start(std::move(options));
    if (server.ok()) server_ = *std::move(server);
    return server.ok();
  }
  void Stop() { server_.reset(); }

  Mailbox<std::string> statuses;  ///< Requests for the status of a container.
  Mailbox<int> looks;             ///< One for each list of containers.
  Mailbox<int> addresses;         ///< One for each status of a sandbox.
  Mailbox<std::string> sandbox_requests;  ///< Of RunPodSandbox.

 private:
  absl::StatusOr<std::string> AnswerOf(std::string_view method) {
    const MutexLock lock(mutex_);
    const auto found = answers_.find(std::string(method));
    if (found == answers_.end()) return absl::NotFoundError("no container");
    return found->second;
  }

  Mailbox<rpc::Respond>* AskedOf(std::string_view method) {
    const MutexLock lock(mutex_);
    const auto found = hanging_.find(std::string(method));
    return found == hanging_.end() ? nullptr : found->second;
  }

  Mutex mutex_;
  std::map<std::string, Mailbox<rpc::Respond>*> hanging_
      DEVMGR_GUARDED_BY(mutex_);
  std::map<std::string, absl::StatusOr<std::string>> answers_
      DEVMGR_GUARDED_BY(mutex_);
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace devmgr
