// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/executor.h"
#include "cri/messages.h"
#include "rpc/connection.h"

namespace devmgr::shim {

/// CRI-O sends lists of up to 80 MiB.
inline constexpr int kMaxListBytes = 128 * 1024 * 1024;

/// A VersionRequest, encoded.
std::string VersionRequest();

/// What the runtime says of itself.
struct RuntimeIdentity {
  cri::VersionResponse version;
  cri::TextMap status_info;
};

/// What it runs.
struct RuntimeLists {
  std::vector<cri::Sandbox> sandboxes;
  std::vector<cri::Container> containers;
};

/// The shim's own questions to the runtime, beside what passes. Lives on
/// `executor`, where completions run, too; not destroyed from one.
class RuntimeClient {
 public:
  template <typename T>
  using Done = std::function<void(absl::StatusOr<T>)>;

  /// Both borrowed. `executor` must have stopped before this is destroyed.
  /// `on_lost` runs when the connection has ended that answers came over:
  /// what answers next may be another runtime.
  RuntimeClient(rpc::Runtime& runtime, Executor& executor,
                std::filesystem::path endpoint, std::function<void()> on_lost)
      : runtime_(runtime),
        executor_(executor),
        endpoint_(std::move(endpoint)),
        on_lost_(std::move(on_lost)) {}

  /// All over one connection, which is kept. Any number at a time. `known` runs
  /// when
  /// the runtime has said what it is; then come its lists, as streams where it
  /// has them. Errors, of either, name the endpoint and what was asked.
  ///   Unavailable  it is not there, or has gone meanwhile
  void Look(std::function<void(const RuntimeIdentity&)> known,
            Done<RuntimeLists> done);

  /// The same for a caller that asks often: without what Status says, and with
  /// lists at once. Containers are listed before sandboxes: one whose sandbox
  /// is not listed is gone by then.
  void Relist(std::function<void(const RuntimeIdentity&)> known,
              Done<RuntimeLists> done);

  /// A ContainerStatus. Any number at a time.
  ///   Unavailable  the runtime is not there, or has gone meanwhile
  /// and its own errors.
  void StatusOf(const std::string& container, Done<cri::ContainerStatus> done,
                bool verbose = true);

  /// A PodSandboxStatus. As StatusOf.
  void SandboxStatusOf(const std::string& sandbox,
                       Done<cri::SandboxStatus> done);

  /// Notices here and now that the connection has ended, if it has.
  void CheckConnection();

 private:
  /// Asks one thing after the other.
  class Looking;
  enum class Scope { kAll, kRelist };

  void Begin(Scope scope, std::function<void(const RuntimeIdentity&)> known,
             Done<RuntimeLists> done);
  absl::Status Connect();
  template <typename T>
  void AskOnce(std::string_view method, std::string request,
               absl::StatusOr<T> (*read)(std::string_view), Done<T> done);

  rpc::Runtime& runtime_;
  Executor& executor_;
  const std::filesystem::path endpoint_;
  const std::function<void()> on_lost_;
  std::unique_ptr<rpc::Connection> connection_;
  std::uint64_t connections_ = 0;  ///< So far: the number of `connection_`.
};

}  // namespace devmgr::shim
