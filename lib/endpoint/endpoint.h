// SPDX-License-Identifier: Apache-2.0
//
// What unmodified DRA drivers talk to on a node that has no API server: HTTPS
// on the loopback, with a token per driver, over a store of objects.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "endpoint/journal.h"

namespace devmgr::endpoint {

/// What a driver changed. It is durable by then.
struct DriverChange {
  enum class Kind { kSlice, kClaimStatus, kEvent };
  Kind kind = Kind::kSlice;
  std::string driver;
  std::string ns;
  std::string name;
  std::uint64_t revision = 0;
  std::string json;  ///< The object, of v1; empty when it is gone.
};

struct EndpointOptions {
  std::string node_name;
  std::string node_uid;
  /// Each gets a token, a kubeconfig, and files for a container.
  std::vector<std::string> drivers;
  std::filesystem::path kubeconfig_dir;

  std::string address = "127.0.0.1";
  /// Left out where the host does not have them.
  std::vector<std::string> further_addresses = {"::1"};
  /// 0: the one that it had last if that is free, or else one that is free.
  std::uint16_t port = 0;
  /// Further names that the certificate is for.
  std::vector<std::string> server_names;

  std::string git_version = "v1.36.0+devmgr";
  bool serve_v1beta2 = false;
  /// Slices for all nodes, or for those of a selector, may be published.
  bool network_pools = false;
  /// Drivers may read the pods that are published here.
  bool read_pods = false;

  std::size_t max_connections = 64;
  std::size_t max_watches = 8;          ///< Per driver.
  double max_requests_per_second = 50;  ///< Per driver.
  std::size_t max_slices = 1024;        ///< Per driver.
  std::size_t max_events = 1000;        ///< Kept in memory; older ones go.
  std::size_t watch_events = 1024;
  std::size_t history_changes = 10'000;
  /// How often it is looked whether the certificate is to be renewed.
  std::chrono::milliseconds certificate_check = std::chrono::hours(24);

  /// Called on the thread of the endpoint, in the order of the revisions. Must
  /// not block, and must not call the endpoint.
  std::function<void(const DriverChange& change)> on_change;
  /// Seconds since 1970; the system's clock when empty.
  std::function<std::int64_t()> now;
};

struct EndpointCounts {
  std::size_t requests = 0;
  std::size_t refused = 0;  ///< Answered with 400 and above.
  std::size_t unauthorized = 0;
  std::size_t limited = 0;         ///< Answered with 429.
  std::size_t unknown_fields = 0;  ///< Of protobuf bodies, skipped.
  std::size_t dropped_fields = 0;  ///< Of JSON bodies, a hundred each.
  std::size_t watches = 0;         ///< Open now.
  std::size_t connections = 0;     ///< Open now.
};

/// One thread of its own serves all drivers, and waits for the journal in each
/// write. All methods may be called from any other thread; they wait for that
/// one.
class Endpoint {
 public:
  /// Replays the journal, makes certificates, tokens and kubeconfigs, and
  /// listens. `journal` outlives the endpoint.
  ///   InvalidArgument  options that cannot be used; names of drivers
  ///   Unavailable      the address cannot be listened at
  ///   DataLoss         the journal has entries that cannot be read
  static absl::StatusOr<std::unique_ptr<Endpoint>> Start(
      EndpointOptions options, Journal& journal);
  /// Ends open watches in order, for a second at most, and stops.
  virtual ~Endpoint() = default;

  virtual std::uint16_t port() const = 0;
  /// `https://127.0.0.1:41234`
  virtual std::string server() const = 0;

  /// Publishes all objects of a kind that others own, as JSON: `Node`,
  /// `ResourceClaim`, `DeviceClass`, `Pod`, in any version that is served.
  /// Those that are not among them any more are removed; those that are equal
  /// are left alone. Of a claim `status.devices` stays what drivers said, as
  /// far as their devices are still allocated. Namespaces are made as they are
  /// used. What is refused stays as it was, and the others are published all
  /// the same; the first error is returned. Nothing is removed when one of them
  /// has no name.
  ///   InvalidArgument  another kind, or an object that is none
  ///   Unavailable      the journal failed
  virtual absl::Status SetObjects(const std::string& kind,
                                  const std::vector<std::string>& objects) = 0;
  /// One object more, or in the place of an older one.
  virtual absl::Status PutObject(const std::string& object) = 0;
  /// The objects of a kind as they are, slices also, of v1.
  virtual std::vector<std::string> Objects(const std::string& kind) = 0;
  /// Deletes the slices of a driver, for an operator; how many.
  virtual absl::StatusOr<std::size_t> DeleteSlices(
      const std::string& driver) = 0;

  /// Another driver, as those of the options.
  virtual absl::Status AddDriver(const std::string& driver) = 0;
  /// The old token is good for ten more minutes.
  virtual absl::Status RotateToken(const std::string& driver) = 0;

  virtual EndpointCounts counts() = 0;
};

}  // namespace devmgr::endpoint
