// SPDX-License-Identifier: Apache-2.0
#include "hostile/hostile_client.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "hostile/hostile_peer.h"
#include "rpc/unix_socket.h"
#include "support/raw_frames.h"

namespace devmgr::hostile {
namespace {

constexpr int kCallsABeat = 50;
constexpr int kConnectionsABeat = 10;
/// What may wait in us for the other side to read.
constexpr std::size_t kMaxUnsent = 1 << 20;

}  // namespace

std::string_view NameOf(ClientMisbehaviour misbehaviour) {
  switch (misbehaviour) {
    case ClientMisbehaviour::kSaysNothing:
      return "SaysNothing";
    case ClientMisbehaviour::kSendsHalf:
      return "SendsHalf";
    case ClientMisbehaviour::kSpeaksOtherwise:
      return "SpeaksOtherwise";
    case ClientMisbehaviour::kConnectsAndCloses:
      return "ConnectsAndCloses";
    case ClientMisbehaviour::kFloodsFrames:
      return "FloodsFrames";
    case ClientMisbehaviour::kFloodsCalls:
      return "FloodsCalls";
    case ClientMisbehaviour::kReadsNothing:
      return "ReadsNothing";
    case ClientMisbehaviour::kAsksForAnother:
      return "AsksForAnother";
    case ClientMisbehaviour::kSendsGarbage:
      return "SendsGarbage";
    case ClientMisbehaviour::kIsReplaced:
      return "IsReplaced";
    case ClientMisbehaviour::kComesUnderOtherNames:
      return "ComesUnderOtherNames";
  }
  return "";
}

HostileClient::HostileClient(ClientMisbehaviour misbehaviour,
                             std::filesystem::path path,
                             std::function<RawCall(int)> call)
    : misbehaviour_(misbehaviour),
      path_(std::move(path)),
      call_(std::move(call)),
      thread_([this] { Run(); }) {}

HostileClient::~HostileClient() {
  stop_ = true;
  thread_.join();
}

void HostileClient::Run() {
  GiveWayToRealTime();
  while (!stop_) {
    Act();
    std::this_thread::sleep_for(kBeat);
  }
}

void HostileClient::Act() {
  switch (misbehaviour_) {
    case ClientMisbehaviour::kSaysNothing:
      return Pile("");
    case ClientMisbehaviour::kSendsHalf:
      return Pile(Greeting().substr(0, kHttp2Preface.size() + 5));
    case ClientMisbehaviour::kSpeaksOtherwise:
      return Pile("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    case ClientMisbehaviour::kConnectsAndCloses:
      Pile("");
      return lines_.clear();
    case ClientMisbehaviour::kIsReplaced:
      lines_.clear();
      return Flood(1);
    default:
      return Flood(kCallsABeat);
  }
}

bool HostileClient::Connect(Line* line) {
  auto fd = rpc::ConnectUnix(path_);
  if (!fd.ok()) return false;  // It is not to be had now.
  ++connected_;
  line->fd = *std::move(fd);
  return true;
}

void HostileClient::Pile(std::string_view bytes) {
  for (int i = 0; i < kConnectionsABeat; ++i) {
    Line line;
    if (!Connect(&line)) return;
    line.unsent = bytes;
    if (Flush(&line)) lines_.push_back(std::move(line));
  }
}

void HostileClient::Flood(int calls) {
  if (lines_.empty()) {
    Line line;
    if (!Connect(&line)) return;
    line.unsent = Greeting();
    lines_.push_back(std::move(line));
  }
  Line& line = lines_.front();
  if (misbehaviour_ != ClientMisbehaviour::kReadsNothing) Drain(line);
  for (int i = 0; i < calls && line.unsent.size() < kMaxUnsent; ++i) {
    RawCall call = call_(0);
    switch (misbehaviour_) {
      case ClientMisbehaviour::kFloodsFrames:
        line.unsent += RawFrame(6, 0, 0, "pingping");
        continue;
      case ClientMisbehaviour::kAsksForAnother:
        call.method = i % 2 == 0 ? call.method + "2" : "/no.Service/Method";
        break;
      case ClientMisbehaviour::kSendsGarbage:
        call.message = std::string(100, '\xff');
        break;
      case ClientMisbehaviour::kComesUnderOtherNames:
        call = call_(++name_);
        break;
      default:
        break;
    }
    Call(&line, call);
  }
  if (!Flush(&line)) lines_.clear();
}

void HostileClient::Call(Line* line, const RawCall& call) {
  ++called_;
  line->unsent += CallFrames(line->next_stream, call.method, call.message);
  line->next_stream += 2;
}

bool HostileClient::Flush(Line* line) {
  while (!line->unsent.empty()) {
    const ssize_t sent = send(line->fd.get(), line->unsent.data(),
                              line->unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    line->unsent.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

void HostileClient::Drain(const Line& line) {
  char answers[65'536];
  while (recv(line.fd.get(), answers, sizeof(answers), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace devmgr::hostile
