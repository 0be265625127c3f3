// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/executor.h"
#include "common/mutex.h"
#include "rpc/server.h"

namespace devmgr::bench {

/// How long a driver works, on one call after the other.
struct Pace {
  std::chrono::microseconds per_call{0};
  std::chrono::microseconds per_claim{0};
  bool hangs = false;  ///< It never answers.
};

/// A DRA driver that costs no more than it says: real sockets, no files.
class QuickDriver {
 public:
  /// As `devmgrd --root`; both sockets answer when it is made.
  QuickDriver(const std::filesystem::path& root, const std::string& name,
              Pace pace);
  ~QuickDriver();

  /// Waits until managers have accepted it so often.
  void WaitUntilRegistered(int times = 1);

  int prepare_calls() const;
  int unprepare_calls() const;
  std::filesystem::path socket() const;

 private:
  void Serve(bool prepare, const std::string& request, rpc::Respond respond);
  std::map<std::string, rpc::UnaryHandler> RegistrationMethods(
      const std::string& name);

  const std::filesystem::path root_;
  const std::filesystem::path folder_;
  const Pace pace_;
  mutable Mutex mutex_;
  CondVar changed_;
  int registrations_ DEVMGR_GUARDED_BY(mutex_) = 0;
  int prepare_calls_ DEVMGR_GUARDED_BY(mutex_) = 0;
  int unprepare_calls_ DEVMGR_GUARDED_BY(mutex_) = 0;
  std::vector<rpc::Respond> hanging_ DEVMGR_GUARDED_BY(mutex_);
  const std::unique_ptr<ThreadExecutor> worker_;
  std::unique_ptr<rpc::Server> service_;
  std::unique_ptr<rpc::Server> registration_;
};

}  // namespace devmgr::bench
