// SPDX-License-Identifier: Apache-2.0
#include "hostile/hostile_peer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace devmgr::hostile {
namespace {

// Frames of HTTP/2: length, type, flags, stream, payload.
constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);
constexpr std::string_view kPing("\0\0\x8\6\0\0\0\0\0pingping", 17);
constexpr std::string_view kHalfAFrame("\0\0\6\4", 4);
constexpr std::string_view kOtherProtocol("HTTP/1.1 400 Bad Request\r\n\r\n");

/// Without waiting: how much went. The other side may be gone, or read nothing:
/// both are its right.
std::size_t Send(const UniqueFd& connection, std::string_view bytes) {
  const ssize_t sent = send(connection.get(), bytes.data(), bytes.size(),
                            MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

/// A beat's worth of a flood: some 60,000 frames a second.
std::string ManyPings() {
  constexpr int kCount = 600;
  std::string bytes;
  for (int i = 0; i < kCount; ++i) bytes += kPing;
  return bytes;
}

}  // namespace

std::string_view NameOf(Misbehaviour misbehaviour) {
  switch (misbehaviour) {
    case Misbehaviour::kRefuses:
      return "Refuses";
    case Misbehaviour::kAcceptsAndCloses:
      return "AcceptsAndCloses";
    case Misbehaviour::kIsSilent:
      return "IsSilent";
    case Misbehaviour::kAnswersHalf:
      return "AnswersHalf";
    case Misbehaviour::kSpeaksOtherwise:
      return "SpeaksOtherwise";
    case Misbehaviour::kFloods:
      return "Floods";
    case Misbehaviour::kIsReplacedUnderUs:
      return "IsReplacedUnderUs";
    case Misbehaviour::kAnswersLate:
      return "AnswersLate";
    case Misbehaviour::kServesOtherMethods:
      return "ServesOtherMethods";
    case Misbehaviour::kAnswersForAnother:
      return "AnswersForAnother";
    case Misbehaviour::kRegistersInALoop:
      return "RegistersInALoop";
    case Misbehaviour::kComesUnderOtherNames:
      return "ComesUnderOtherNames";
  }
  return "";
}

HostilePeer::HostilePeer(Misbehaviour misbehaviour, std::filesystem::path path)
    : misbehaviour_(misbehaviour), path_(std::move(path)) {
  Bind();
  thread_ = std::thread([this] { Run(); });
}

HostilePeer::~HostilePeer() {
  stop_ = true;
  thread_.join();
}

void HostilePeer::Bind() {
  unlink(path_.c_str());
  listener_ =
      UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)),
            0);
  if (misbehaviour_ == Misbehaviour::kRefuses) return;
  ASSERT_EQ(listen(listener_.get(), 64), 0);
}

void HostilePeer::Run() {
  GiveWayToRealTime();
  while (!stop_) {
    // A socket that does not listen is always ready: it has hung up.
    const bool listens = misbehaviour_ != Misbehaviour::kRefuses;
    pollfd ready{listens ? listener_.get() : -1, POLLIN, 0};
    poll(&ready, 1, static_cast<int>(kBeat.count()));
    UniqueFd connection(
        accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.valid()) {
      ++accepted_;
      OnConnection(std::move(connection));
    } else {
      Work();
    }
  }
}

void HostilePeer::OnConnection(UniqueFd connection) {
  switch (misbehaviour_) {
    case Misbehaviour::kAcceptsAndCloses:
      return;
    case Misbehaviour::kAnswersHalf:
      Send(connection, kHalfAFrame);
      return;
    case Misbehaviour::kSpeaksOtherwise:
      Send(connection, kOtherProtocol);
      break;
    case Misbehaviour::kFloods:
      Send(connection, kSettings);
      break;
    default:
      break;
  }
  connections_.push_back({std::move(connection)});
}

void HostilePeer::Work() {
  if (misbehaviour_ == Misbehaviour::kIsReplacedUnderUs) {
    connections_.clear();
    Bind();
  }
  if (misbehaviour_ != Misbehaviour::kFloods) return;
  static const std::string kFlood = ManyPings();
  for (Held& held : connections_) {
    char answers[65'536];
    while (recv(held.fd.get(), answers, sizeof(answers), MSG_DONTWAIT) > 0) {
    }
    // It goes on in the middle of a frame, where the socket was full.
    const std::string_view rest = std::string_view(kFlood).substr(held.flooded);
    held.flooded = (held.flooded + Send(held.fd, rest)) % kFlood.size();
  }
}

}  // namespace devmgr::hostile
