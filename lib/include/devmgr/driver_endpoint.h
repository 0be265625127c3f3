// SPDX-License-Identifier: Apache-2.0
//
// An API endpoint on the node for DRA drivers, which publish their
// ResourceSlices to an API server and read claims from one: where there is
// none, unmodified drivers use this one. Of library `devmgr_endpoint`.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/export.h>
#include <devmgr/host.h>
#include <devmgr/object_space.h>
#include <devmgr/options.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace devmgr {

struct DriverEndpointOptions {
  /// As DeviceManagerOptions::node_name. Must not be empty.
  std::string node_name;
  /// Where the UID of the node is kept, which drivers may connect, and claims
  /// as drivers were shown them last. Belongs to one process at a time. Slices
  /// that an earlier version has kept there are taken over by Serve.
  std::filesystem::path state_dir;
  /// Where each driver finds its kubeconfig, by its name, of mode 0600; beside
  /// them tokens, certificates and the files that a container needs.
  std::filesystem::path kubeconfig_dir;
  /// Names of the drivers that may connect, besides those of AddDriver.
  std::vector<std::string> drivers;
  std::string address = "127.0.0.1";
  /// 0: the one that it had last if that is free, or else one that is free.
  std::uint16_t port = 0;
  /// What becomes of an object that drivers have published and that cannot be
  /// read: it keeps the endpoint from serving, or it is removed.
  Recovery recovery = Recovery::kStrict;
  /// Hears what is wrong: claims that cannot be shown, once for each reason.
  /// Called on a thread of the endpoint; may be null.
  LogSink log;
};

/// Serves drivers over HTTPS, each with a token of its own and the rights of
/// one driver on this node: its slices, and the claims that have its devices.
/// What it shows of a claim is there before the claim's first prepare, as
/// drivers read claims when they are called. Has two threads, and without any
/// driver one that sleeps. Is to be among Host::observers of the manager, and
/// so outlives it. Thread-safe.
class DEVMGR_EXPORT DriverEndpoint : public DeviceManagerObserver {
 public:
  /// `objects`, borrowed, has everything but what drivers publish.
  ///   InvalidArgument  options that cannot be used; the name of a driver
  static absl::StatusOr<std::unique_ptr<DriverEndpoint>> Create(
      const DriverEndpointOptions& options, ObjectSource& objects);

  /// `objects` and the slices of drivers: what the manager is to have as
  /// Host::objects. Has nothing before Serve, as a source that has not been
  /// read yet: nothing is decided without the slices. Lives as long as this.
  virtual ObjectSource& source() = 0;

  /// To be called once the ledger is loaded: takes in what drivers have
  /// published, which is kept in `kept`, DeviceManager::KeptObjects, and serves
  /// drivers. Blocks for disk. Not to be called again when it has succeeded.
  ///   InvalidArgument  `kept` is null
  ///   Unavailable      the address cannot be listened at, or the disk fails
  ///   DataLoss         what drivers have published cannot be read
  virtual absl::Status Serve(std::shared_ptr<ObjectSpace> kept) = 0;
  /// Ends open watches in order, for a second at most, and serves no more. To
  /// be called before the manager goes, as its database goes with it.
  virtual void Stop() = 0;

  /// Shows drivers the claims as `objects` has them, DeviceManager::Objects;
  /// it is called on a thread of this, soon and whenever they have changed,
  /// until it is replaced. Null ends that: no call of it runs after this
  /// returns. To be ended before the manager goes.
  virtual void ShowObjectsOf(
      std::function<std::shared_ptr<const ObjectSnapshot>()> objects) = 0;
  /// What `objects` returns is different. Never blocks.
  void OnObjects() override = 0;

  /// Lets another driver connect, as those of the options, now and after
  /// restarts, until its file in `state_dir/drivers` is removed. Returns where
  /// its kubeconfig is. Blocks for disk, and for Serve, which it awaits for 10
  /// s at most.
  ///   InvalidArgument  that is no name of a driver
  ///   Unavailable      a file cannot be written, or the address not be
  ///                    listened at
  virtual absl::StatusOr<std::filesystem::path> AddDriver(
      const std::string& driver) = 0;
  /// Deletes the slices of a driver, whether or not it may connect; how many
  /// there were. Blocks as AddDriver does.
  ///   Unavailable  the disk fails, or Serve has not been called
  virtual absl::StatusOr<std::size_t> DeleteSlices(
      const std::string& driver) = 0;
  /// Names of the slices that drivers have published.
  virtual std::set<std::string> SliceNames() const = 0;

  /// `https://127.0.0.1:41234`; empty while there is nothing to serve: no
  /// driver may connect, and none has published anything.
  virtual std::string server() const = 0;
};

}  // namespace devmgr
