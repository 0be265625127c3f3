// SPDX-License-Identifier: Apache-2.0
//
// The registration directory is real, with real socket files; what stands
// behind the sockets is in the hands of the test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "registration/registrar.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::registration {

namespace fs = std::filesystem;
using EventKind = watcher::DirectoryEvent::Kind;

inline constexpr char kType[] = "DRAPlugin";

/// Plugins by socket path: what they answer, and what they were told.
class FakePlugins {
 public:
  struct Behaviour {
    absl::Status dial;
    absl::StatusOr<Plugin> info = absl::UnknownError("not told");
    absl::Status notify;
    bool silent = false;  ///< Answers nothing at all.
    std::optional<uid_t> owner = std::nullopt;
  };

  Behaviour& At(const fs::path& path) { return behaviours_[path.string()]; }

  PluginDialer Dialer() {
    return [this](const fs::path& path)
               -> absl::StatusOr<std::unique_ptr<PluginSocket>> {
      dialed_.push_back(path.filename().string());
      const Behaviour& behaviour = At(path);
      if (!behaviour.dial.ok()) return behaviour.dial;
      return std::make_unique<Socket>(*this, path.string());
    };
  }

  /// Names of sockets, one per dial.
  std::vector<std::string> dialed_;
  /// `name: error` per notification; the error is empty on success.
  std::vector<std::string> notified_;
  int open_ = 0;

 private:
  class Socket final : public PluginSocket {
   public:
    Socket(FakePlugins& plugins, std::string path)
        : plugins_(plugins), path_(std::move(path)) {
      ++plugins_.open_;
    }
    ~Socket() override {
      --plugins_.open_;
      if (pending_) pending_();
    }
    std::optional<uid_t> owner() const override {
      return plugins_.At(path_).owner;
    }
    void GetInfo(std::function<void(absl::StatusOr<Plugin>)> done) override {
      const Behaviour& behaviour = plugins_.At(path_);
      if (behaviour.silent) {
        pending_ = [done] { done(absl::CancelledError("closed")); };
      } else {
        done(behaviour.info);
      }
    }
    void NotifyStatus(const std::string& error,
                      std::function<void(absl::Status)> done) override {
      plugins_.notified_.push_back(fs::path(path_).filename().string() + ": " +
                                   error);
      done(plugins_.At(path_).notify);
    }

   private:
    FakePlugins& plugins_;
    const std::string path_;
    std::function<void()> pending_;
  };

  std::map<std::string, Behaviour> behaviours_;
};

class FakeHandler final : public PluginHandler {
 public:
  absl::Status Validate(const Plugin&) override { return validate_; }
  void Register(const Plugin& plugin,
                std::function<void(absl::Status)> done) override {
    born_[plugin.name] = plugin.socket_born_ns;
    registrations_.push_back(plugin.registration);
    owner_ = plugin.socket_owner;
    if (register_.ok()) {
      registered_.push_back(plugin.name + " at " + plugin.endpoint);
    }
    if (slow_) {
      pending_ = [this, done] { done(register_); };
    } else {
      done(register_);
    }
  }
  void Deregister(const Plugin& plugin) override {
    std::erase(registered_, plugin.name + " at " + plugin.endpoint);
    ++deregistered_;
    ended_.push_back(plugin.registration);
  }

  absl::Status validate_;
  absl::Status register_;
  std::vector<std::string> registered_;
  std::map<std::string, std::int64_t> born_;  ///< Sockets, by name of plugin.
  std::optional<uid_t> owner_;                ///< Of the last one.
  int deregistered_ = 0;
  std::vector<std::uint64_t> registrations_;
  std::vector<std::uint64_t> ended_;
  bool slow_ = false;  ///< Register is done when `pending_` is called.
  std::function<void()> pending_;
};

class RegistrarTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder());
    Start();
  }

  /// A manager starts, or starts again.
  void Start() {
    registrar_.reset();
    registrar_ = std::make_unique<Registrar>(
        executor_, folder(), plugins_.Dialer(),
        std::map<std::string, PluginHandler*>{{kType, &handler_}},
        [this](LogLevel, std::string_view line) { log_.emplace_back(line); });
  }

  fs::path folder() const { return base_.path() / "plugins_registry"; }

  /// A socket file on which nobody listens.
  void MakeSocket(const std::string& name) {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder() / name;
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address),
                     sizeof(address)),
              0);
  }

  FakePlugins::Behaviour& Plugin1() { return plugins_.At(folder() / "p.sock"); }

  static Plugin Info(const std::string& name = "d",
                     const std::string& endpoint = "/e.sock") {
    return {kType, name, endpoint, {"v1.DRAPlugin"}, {}};
  }

  std::vector<RegistrationSocketInfo> Sockets() {
    std::vector<RegistrationSocketInfo> sockets;
    for (const auto& socket : registrar_->Sockets()) sockets.push_back(*socket);
    return sockets;
  }

  void Tell(EventKind kind, const std::string& name = "") {
    registrar_->OnDirectoryEvent({kind, name});
    executor_.RunPending();
  }

  /// `p.sock` appears and answers; everything goes well.
  void RegisterPlugin() {
    Plugin1().info = Info();
    MakeSocket("p.sock");
    Tell(EventKind::kAppeared, "p.sock");
    ASSERT_THAT(handler_.registered_, testing::ElementsAre("d at /e.sock"));
  }

  const TempFolder base_;
  ManualExecutor executor_;
  FakePlugins plugins_;
  FakeHandler handler_;
  std::vector<std::string> log_;
  std::unique_ptr<Registrar> registrar_;
};

}  // namespace devmgr::registration
