// SPDX-License-Identifier: Apache-2.0
//
// A plugin may say anything of itself in GetInfo. It is taken in, or refused
// with a text that it and the log can stand; nothing else happens.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "common/executor.h"
#include "common/status.h"
#include "dra/driver_registry.h"
#include "fuzz/fuzz.h"
#include "registration/plugin_info.h"
#include "registration/registrar.h"
#include "support/fake_connection.h"
#include "support/temp_folder.h"

namespace devmgr::fuzz {
namespace {

using registration::Plugin;

/// A directory with one file in it that looks like a socket.
const std::filesystem::path& Directory() {
  static const auto* folder = [] {
    auto* made = new TempFolder;
    const auto socket = made->path() / "reg.sock";
    Require(::mknod(socket.c_str(), S_IFSOCK | 0600, 0) == 0,
            "a socket can be made");
    std::atexit([] { std::filesystem::remove_all(Directory()); });
    return made;
  }();
  return folder->path();
}

/// Answers GetInfo with the bytes, and keeps what it is told.
class Socket final : public registration::PluginSocket {
 public:
  Socket(const std::string& bytes, int& notified)
      : bytes_(bytes), notified_(notified) {}

  void GetInfo(std::function<void(absl::StatusOr<Plugin>)> done) override {
    done(registration::DecodePluginInfo(bytes_));
  }
  void NotifyStatus(const std::string& error,
                    std::function<void(absl::Status)> done) override {
    ++notified_;
    if (!error.empty()) RequireReadable(error);
    done(absl::OkStatus());
  }

 private:
  const std::string& bytes_;
  int& notified_;
};

void Handshake(const std::string& bytes) {
  ManualExecutor executor;
  FakePeer peer;
  peer.set_dial_status(UnavailableError("nobody listens"));
  dra::DriverRegistryOptions options;
  options.now = [] { return WallTime(); };
  options.on_change = [](const std::string&) {};
  dra::DriverRegistry drivers(
      executor,
      [&](const auto& path, auto hang_up) {
        return peer.Dial(path, std::move(hang_up));
      },
      std::move(options));
  int notified = 0;
  int logged = 0;
  {
    registration::Registrar registrar(
        executor, Directory(),
        [&](const auto&) { return std::make_unique<Socket>(bytes, notified); },
        {{dra::DriverRegistry::kPluginType, &drivers}},
        [&](LogLevel, std::string_view line) {
          ++logged;
          RequireReadable(line);
        });
    registrar.OnDirectoryEvent(
        {watcher::DirectoryEvent::Kind::kAppeared, "reg.sock"});
    executor.RunPending();
  }
  Require(logged == 1, "the outcome is logged once");
  const auto info = registration::DecodePluginInfo(bytes);
  Require(notified == (info.ok() ? 1 : 0), "a plugin that speaks is answered");
  const bool taken = !drivers.Plugins().empty();
  if (!info.ok()) {
    Require(!taken, "what is no plugin is not taken in");
    RequireReadable(MessageOf(info.status()));
    return;
  }
  Plugin plugin = *info;
  if (plugin.endpoint.empty()) plugin.endpoint = Directory() / "reg.sock";
  Require(taken == (plugin.type == dra::DriverRegistry::kPluginType &&
                    drivers.Validate(plugin).ok()),
          "who is valid is taken in, nobody else");
  for (const auto& known : drivers.Plugins()) {
    Require(known->name == plugin.name && known->endpoint == plugin.endpoint,
            "it is known as what it said");
  }
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  devmgr::fuzz::Handshake(
      std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
