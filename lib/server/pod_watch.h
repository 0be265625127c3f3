// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/control/v1/control.pb.h>
#include <devmgr/status_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/executor.h"
#include "rpc/server.h"

namespace devmgr::server {

/// Clients that watch pods. Of each pod the number of its last change is known,
/// and it is sent as it is when its turn comes; a client has a number up to
/// which it was sent all, and gets the next ones when it has taken those
/// before. So a slow one costs nothing, and misses only states that were over
/// when it looked. Lives on an executor.
class PodWatch {
 public:
  /// Pods that are gone are kept for clients that resume; of more, those that
  /// went first are forgotten, and a client that has not heard of them gets a
  /// new list.
  static constexpr std::size_t kMaxGone = 1'000;
  /// Messages that are written to a client at a time.
  static constexpr int kMaxUnread = 64;
  static constexpr std::size_t kMaxClients = 128;

  /// A pod as it is now, or NotFound.
  using PodOf = std::function<absl::StatusOr<PodInfo>(const PodUid&)>;

  /// `executor` is borrowed, must outlive this, and has stopped before this
  /// goes. `instance` tells tokens of ours from those of another daemon.
  PodWatch(Executor& executor, std::string instance, PodOf pod_of)
      : executor_(executor),
        instance_(std::move(instance)),
        pod_of_(std::move(pod_of)) {}
  PodWatch(const PodWatch&) = delete;
  PodWatch& operator=(const PodWatch&) = delete;

  /// A pod has changed, or is gone and was so last. No client is sent anything
  /// before Send.
  void Put(const PodInfo& pod, bool gone);
  void Send();

  /// A client watches from here on, or from where its token stands. The stream
  /// ends with ResourceExhausted when there are too many.
  void Add(const std::string& token, std::shared_ptr<rpc::ServerStream> stream);

  std::size_t clients() const { return clients_.size(); }

 private:
  struct Entry {
    std::uint64_t number = 0;
    /// Of a pod that is gone, as it was last. Others are looked up.
    std::unique_ptr<const PodInfo> last;
  };
  struct Client {
    std::shared_ptr<rpc::ServerStream> stream;
    std::uint64_t sent = 0;       ///< All changes up to this one were sent.
    std::uint64_t list_from = 0;  ///< What was gone by then is not in its list.
    bool listed = false;
    bool busy = false;  ///< It has not taken yet what was written.
  };
  using Message = devmgr::control::v1::WatchPodsResponse;

  void BeginList(Client& client);
  /// Sends what is new to the client, as much as it may have at a time.
  void SendTo(std::uint64_t id, Client& client);
  bool SendPod(const Client& client, const PodUid& uid, const Entry& entry);
  void Write(const Client& client, Message::Kind kind,
             const PodInfo* pod) const;
  void ForgetOldest();

  Executor& executor_;
  const std::string instance_;
  const PodOf pod_of_;
  std::uint64_t last_ = 0;       ///< The number of the last change.
  std::uint64_t forgotten_ = 0;  ///< Of a pod that is gone: a client that knows
                                 ///< less than this needs a list.
  std::map<PodUid, Entry> pods_;
  std::map<std::uint64_t, PodUid> order_;  ///< By number; one for each pod.
  std::map<std::uint64_t, PodUid> gone_;   ///< Those that are gone.
  std::uint64_t last_client_ = 0;
  std::map<std::uint64_t, Client> clients_;
};

}  // namespace devmgr::server
