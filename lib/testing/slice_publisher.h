// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/executor.h"
#include "source/api/reflector.h"
#include "source/api/retry_delay.h"
#include "source/api/transport.h"
#include "testing/driver_api.h"
#include "testing/slice_plan.h"

namespace devmgr::testing {

/// Publishes the devices of a fake driver as the official library does: reads
/// the node, lists and watches the slices of the driver on it, and writes what
/// is missing or different, one request after the other. What others change or
/// delete is written anew. After an error all is listed again before anything
/// is written, as a request whose answer got lost may have been carried out.
/// To be used on one executor, and destroyed on it.
class SlicePublisher {
 public:
  struct Options {
    std::string driver;
    /// Empty: of the one node that the server shows.
    std::string node_name;
    std::size_t devices = 0;
    std::filesystem::path kubeconfig;  ///< As of DriverApi.
  };
  struct Parts {
    Executor& executor;  ///< Borrowed.
    apiserver::Random random;
    /// The server has all slices, of this pool and generation.
    std::function<void(const PublishedPool& pool, const SlicePlan& plan)>
        on_published;
    /// Why not, in the words of the server where it gave some. It goes on.
    std::function<void(const std::string& error)> on_failed;
  };

  SlicePublisher(Options options, Parts parts);
  ~SlicePublisher();
  SlicePublisher(const SlicePublisher&) = delete;
  SlicePublisher& operator=(const SlicePublisher&) = delete;

  void Begin() { api_.Begin(); }
  DriverApi& api() { return api_; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void OnConnected();
  void Step();
  void AskForNode();
  absl::Status TakeNode(const std::string& body);
  void Follow();
  void Watch(const apiserver::ApiRequest& request);
  void AfterWatch();
  void Reconcile();
  bool HasSeenWrites();
  void WriteNext();
  void OnWritten(const SliceWrite& write,
                 const absl::StatusOr<std::string>& body);
  void Fail(const absl::Status& status);
  void SetTimer();
  /// `callback`, unless what it was for has ended.
  template <typename Callback>
  auto OfNow(Callback callback);

  const Options options_;
  const Parts parts_;
  DriverApi api_;
  apiserver::RetryDelay delay_;
  TimerId timer_ = 0;
  /// One more with each connection.
  std::uint64_t epoch_ = 0;
  TimePoint due_;  ///< Nothing is read or written before.

  PublishedPool pool_;
  bool is_asking_ = false;  ///< For the node.
  std::optional<apiserver::Reflector> reflector_;
  apiserver::Transport::TransferId transfer_ = 0;
  std::uint64_t errors_ = 0;  ///< Of the reflector, as they were reported.
  /// So many lists have to be there before anything is written.
  std::uint64_t lists_needed_ = 0;

  SlicePlan plan_;        ///< What is being written.
  std::size_t next_ = 0;  ///< Of its writes.
  bool is_writing_ = false;
  /// Versions that the watch has yet to show, by name; empty: that it is gone.
  std::map<std::string, std::string> unseen_;
  /// Generation, as it was reported; negative: what is there has changed since.
  std::int64_t published_ = -1;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace devmgr::testing
