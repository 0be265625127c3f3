// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/runtime_source.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/executor.h"
#include "rpc/server.h"
#include "server/access.h"
#include "server/convert.h"

namespace devmgr::server {

/// CRI shims that wait for the next look at their runtimes: a long poll of
/// each. The source hears when a shim goes: its call ends before it is
/// answered, or it does not ask again. Lives on `executor`.
class LookWatch {
 public:
  /// The longest a call is held; the shim asks again.
  static constexpr std::chrono::milliseconds kMaxWait{60'000};
  /// A shim that has got an answer asks again within this time.
  static constexpr std::chrono::milliseconds kPatience{10'000};
  /// Calls that wait, and sessions whose next call is waited for.
  static constexpr std::size_t kMaxWaiting = 128;

  /// `source` may be null: no shim is asked to look. All are borrowed. No
  /// handler may run and the executor must have stopped before this goes.
  LookWatch(ReportedRuntimeSource* source, Executor& executor,
            const Access& access);
  ~LookWatch();
  LookWatch(const LookWatch&) = delete;
  LookWatch& operator=(const LookWatch&) = delete;

  /// By method path; callable from any thread. On the wire a method with one
  /// answer, served as a stream because only those say when their client goes.
  std::map<std::string, rpc::StreamHandler> Streams();

 private:
  using StreamPtr = std::shared_ptr<rpc::ServerStream>;
  struct Waiting {
    std::string session;  ///< Empty: of a shim that is too old to say.
    StreamPtr stream;
    TimerId timer = 0;
  };

  void Add(const pb::RuntimeLookRequest& request, const StreamPtr& stream);
  /// With the look that is wanted now.
  void Answer(const std::string& session, const StreamPtr& stream);
  void AnswerAll();
  void OnGone(std::uint64_t call);
  void OnSilent(const std::string& session);

  ReportedRuntimeSource* const source_;
  Executor& executor_;
  const Access& access_;
  std::uint64_t last_call_ = 0;
  std::map<std::uint64_t, Waiting> waiting_;
  std::map<std::string, TimerId> answered_;  ///< Sessions that have to ask.
};

}  // namespace devmgr::server
