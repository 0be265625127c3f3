// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/connection.h"

namespace devmgr {

/// A pod's sandbox as the tests have it: in the host's network.
struct TestSandbox {
  std::string name;
  std::string uid;  ///< Empty: as crictl makes them.
  std::string ns = "default";
  std::uint32_t attempt = 0;
  std::filesystem::path log_directory;
};

struct TestContainer {
  std::string name;
  std::vector<std::string> command;
  std::vector<NamedValue> env = {};
  std::vector<std::string> cdi_devices = {};
  std::vector<NamedValue> annotations = {};
  std::uint32_t attempt = 0;
};

/// A CRI client of few words, as far as tests need one. Blocks.
class CriClient {
 public:
  /// Waits until somebody listens there. Null when nobody does in time.
  static std::unique_ptr<CriClient> Connect(
      const std::filesystem::path& socket);

  absl::StatusOr<std::string> Version();
  absl::StatusOr<std::string> RunPodSandbox(const TestSandbox& sandbox);
  /// `image` as it was imported. Logs go to `<name>_<attempt>.log` in the
  /// sandbox's folder. `with_sandbox_config`: whether it goes along, as the
  /// kubelet does it.
  absl::StatusOr<std::string> CreateContainer(const std::string& sandbox_id,
                                              const TestSandbox& sandbox,
                                              const std::string& image,
                                              const TestContainer& container,
                                              bool with_sandbox_config = true);
  absl::Status StartContainer(const std::string& id);
  absl::Status StopContainer(const std::string& id);
  absl::Status RemoveContainer(const std::string& id);
  /// Its exit code, once it has ended; the state otherwise is what the error
  /// says.
  absl::StatusOr<int> WaitForExit(const std::string& id);
  absl::StatusOr<bool> IsRunning(const std::string& id);
  absl::StatusOr<std::vector<std::string>> Sandboxes();
  /// Value of an annotation of a container, as the runtime lists it.
  absl::StatusOr<std::optional<std::string>> Annotation(const std::string& id,
                                                        const std::string& key);
  absl::Status StopAndRemoveSandbox(const std::string& id);

  /// What the container wrote to stdout.
  static std::string Output(const TestSandbox& sandbox,
                            const TestContainer& container);

 private:
  CriClient(std::unique_ptr<rpc::Runtime> runtime,
            std::unique_ptr<rpc::Connection> connection)
      : runtime_(std::move(runtime)), connection_(std::move(connection)) {}

  absl::StatusOr<std::string> Call(std::string_view method,
                                   std::string request);
  /// A method whose request has an id in field 1.
  absl::StatusOr<std::string> CallWithId(std::string_view method,
                                         const std::string& id);

  const std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<rpc::Connection> connection_;
};

}  // namespace devmgr
