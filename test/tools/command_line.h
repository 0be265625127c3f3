// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "devmgrctl/files.h"
#include "devmgrctl/run.h"
#include "support/fake_inspector.h"
#include "support/fake_runtime_inspector.h"

namespace devmgr::ctl {

/// Runs devmgrctl in process, over a world the test makes up.
class CommandLineTest : public ::testing::Test {
 protected:
  struct Result {
    int code = 0;
    std::string out;
    std::string err;
  };

  Result Run(const std::vector<std::string>& arguments) {
    std::ostringstream out, err;
    const Environment environment{
        .out = out,
        .err = err,
        .out_is_terminal = terminal_,
        .getenv =
            [this](const char* name) {
              const auto found = variables_.find(name);
              return found == variables_.end() ? nullptr
                                               : found->second.c_str();
            },
        .connect =
            [this](const std::filesystem::path& endpoint,
                   std::chrono::milliseconds timeout) {
              return Connect(endpoint, timeout);
            },
        .open_state_dir = [this](const std::filesystem::path& directory)
            -> absl::StatusOr<std::unique_ptr<Inspector>> {
          state_dirs_.push_back(directory.string());
          if (!state_dir_error_.ok()) return state_dir_error_;
          return std::make_unique<FakeInspector>(node_);
        },
        .convert_state_dir =
            [this](const std::filesystem::path& directory, std::uint64_t format,
                   bool apply) -> absl::StatusOr<LedgerConversion> {
          conversions_.push_back(directory.string() + " to " +
                                 std::to_string(format) +
                                 (apply ? "" : ", shown"));
          return LedgerConversion{3, {"how a source is recognised"}};
        },
        .verify_kubelet = verify_kubelet_,
        .import_kubelet = import_kubelet_,
        .export_kubelet = export_kubelet_,
        .connect_runtime = [this](const std::filesystem::path& endpoint,
                                  std::chrono::milliseconds)
            -> absl::StatusOr<std::unique_ptr<RuntimeInspector>> {
          runtimes_.push_back(endpoint.string());
          return std::make_unique<FakeRuntimeInspector>(runtime_);
        },
        .connect_pod_resources = connect_pod_resources_,
        .now = [this] { return now_; },
        .steady_now = [this] { return steady_now_; },
        .pause =
            [this](std::chrono::milliseconds time) {
              Pass(time);
              if (on_pause_) on_pause_();
            },
        .on_printed =
            [this] {
              ++printed_;
              if (on_printed_) on_printed_();
            },
        .open_cdi_dirs = open_cdi_dirs_,
        .read_file = ReadFile,
        .replace_file = ReplaceFile,
    };
    Result result;
    result.code = ctl::Run(arguments, environment);
    result.out = out.str();
    result.err = err.str();
    return result;
  }

  nlohmann::ordered_json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::ordered_json::parse(result.out, nullptr, false);
  }

  void Pass(std::chrono::milliseconds time) {
    now_ += time;
    steady_now_ += time;
  }

  static PodInfo MakePod(const std::string& ns, const std::string& name,
                         PodState state) {
    PodInfo pod;
    pod.name = {ns, name};
    pod.uid = {"uid-" + name};
    pod.state = state;
    return pod;
  }

  FakeNode node_;
  FakeRuntimeView runtime_;
  absl::Status connect_error_;
  absl::Status state_dir_error_;
  std::map<std::string, std::string> variables_;
  bool terminal_ = false;
  WallTime now_{std::chrono::hours(24 * 365 * 50)};
  std::chrono::steady_clock::time_point steady_now_{std::chrono::hours(1)};
  std::function<void()> on_pause_;
  /// In place of a fake inspector.
  std::function<absl::StatusOr<std::unique_ptr<Inspector>>(
      const std::filesystem::path&, std::chrono::milliseconds)>
      connect_;
  std::vector<std::string> endpoints_;
  std::vector<std::chrono::milliseconds> timeouts_;
  std::vector<std::string> state_dirs_;
  std::vector<std::string> conversions_;
  std::function<absl::StatusOr<std::vector<KubeletFile>>(
      const std::filesystem::path&)>
      verify_kubelet_ = VerifyKubeletFiles;
  std::function<absl::StatusOr<KubeletImport>(const KubeletImportOptions&)>
      import_kubelet_ = ImportKubelet;
  std::function<absl::StatusOr<KubeletExport>(const KubeletExportOptions&)>
      export_kubelet_ = ExportKubelet;
  std::vector<std::string> runtimes_;
  std::function<void()> on_printed_;
  std::function<absl::StatusOr<std::unique_ptr<CdiCache>>(CdiCacheOptions)>
      open_cdi_dirs_ = CdiCache::Open;
  std::function<absl::StatusOr<std::unique_ptr<PodResourcesClient>>(
      const std::filesystem::path&, std::chrono::milliseconds)>
      connect_pod_resources_ = PodResourcesClient::Connect;
  int printed_ = 0;

 private:
  absl::StatusOr<std::unique_ptr<Inspector>> Connect(
      const std::filesystem::path& endpoint,
      std::chrono::milliseconds timeout) {
    endpoints_.push_back(endpoint.string());
    timeouts_.push_back(timeout);
    if (connect_) return connect_(endpoint, timeout);
    if (!connect_error_.ok()) return connect_error_;
    return std::make_unique<FakeInspector>(node_);
  }
};

}  // namespace devmgr::ctl
