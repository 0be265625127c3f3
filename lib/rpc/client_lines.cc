// SPDX-License-Identifier: Apache-2.0
#include "rpc/client_lines.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "rpc/unix_socket.h"

namespace devmgr::rpc {
namespace {

/// Of a process: its user and its number, 0 and 0 where they are not known.
using ProcessKey = std::pair<uid_t, pid_t>;

ProcessKey KeyOf(const std::optional<PeerCredentials>& peer) {
  return peer.has_value() ? ProcessKey{peer->uid, peer->pid} : ProcessKey{};
}

}  // namespace

ClientLines::~ClientLines() {
  Lines lines;
  {
    MutexLock lock(mutex_);
    // Those that another thread has taken out, and is about to close.
    while (closing_ > 0) closed_.Wait(mutex_);
    lines.swap(lines_);
    by_fd_.clear();
  }
  for (const auto& [id, line] : lines) poller_.Unwatch(line.watch);
}

ClientLines::Added ClientLines::Add(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  const auto peer = CredentialsOf(fd);
  std::vector<Line> over;
  Added added;
  {
    MutexLock lock(mutex_);
    hung_up_.erase(fd);
    // The number is in use anew: that connection is over.
    if (const auto known = by_fd_.find(fd); known != by_fd_.end()) {
      over.push_back(TakeLocked(lines_.find(known->second)));
    }
    added.was_full = lines_.size() >= max_connections_;
    if (added.was_full) {
      MakeRoomLocked(peer.ok() ? Peer(*peer) : std::nullopt, over);
    }
    if (copy.valid() && lines_.size() < max_connections_) {
      added.taken = PutLocked(fd, std::move(copy), over);
    }
    if (added.was_full || !added.taken) ++turned_away_;
  }
  for (const Line& line : over) Close(line);
  return added;
}

void ClientLines::MakeRoomLocked(const Peer& newcomer,
                                 std::vector<Line>& over) {
  auto found = std::find_if(lines_.begin(), lines_.end(), [](const auto& line) {
    return !line.second.has_called;
  });
  if (found == lines_.end()) found = FindOneOfManyLocked(newcomer);
  if (found == lines_.end()) return;
  shutdown(found->second.copy.get(), SHUT_RDWR);
  over.push_back(TakeLocked(found));
}

ClientLines::Lines::iterator ClientLines::FindOneOfManyLocked(
    const Peer& newcomer) {
  std::map<ProcessKey, std::size_t> counts;
  for (const auto& [id, line] : lines_) ++counts[KeyOf(line.peer)];
  const auto most = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto own = counts.find(KeyOf(newcomer));
  const std::size_t has = own != counts.end() ? own->second : 0;
  if (most == counts.end() || most->second <= std::max<std::size_t>(has, 1)) {
    return lines_.end();
  }
  auto found = lines_.end();
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    if (KeyOf(line->second.peer) != most->first) continue;
    if (line->second.open_calls == 0) return line;
    if (found == lines_.end()) found = line;
  }
  return found;
}

bool ClientLines::PutLocked(int fd, UniqueFd copy, std::vector<Line>& over) {
  const Id id = ++last_;
  const int watched = copy.get();
  Line& line = lines_[id];
  line.id = id;
  line.fd = fd;
  line.copy = std::move(copy);
  if (const auto peer = CredentialsOf(watched); peer.ok()) line.peer = *peer;
  by_fd_[fd] = id;
  const auto watch =
      poller_.Watch(watched, EPOLLRDHUP | EPOLLHUP | EPOLLET,
                    [this, id](std::uint32_t events) {
                      if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0) OnGone(id);
                    });
  if (watch.ok()) {
    line.watch = *watch;
  } else {
    over.push_back(TakeLocked(lines_.find(id)));
  }
  return watch.ok();
}

ClientLines::Call ClientLines::Begin(std::string_view peer) {
  constexpr std::string_view kPrefix = "fd:";
  if (!peer.starts_with(kPrefix)) return {};
  int fd = -1;
  std::from_chars(peer.data() + kPrefix.size(), peer.data() + peer.size(), fd);
  MutexLock lock(mutex_);
  const auto known = by_fd_.find(fd);
  if (known == by_fd_.end()) {
    Call call;
    call.too_many = hung_up_.contains(fd);
    return call;
  }
  Line& line = lines_.at(known->second);
  line.has_called = true;
  ++line.open_calls;
  const bool too_many = hung_up_.contains(fd) || line.open_calls > kMaxOpen;
  const bool hang_up = too_many && hung_up_.insert(fd).second;
  if (hang_up) {
    // gRPC bounds this for clients that have said that they know the bound.
    ++turned_away_;
    shutdown(line.copy.get(), SHUT_RDWR);
  }
  return {known->second, too_many, hang_up, line.peer};
}

void ClientLines::End(Id id) {
  MutexLock lock(mutex_);
  const auto known = lines_.find(id);
  if (known != lines_.end()) --known->second.open_calls;
}

std::size_t ClientLines::size() const {
  MutexLock lock(mutex_);
  return lines_.size();
}

std::size_t ClientLines::turned_away() const {
  MutexLock lock(mutex_);
  return turned_away_;
}

void ClientLines::OnGone(Id line) {
  Line gone;
  {
    MutexLock lock(mutex_);
    const auto known = lines_.find(line);
    if (known == lines_.end()) return;
    gone = TakeLocked(known);
  }
  Close(gone);
}

ClientLines::Line ClientLines::TakeLocked(Lines::iterator line) {
  ++closing_;
  Line taken = std::move(line->second);
  by_fd_.erase(taken.fd);
  lines_.erase(line);
  return taken;
}

void ClientLines::Close(const Line& line) {
  poller_.Unwatch(line.watch);
  on_gone_(line.id);
  MutexLock lock(mutex_);
  --closing_;
  closed_.NotifyAll();
}

}  // namespace devmgr::rpc
