// SPDX-License-Identifier: Apache-2.0
#include "server/pod_watch.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "common/status.h"
#include "rpc/message.h"
#include "server/convert.h"

namespace devmgr::server {
namespace {

/// The number of a token of this instance.
std::optional<std::uint64_t> NumberOf(std::string_view token,
                                      std::string_view instance) {
  if (!token.starts_with(instance)) return std::nullopt;
  token.remove_prefix(instance.size());
  if (!token.starts_with('-')) return std::nullopt;
  token.remove_prefix(1);
  std::uint64_t number = 0;
  const char* const end = token.data() + token.size();
  const auto read = std::from_chars(token.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

void PodWatch::Put(const PodInfo& pod, bool gone) {
  DEVMGR_ASSERT_ON(executor_);
  Entry& entry = pods_[pod.uid];
  order_.erase(entry.number);
  gone_.erase(entry.number);
  entry.number = ++last_;
  entry.last = gone ? std::make_unique<const PodInfo>(pod) : nullptr;
  order_.emplace(entry.number, pod.uid);
  if (!gone) return;
  gone_.emplace(entry.number, pod.uid);
  if (gone_.size() > kMaxGone) ForgetOldest();
}

void PodWatch::ForgetOldest() {
  const auto oldest = gone_.begin();
  forgotten_ = oldest->first;
  order_.erase(oldest->first);
  pods_.erase(oldest->second);
  gone_.erase(oldest);
}

void PodWatch::Send() {
  DEVMGR_ASSERT_ON(executor_);
  for (auto& [id, client] : clients_) SendTo(id, client);
}

void PodWatch::Add(const std::string& token,
                   std::shared_ptr<rpc::ServerStream> stream) {
  DEVMGR_ASSERT_ON(executor_);
  if (clients_.size() >= kMaxClients) {
    return stream->Finish(ResourceExhaustedError(
        "{} clients watch pods already, which is the limit", kMaxClients));
  }
  const std::uint64_t id = ++last_client_;
  Client& client = clients_[id];
  client.stream = std::move(stream);
  const auto number = NumberOf(token, instance_);
  if (number.has_value() && *number <= last_ && *number >= forgotten_) {
    client.sent = *number;
  } else {
    BeginList(client);
  }
  SendTo(id, client);
  // Last: it may be here and now.
  const auto watched = client.stream;
  watched->WhenClientGone(
      [this, id] { executor_.Post([this, id] { clients_.erase(id); }); });
}

void PodWatch::BeginList(Client& client) {
  client.sent = 0;
  client.list_from = last_;
  client.listed = false;
  Write(client, Message::KIND_LIST, nullptr);
}

void PodWatch::SendTo(std::uint64_t id, Client& client) {
  if (client.busy) return;
  // One that went before its list began it need not hear of.
  if (std::max(client.sent, client.list_from) < forgotten_) BeginList(client);
  int written = 0;
  auto next = order_.upper_bound(client.sent);
  for (; next != order_.end() && written < kMaxUnread; ++next) {
    client.sent = next->first;
    if (SendPod(client, next->second, pods_.at(next->second))) ++written;
  }
  if (next == order_.end() && !client.listed) {
    client.listed = true;
    client.sent = last_;
    Write(client, Message::KIND_LISTED, nullptr);
    ++written;
  }
  if (written == 0) return;
  client.busy = true;
  client.stream->WhenTaken([this, id] {
    executor_.Post([this, id] {
      const auto found = clients_.find(id);
      if (found == clients_.end()) return;
      found->second.busy = false;
      SendTo(id, found->second);
    });
  });
}

/// Whether there was anything to send.
bool PodWatch::SendPod(const Client& client, const PodUid& uid,
                       const Entry& entry) {
  if (entry.last != nullptr) {
    if (entry.number <= client.list_from) return false;
    Write(client, Message::KIND_GONE, entry.last.get());
    return true;
  }
  const auto pod = pod_of_(uid);
  // That it is gone is the next that is heard of it.
  if (!pod.ok()) return false;
  Write(client, Message::KIND_POD, &*pod);
  return true;
}

void PodWatch::Write(const Client& client, Message::Kind kind,
                     const PodInfo* pod) const {
  Message message;
  message.set_kind(kind);
  if (pod != nullptr) *message.mutable_pod() = ToProto(*pod);
  message.set_resume_token(fmt::format("{}-{}", instance_, client.sent));
  client.stream->Write(rpc::Encode(message));
}

}  // namespace devmgr::server
