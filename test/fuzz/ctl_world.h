// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "devmgrctl/environment.h"
#include "support/fake_inspector.h"
#include "support/fake_runtime_inspector.h"

namespace devmgr::fuzz {

/// The world of one run of devmgrctl: a node that has one of everything, whose
/// drivers and files say `weather`, and where nothing lasts for ever. The first
/// character decides whether the daemon is there, and whether somebody looks.
class CtlWorld {
 public:
  explicit CtlWorld(const std::string& weather) {
    const char first = weather.empty() ? '\0' : weather.front();
    terminal_ = (first & 1) != 0;
    if ((first & 2) != 0) node_.health = absl::UnavailableError("away");
    if ((first & 4) != 0) connect_ = absl::UnavailableError("not there");
    text_ = weather;
    Furnish();
  }

  ctl::Environment environment() {
    return {
        .out = out_,
        .err = err_,
        .out_is_terminal = terminal_,
        .getenv = [](const char*) -> const char* { return nullptr; },
        .connect = [this](const auto&, auto) { return Connect(); },
        .open_state_dir = [this](const auto&) { return Connect(); },
        .connect_runtime = [this](const auto&, auto)
            -> absl::StatusOr<std::unique_ptr<RuntimeInspector>> {
          return std::make_unique<FakeRuntimeInspector>(runtime_);
        },
        .connect_pod_resources = [](const auto&, auto)
            -> absl::StatusOr<std::unique_ptr<PodResourcesClient>> {
          return absl::UnavailableError("no socket is asked");
        },
        .now = [this] { return now_; },
        .steady_now = [this] { return steady_now_; },
        .pause = [this](std::chrono::milliseconds time) { Pass(time); },
        .on_printed = nullptr,
        .open_cdi_dirs =
            [](const auto&) -> absl::StatusOr<std::unique_ptr<CdiCache>> {
          return absl::PermissionDeniedError("no directory is read");
        },
        .read_file = [](const auto&) -> absl::StatusOr<std::string> {
          return absl::NotFoundError("no file is read");
        },
        .replace_file = [](const auto&, auto) -> absl::Status {
          return absl::PermissionDeniedError("no file is written");
        },
    };
  }

  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }

 private:
  absl::StatusOr<std::unique_ptr<Inspector>> Connect() {
    if (!connect_.ok()) return connect_;
    return std::make_unique<FakeInspector>(node_);
  }

  /// The daemon comes, the pods get ready, and then it all ends: a command
  /// that waits without a limit must not.
  void Pass(std::chrono::milliseconds time) {
    now_ += time;
    steady_now_ += time;
    ++passed_;
    if (passed_ == 2) connect_ = absl::OkStatus();
    if (passed_ == 3) node_.health = absl::OkStatus();
    if (passed_ == 4) {
      for (PodInfo& pod : node_.pods) pod.state = PodState::kReady;
      ++node_.version;
    }
    if (passed_ >= 6) node_.health = absl::InternalError("the end");
  }

  void Furnish();
  void AddPod(const std::string& ns, const std::string& name, PodState state);

  FakeNode node_;
  FakeRuntimeView runtime_;
  absl::Status connect_;
  std::string text_;
  bool terminal_ = false;
  int passed_ = 0;
  WallTime now_{std::chrono::hours(24 * 365 * 50)};
  std::chrono::steady_clock::time_point steady_now_{std::chrono::hours(1)};
  std::ostringstream out_;
  std::ostringstream err_;
};

}  // namespace devmgr::fuzz
