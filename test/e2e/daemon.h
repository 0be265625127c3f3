// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/inspection.h>
#include <devmgr/testing.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/temp_folder.h"

namespace devmgr {

/// How a program ended.
struct Exit {
  int code = -1;  ///< 128 + signal when a signal ended it.
  std::string out;
  std::string err;
};

/// Runs a program of the build to its end.
Exit RunTool(const std::string& tool, const std::vector<std::string>& args);

/// A devmgrd process on a folder, which looks for CDI specs in `cdi` below it
/// and nowhere else, unless a flag says so. Killed in the destructor.
class Daemon {
 public:
  Daemon(std::filesystem::path root, std::vector<std::string> flags = {});
  ~Daemon();

  /// kill -9, and waits until it is gone.
  void Kill();
  /// SIGTERM; its exit code, and how long it took.
  int Terminate(std::chrono::milliseconds* took);
  /// Waits for it to end by itself.
  int Wait();
  pid_t pid() const { return pid_; }
  std::string log() const;

  /// Connects to its inspection socket, waiting until it is there. Null when
  /// the daemon ends first.
  std::unique_ptr<Inspector> Inspect() const;

 private:
  const std::filesystem::path root_;
  const std::filesystem::path log_;
  pid_t pid_ = -1;
};

/// A fake-dra-driver process for `gpu.example.com`, as an instance of its own.
/// Killed in the destructor.
class DriverInstance {
 public:
  DriverInstance(const std::filesystem::path& root, std::string instance);
  ~DriverInstance();

  void Kill();
  /// SIGTERM; its exit code.
  int Terminate();
  /// Events so far, one JSON object on each line.
  std::string log() const;
  /// Calls of `method` that came for this claim object.
  int CallsFor(const std::string& method, const std::string& claim) const;

 private:
  const std::filesystem::path log_;
  pid_t pid_ = -1;
};

/// A folder as `devmgrd --root` has it, and what the test puts there.
class NodeFolder {
 public:
  NodeFolder();
  const std::filesystem::path& root() const { return folder_.path(); }
  /// Writes a manifest in one step.
  void Write(const std::string& file, const std::string& yaml);
  void Remove(const std::string& file);
  std::unique_ptr<testing::FakeDraDriver> StartDriver(
      testing::FakeDraDriverOptions options = {});
  std::unique_ptr<testing::FakeDevicePlugin> StartPlugin(
      testing::FakeDevicePluginOptions options);
  std::size_t cdi_files() const;
  /// devmgrctl on this node.
  Exit Ctl(std::vector<std::string> args) const;

 private:
  TempFolder folder_;
};

/// A claim for `pod_uids` with one device of the driver `gpu.example.com` per
/// entry of `devices`; requests are `r0`, `r1`, ...
std::string ClaimManifest(const std::string& name, const std::string& uid,
                          const std::vector<std::string>& devices,
                          const std::vector<std::string>& pod_uids);
/// A pod whose container `c` uses all of a claim, and as many of
/// `example.com/tpu`.
std::string PodManifest(const std::string& name, const std::string& uid,
                        const std::string& claim, int tpus = 0);

/// All names and contents below a folder.
std::string TreeOf(const std::filesystem::path& folder);

}  // namespace devmgr
