// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "hostile/costs.h"

namespace devmgr::hostile {

/// The one list: each socket that we serve has to bear all of these.
enum class ClientMisbehaviour {
  kSaysNothing,           ///< Connects, again and again, and stays.
  kSendsHalf,             ///< The same, with half a frame.
  kSpeaksOtherwise,       ///< The same, in HTTP/1.1.
  kConnectsAndCloses,     ///< Without end.
  kFloodsFrames,          ///< None of which is a call.
  kFloodsCalls,           ///< Well-formed ones, and reads what is answered.
  kReadsNothing,          ///< The same, and does not.
  kAsksForAnother,        ///< For methods and services that are not there.
  kSendsGarbage,          ///< In place of requests.
  kIsReplaced,            ///< Calls, is gone, and is there again.
  kComesUnderOtherNames,  ///< Calls as one more client each time.
};
inline constexpr std::array kClientMisbehaviours = {
    ClientMisbehaviour::kSaysNothing,
    ClientMisbehaviour::kSendsHalf,
    ClientMisbehaviour::kSpeaksOtherwise,
    ClientMisbehaviour::kConnectsAndCloses,
    ClientMisbehaviour::kFloodsFrames,
    ClientMisbehaviour::kFloodsCalls,
    ClientMisbehaviour::kReadsNothing,
    ClientMisbehaviour::kAsksForAnother,
    ClientMisbehaviour::kSendsGarbage,
    ClientMisbehaviour::kIsReplaced,
    ClientMisbehaviour::kComesUnderOtherNames,
};

/// As part of a test's name.
std::string_view NameOf(ClientMisbehaviour misbehaviour);

/// A call as it is sent: no gRPC stands in between.
struct RawCall {
  std::string method;   ///< Full path.
  std::string message;  ///< Serialised.
};

/// A client that misbehaves at the socket `path`, in a thread of its own, until
/// it is destroyed. Each beat it does fifty of what it does, or has ten
/// connections more.
class HostileClient {
 public:
  /// `call` gives the call to make: 0 always gives the same, each other number
  /// that of another client. On the client's thread.
  HostileClient(ClientMisbehaviour misbehaviour, std::filesystem::path path,
                std::function<RawCall(int)> call);
  ~HostileClient();

  /// Connections that were taken, and calls that were sent so far.
  int connections() const { return connected_; }
  int calls() const { return called_; }
  std::chrono::nanoseconds processor_time() { return ProcessorTimeOf(thread_); }

 private:
  struct Line {
    UniqueFd fd;
    std::uint32_t next_stream = 1;
    std::string unsent;
  };

  void Run();
  void Act();
  bool Connect(Line* line);
  /// Connections that stay, each with these bytes.
  void Pile(std::string_view bytes);
  void Flood(int calls);
  void Call(Line* line, const RawCall& call);
  /// False when the line is over.
  bool Flush(Line* line);
  void Drain(const Line& line);

  const ClientMisbehaviour misbehaviour_;
  const std::filesystem::path path_;
  const std::function<RawCall(int)> call_;
  std::vector<Line> lines_;
  int name_ = 0;
  std::atomic<int> connected_{0};
  std::atomic<int> called_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace devmgr::hostile
