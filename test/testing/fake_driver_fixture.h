// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/testing.h>
#include <devmgr/wire/dra/v1/dra.pb.h>
#include <devmgr/wire/dra/v1beta1/dra.pb.h>
#include <devmgr/wire/pluginregistration/v1/registration.pb.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "rpc/connection.h"

namespace devmgr::testing {

namespace v1 = wire::dra::v1;
namespace v1beta1 = wire::dra::v1beta1;
namespace registration = wire::pluginregistration::v1;

inline constexpr std::chrono::milliseconds kLimit{30'000};
inline constexpr char kDriver[] = "gpu.example.com";

/// Answers of calls under way, to wait for.
class PendingAnswer {
 public:
  void Set(absl::StatusOr<std::string> answer);
  /// Waits for it; DeadlineExceeded after `limit`.
  absl::StatusOr<std::string> Wait(std::chrono::milliseconds limit = kLimit);
  bool ready() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool set_ DEVMGR_GUARDED_BY(mutex_) = false;
  absl::StatusOr<std::string> answer_ DEVMGR_GUARDED_BY(mutex_);
};

/// The result of a claim in a manifest.
struct Result {
  std::string request = "gpu";
  std::string device = "gpu-0";
  std::string driver = kDriver;
  std::string pool = "pool-0";
  std::string share_id;
};

/// A fake driver in a fresh folder, and a manager's side of its sockets.
class FakeDriverFixture : public ::testing::Test {
 protected:
  FakeDriverFixture();
  ~FakeDriverFixture() override;

  FakeDraDriverOptions Options();
  /// Starts (or starts anew) the driver; fails the test if it cannot.
  void StartDriver(FakeDraDriverOptions options);
  void StartDriver() { StartDriver(Options()); }

  /// Writes `manifests/<name>.yaml`. Without results: not allocated.
  void WriteClaim(const std::string& name, const std::string& uid,
                  const std::vector<Result>& results);
  void RemoveManifest(const std::string& name);

  std::filesystem::path ServiceSocket() const;
  std::filesystem::path RegistrationSocket() const;
  /// A new connection; null when nobody answers there.
  std::unique_ptr<rpc::Connection> Dial(const std::filesystem::path& socket,
                                        std::function<void()> on_hang_up = {});

  /// Calls on the driver's current service socket, dialled when needed.
  std::shared_ptr<PendingAnswer> StartCall(const std::string& method,
                                           const std::string& request);
  absl::StatusOr<std::string> Call(const std::string& method,
                                   const std::string& request) {
    return StartCall(method, request)->Wait();
  }
  void HangUp() { service_.reset(); }

  std::shared_ptr<PendingAnswer> StartPrepare(
      const std::map<std::string, std::string>& uid_by_name);
  absl::StatusOr<v1::NodePrepareResourcesResponse> Prepare(
      const std::map<std::string, std::string>& uid_by_name);
  absl::StatusOr<v1::NodeUnprepareResourcesResponse> Unprepare(
      const std::map<std::string, std::string>& uid_by_name);
  absl::StatusOr<registration::PluginInfo> GetInfo();
  absl::Status Notify(bool registered, const std::string& error);

  /// Names of files in a folder below the root, sorted.
  std::vector<std::string> FilesIn(const std::string& folder) const;
  nlohmann::json SpecOf(const std::string& uid) const;
  /// Events so far of one kind.
  std::vector<nlohmann::json> Events(const std::string& kind) const;
  bool WaitForEvent(const std::string& kind) const {
    return WaitForEvents(kind, 1);
  }
  /// Waits until there are so many of one kind.
  bool WaitForEvents(const std::string& kind, std::size_t count) const;

  std::filesystem::path root_;
  std::unique_ptr<rpc::Runtime> runtime_;
  std::unique_ptr<FakeDraDriver> driver_;
  std::unique_ptr<rpc::Connection> service_;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<nlohmann::json> events_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::testing
