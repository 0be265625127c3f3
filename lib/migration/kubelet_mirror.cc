// SPDX-License-Identifier: Apache-2.0
#include <devmgr/kubelet_mirror.h>
#include <fmt/core.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "checkpoint/kubelet/device_checkpoint.h"
#include "common/atomic_file.h"
#include "common/executor.h"
#include "common/status.h"
#include "migration/mirrored_devices.h"
#include "view/node_view.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;

absl::Status Check(const KubeletMirrorOptions& options) {
  if (options.file.empty()) {
    return InvalidArgumentError("no file is given for the mirror");
  }
  std::error_code error;
  if (!options.file.is_absolute() || !options.file.has_filename() ||
      fs::is_directory(options.file, error)) {
    return InvalidArgumentError(
        "'{}' is not the absolute path of a file, which a mirror needs",
        options.file.string());
  }
  return absl::OkStatus();
}

class KubeletMirrorImpl final : public KubeletMirror,
                                public DeviceManagerObserver {
 public:
  KubeletMirrorImpl(DeviceManager& manager, const KubeletMirrorOptions& options)
      : manager_(manager), options_(options) {}

  void Begin() {
    observation_ = manager_.Observe(*this);
    Wake();
  }

  /// First nothing wakes it any more, then it writes the last time.
  ~KubeletMirrorImpl() override {
    observation_.reset();
    executor_->Post([this] { Write(); });
    executor_->Stop();
  }

  KubeletMirrorCounters Counters() const override {
    return {writes_, failures_};
  }

  void OnDeviceChanges() override { Wake(); }

 private:
  /// On any thread; does not wait.
  void Wake() {
    if (!is_due_.exchange(true)) {
      executor_->Post([this] { WriteUnlessJustDone(); });
    }
  }

  void WriteUnlessJustDone() {
    DEVMGR_ASSERT_ON(*executor_);
    if (pause_ != 0) return;  // Its end looks again.
    Write();
    pause_ = executor_->PostAfter(options_.pause, [this] {
      pause_ = 0;
      if (is_due_) WriteUnlessJustDone();
    });
  }

  void Write() {
    DEVMGR_ASSERT_ON(*executor_);
    executor_->Cancel(std::exchange(retry_, 0));
    is_due_ = false;
    const absl::Status status = WriteIfChanged();
    Report(status);
    if (status.ok()) return;
    retry_ = executor_->PostAfter(options_.retry, [this] {
      retry_ = 0;
      Wake();
    });
  }

  absl::Status WriteIfChanged() {
    // Before it is read to its end the ledger seems to hold less.
    DEVMGR_RETURN_IF_ERROR(manager_.WaitUntilLoaded());
    const std::shared_ptr<const NodeView> view = manager_.View();
    const view::Moment* moment = view::MomentOf(*view);
    if (moment == nullptr) {
      return UnimplementedError("this manager shows no ledger to be mirrored");
    }
    DEVMGR_ASSIGN_OR_RETURN(std::string bytes,
                            kubelet_checkpoint::EncodeDeviceCheckpoint(
                                migration::MirroredDevices(*moment)));
    if (written_ == bytes) return absl::OkStatus();
    DEVMGR_RETURN_IF_ERROR(KeepOther(moment->state));
    DEVMGR_RETURN_IF_ERROR(WriteFileAtomically(
        options_.file, bytes, IfPresent::kReplace, FileMode::kPrivate));
    ++writes_;
    written_ = std::move(bytes);
    return absl::OkStatus();
  }

  /// What was there before the first write of this process.
  absl::Status KeepOther(const state::State& state) {
    if (written_.has_value()) return absl::OkStatus();
    DEVMGR_ASSIGN_OR_RETURN(const std::optional<fs::path> kept,
                            migration::KeepOfOthers(options_.file, state));
    if (!kept.has_value()) return absl::OkStatus();
    Log(LogLevel::kWarning,
        fmt::format("the mirror of the kubelet's checkpoint replaces '{}', "
                    "which is not of this node's pods: a copy is '{}'",
                    options_.file.string(), kept->string()));
    return absl::OkStatus();
  }

  void Report(const absl::Status& status) {
    if (!status.ok()) ++failures_;
    if (status.ok() == std::exchange(is_fine_, status.ok())) return;
    if (status.ok()) {
      Log(LogLevel::kInfo,
          fmt::format("the mirror of the kubelet's checkpoint, '{}', is "
                      "written again",
                      options_.file.string()));
    } else {
      Log(LogLevel::kWarning,
          fmt::format("the mirror of the kubelet's checkpoint, '{}', is not up "
                      "to date: {}",
                      options_.file.string(), MessageOf(status)));
    }
  }

  void Log(LogLevel level, const std::string& text) const {
    if (options_.log) options_.log(level, text);
  }

  DeviceManager& manager_;
  const KubeletMirrorOptions options_;
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("devmgr-mirror");
  std::atomic<bool> is_due_ = false;  ///< Something has changed.
  std::atomic<std::uint64_t> writes_ = 0;
  std::atomic<std::uint64_t> failures_ = 0;

  // On the executor.
  TimerId pause_ = 0;
  TimerId retry_ = 0;
  bool is_fine_ = true;
  std::optional<std::string> written_;  ///< What the file holds.

  std::unique_ptr<Observation> observation_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KubeletMirror>> KubeletMirror::Start(
    DeviceManager& manager, const KubeletMirrorOptions& options) {
  DEVMGR_RETURN_IF_ERROR(Check(options));
  auto mirror = std::make_unique<KubeletMirrorImpl>(manager, options);
  mirror->Begin();
  return mirror;
}

}  // namespace devmgr
