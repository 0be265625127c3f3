// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "hostile/costs.h"

namespace devmgr::hostile {

/// The one list: each socket that we dial has to bear all of these.
enum class Misbehaviour {
  kRefuses,               ///< The file is there, and nobody listens.
  kAcceptsAndCloses,      ///< At once.
  kIsSilent,              ///< Accepts, and that is all.
  kAnswersHalf,           ///< Half a frame, and closes.
  kSpeaksOtherwise,       ///< HTTP/1.1, and waits.
  kFloods,                ///< Frames without end, none of them an answer.
  kIsReplacedUnderUs,     ///< By another socket at the same path, and again.
  kAnswersLate,           ///< But well.
  kServesOtherMethods,    ///< It serves none of ours.
  kAnswersForAnother,     ///< About what it was not asked about.
  kRegistersInALoop,      ///< And does its work.
  kComesUnderOtherNames,  ///< The same, each time under another one.
};
inline constexpr std::array kMisbehaviours = {
    Misbehaviour::kRefuses,
    Misbehaviour::kAcceptsAndCloses,
    Misbehaviour::kIsSilent,
    Misbehaviour::kAnswersHalf,
    Misbehaviour::kSpeaksOtherwise,
    Misbehaviour::kFloods,
    Misbehaviour::kIsReplacedUnderUs,
    Misbehaviour::kAnswersLate,
    Misbehaviour::kServesOtherMethods,
    Misbehaviour::kAnswersForAnother,
    Misbehaviour::kRegistersInALoop,
    Misbehaviour::kComesUnderOtherNames,
};

/// By itself or in what it says, it registers time and again.
inline constexpr bool ComesAgain(Misbehaviour misbehaviour) {
  return misbehaviour == Misbehaviour::kRegistersInALoop ||
         misbehaviour == Misbehaviour::kComesUnderOtherNames;
}

/// As part of a test's name.
std::string_view NameOf(Misbehaviour misbehaviour);

/// So late is kAnswersLate; shorter than the deadlines of the tests.
inline constexpr std::chrono::milliseconds kLate{200};

/// The rhythm of those that act by themselves.
inline constexpr std::chrono::milliseconds kBeat{10};

/// A peer that misbehaves below gRPC at the socket `path`, in a thread of its
/// own, until it is destroyed.
class HostilePeer {
 public:
  HostilePeer(Misbehaviour misbehaviour, std::filesystem::path path);
  ~HostilePeer();

  /// Connections that it took.
  int accepted() const { return accepted_; }
  std::chrono::nanoseconds processor_time() { return ProcessorTimeOf(thread_); }

 private:
  struct Held {
    UniqueFd fd;
    std::size_t flooded = 0;  ///< So far of the flood that begins anew then.
  };

  void Bind();
  void Run();
  void OnConnection(UniqueFd connection);
  void Work();

  const Misbehaviour misbehaviour_;
  const std::filesystem::path path_;
  UniqueFd listener_;
  std::vector<Held> connections_;
  std::atomic<int> accepted_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Calls `act` at each beat, with the number of it, from 1.
class Beat {
 public:
  explicit Beat(std::function<void(int)> act)
      : thread_([this, act = std::move(act)] {
          GiveWayToRealTime();
          for (int i = 1; !stop_; ++i) {
            act(i);
            std::this_thread::sleep_for(kBeat);
          }
        }) {}
  ~Beat() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace devmgr::hostile
