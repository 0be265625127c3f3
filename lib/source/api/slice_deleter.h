// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "source/api/api_status.h"
#include "source/api/collection.h"
#include "source/api/discovery.h"

namespace devmgr::apiserver {

/// Deletes the ResourceSlices that drivers have published for the node: the
/// collection of this node and one driver, or of this node. Each deletion is
/// tried once, as the room that asks for it tries again; and it waits no longer
/// than a moment for the version to become known: what was asked for while a
/// driver was gone is not to be done long after it is back. Knows no sockets
/// and no clock. Thread-bound.
class SliceDeleter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Done = std::function<void(absl::Status)>;

  static constexpr std::chrono::seconds kPatience{10};

  struct Request {
    std::string driver;
    ApiRequest request;
  };

  explicit SliceDeleter(std::string node) : node_(std::move(node)) {}
  /// What is not done is not reported.
  ~SliceDeleter() = default;

  /// Slices of `driver`; when it is empty, of all. `done` is called once,
  /// unless it is kept: NotFound where there can be none.
  void Delete(TimePoint now, const std::string& driver, Done done);
  /// What was asked for is not to be done.
  void Keep(const std::string& driver) { deletions_.erase(driver); }
  void SetVersion(Discovery::State state, const std::string& version);

  std::optional<Request> Next(TimePoint now);
  std::optional<TimePoint> WakeAt() const;
  void OnAnswer(const std::string& driver, const ResponseHead& head,
                std::string_view body);
  void OnFailure(const std::string& driver, const std::string& error);

  bool TakeRefused() { return std::exchange(refused_, false); }
  /// True once after the server did not know the version.
  bool TakeNotServed() { return std::exchange(not_served_, false); }

 private:
  struct Deletion {
    Done done;
    TimePoint patient_until;
    bool is_asking = false;
  };

  ApiRequest RequestFor(const std::string& driver) const;
  void End(const std::string& driver, const absl::Status& status);

  const std::string node_;
  Discovery::State state_ = Discovery::State::kUnknown;
  std::string version_;
  std::map<std::string, Deletion> deletions_;  // By driver.
  bool refused_ = false;
  bool not_served_ = false;
};

}  // namespace devmgr::apiserver
