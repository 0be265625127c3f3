// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "rpc/connection.h"

namespace devmgr::hostile {

/// The one list: each socket that we dial has to bear all of these.
enum class Misbehaviour {
  kRefuses,            ///< The file is there, and nobody listens.
  kAcceptsAndCloses,   ///< At once.
  kIsSilent,           ///< Accepts, and that is all.
  kAnswersHalf,        ///< Half a frame, and closes.
  kSpeaksOtherwise,    ///< HTTP/1.1, and waits.
  kFloods,             ///< Frames without end, none of them an answer.
  kIsReplacedUnderUs,  ///< By another socket at the same path, again and again.
  kAnswersLate,        ///< But well.
  kAnswersForAnother,  ///< It serves none of our methods.
};
inline constexpr std::array kMisbehaviours = {
    Misbehaviour::kRefuses,           Misbehaviour::kAcceptsAndCloses,
    Misbehaviour::kIsSilent,          Misbehaviour::kAnswersHalf,
    Misbehaviour::kSpeaksOtherwise,   Misbehaviour::kFloods,
    Misbehaviour::kIsReplacedUnderUs, Misbehaviour::kAnswersLate,
    Misbehaviour::kAnswersForAnother,
};

/// As part of a test's name.
std::string_view NameOf(Misbehaviour misbehaviour);

/// So late is kAnswersLate; shorter than the deadlines of the tests.
inline constexpr std::chrono::milliseconds kLate{200};

/// A peer that misbehaves at the socket `path`, in a thread of its own, until
/// it is destroyed. The two kinds that speak gRPC are not for it: see
/// ServesGrpc.
class HostilePeer {
 public:
  HostilePeer(Misbehaviour misbehaviour, std::filesystem::path path);
  ~HostilePeer();

  static bool ServesGrpc(Misbehaviour misbehaviour) {
    return misbehaviour == Misbehaviour::kAnswersLate ||
           misbehaviour == Misbehaviour::kAnswersForAnother;
  }

 private:
  void Bind();
  void Run();
  void OnConnection(UniqueFd connection);
  void Work();

  const Misbehaviour misbehaviour_;
  const std::filesystem::path path_;
  UniqueFd listener_;
  std::vector<UniqueFd> connections_;  ///< Held open.
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace devmgr::hostile
