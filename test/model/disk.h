// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "checkpoint/ledger_store.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::model {

/// What survives the manager: an in-memory store, and on request the same
/// batches in a real store directory. Writes fail when told.
class Disk {
 public:
  /// Hears each batch when it is on disk; `told`: its writer hears so, too.
  using OnBatch = std::function<void(const state::Batch&, bool told)>;
  explicit Disk(OnBatch on_batch);

  enum class Failure {
    kNone,
    kLost,     ///< The write fails, and nothing is on disk.
    kWritten,  ///< It fails, but is on disk all the same.
  };
  void FailNext(Failure failure) { failure_ = failure; }
  void FailReopen(bool fail) { fail_reopen_ = fail; }
  void Mend();
  /// How many calls failed since it was mended or opened, or might.
  int failures() const;
  /// A write failed, and no opening after it has said what is on disk.
  bool in_doubt() const { return in_doubt_; }
  /// From now on the last opener's writes come to nothing, as when its process
  /// is gone.
  void CutOff() { ++opener_; }

  /// For the next manager. The one before is cut off.
  std::unique_ptr<checkpoint::LedgerStore> Open();
  state::State Load();

  /// Appends what is new to the store in `directory` (made on first use),
  /// closes it, opens it again and loads it.
  absl::StatusOr<state::State> LoadFrom(const std::filesystem::path& directory);

 private:
  class View;

  const OnBatch on_batch_;
  const std::shared_ptr<checkpoint::LedgerStore> store_;
  int opener_ = 0;
  Failure failure_ = Failure::kNone;
  bool fail_reopen_ = false;
  int failures_ = 0;
  bool in_doubt_ = false;
  std::vector<state::Batch> unsaved_;  ///< Not in the directory yet.
};

}  // namespace devmgr::model
