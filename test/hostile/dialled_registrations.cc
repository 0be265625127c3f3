// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "common/status.h"
#include "hostile/dialled.h"
#include "hostile/node.h"

namespace devmgr::hostile {
namespace {

/// A whole node. In its registration directory there is a driver that does its
/// work for pod after pod, and a socket that is hostile; where that comes to be
/// registered, it is a driver, too, and a pod wants it.
class Registrations final : public Dialled {
 public:
  explicit Registrations(const std::filesystem::path& folder)
      : bad_(folder / "reg" / "bad.sock"), node_(folder, costs_) {}

  ~Registrations() override { executor_->Stop(); }

  std::unique_ptr<rpc::Server> Serve(const std::filesystem::path& socket,
                                     Misbehaviour misbehaviour) override {
    switch (misbehaviour) {
      case Misbehaviour::kServesOtherMethods:
        return Start({.socket = socket});
      case Misbehaviour::kAnswersLate:
        return ServeDriver(socket, kLate);
      case Misbehaviour::kAnswersForAnother:
        name_ = -1;
        return ServeDriver(socket, std::chrono::milliseconds(0));
      case Misbehaviour::kRegistersInALoop:
      case Misbehaviour::kComesUnderOtherNames:
        return ServeDriver(socket, std::chrono::milliseconds(0));
      default:
        return nullptr;
    }
  }

  std::filesystem::path SocketIn(const std::filesystem::path&) const override {
    return bad_;
  }

  /// It is found.
  void Register(const std::filesystem::path&) override { KeepCalling(); }
  void RegisterAgain(const std::filesystem::path&, rpc::Server& server,
                     int name) override {
    name_ = name;
    EXPECT_TRUE(server.Relisten().ok());
  }

  void CallNeighbour(std::function<void(absl::Status)> done) override {
    node_.LivePod(std::move(done));
  }

  Bounds bounds(Misbehaviour) const override {
    Bounds bounds;
    // A socket is made anew twenty times until it is asked less often; it comes
    // and goes in the log each time.
    bounds.log_lines = 48;
    // Those, and those of the pod.
    bounds.events = 72;
    return bounds;
  }

 private:
  std::unique_ptr<rpc::Server> ServeDriver(const std::filesystem::path& socket,
                                           std::chrono::milliseconds delay) {
    rpc::ServerOptions options;
    options.socket = socket;
    options.methods = DriverMethods(
        *executor_,
        [this]() -> std::string {
          const int name = name_;
          if (name < 0) return "No Name\nthat a driver has";
          if (name == 0) return kBadDriver;
          return fmt::format("bad-{}.example.com", name);
        },
        delay);
    return Start(std::move(options));
  }

  void KeepCalling() {
    executor_->Post([this] {
      ++costs_.calls;
      node_.WantBadPod();
    });
    executor_->PostAfter(kBeat, [this] { KeepCalling(); });
  }

  const std::filesystem::path bad_;
  std::atomic<int> name_{0};
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("registrations");
  Node node_;
};

}  // namespace

std::unique_ptr<Dialled> DialledRegistrations(
    rpc::Runtime&, const std::filesystem::path& folder) {
  return std::make_unique<Registrations>(folder);
}

}  // namespace devmgr::hostile
