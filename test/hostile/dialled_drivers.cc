// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "common/status.h"
#include "devmgr/wire/dra/v1/dra.pb.h"
#include "dra/driver_registry.h"
#include "hostile/dialled.h"
#include "rpc/message.h"
#include "support/builders.h"

namespace devmgr::hostile {
namespace {

using dra::DriverRegistry;
namespace v1 = wire::dra::v1;

/// Two drivers: one whose only socket is hostile, and one that has a good
/// instance, and, newer, the same hostile socket if that does not answer.
class Drivers final : public Dialled {
 public:
  Drivers(rpc::Runtime& runtime, const std::filesystem::path& folder)
      : runtime_(runtime),
        neighbour_(folder / "good.sock"),
        server_(ServeWell(neighbour_)) {
    executor_->Post([this] {
      dra::DriverRegistryOptions options;
      options.instance.call_timeout = kCallTimeout;
      options.now = [] { return WallTime(); };
      options.on_change = [this](const std::string& driver) {
        ++costs_.reports;
        if (driver != kGoodDriver) CallBad();
      };
      registry_ = std::make_unique<DriverRegistry>(
          *executor_,
          [this](const auto& socket, auto on_hang_up) {
            if (socket != neighbour_) ++costs_.dials;
            return rpc::Dial(runtime_, socket, std::move(on_hang_up));
          },
          options);
      TakeIn(kGoodDriver, neighbour_, 1);
    });
  }

  ~Drivers() override {
    executor_->Post([this] { registry_.reset(); });
    executor_->Stop();
  }

  void Register(const std::filesystem::path& socket) override {
    executor_->Post([this, socket] {
      TakeIn(kBadDriver, socket, 2);
      // What answers, if only with errors, and is the newest, is the instance
      // that calls of its driver go to.
      if (!answers_) TakeIn(kGoodDriver, socket, 3);
      KeepCalling();
    });
  }

  void CallNeighbour(std::function<void(absl::Status)> done) override {
    executor_->Post([this, done] {
      if (registry_ == nullptr) return;
      registry_->Prepare(kGoodDriver, {{ClaimUid{"u-C"}, devmgr::NameOf("C")}},
                         [done](const dra::PrepareAnswer& answer) {
                           done(answer.at(ClaimUid{"u-C"}).status());
                         });
    });
  }

  std::unique_ptr<rpc::Server> Serve(const std::filesystem::path& socket,
                                     Misbehaviour misbehaviour) override {
    std::unique_ptr<rpc::Server> server = Answer(socket, misbehaviour);
    answers_ = server != nullptr;
    return server;
  }

  /// As its registration socket does when it is made anew.
  void RegisterAgain(const std::filesystem::path& socket, rpc::Server&,
                     int name) override {
    executor_->Post([this, socket, name] {
      if (registry_ == nullptr) return;
      registry_->Deregister(bad_);
      TakeIn(name == 0 ? kBadDriver : fmt::format("bad-{}.example.com", name),
             socket, ++age_);
    });
  }

 private:
  std::unique_ptr<rpc::Server> Answer(const std::filesystem::path& socket,
                                      Misbehaviour misbehaviour) {
    switch (misbehaviour) {
      case Misbehaviour::kServesOtherMethods:
        return Start({.socket = socket});
      case Misbehaviour::kAnswersLate:
        return ServeWell(socket, kLate);
      case Misbehaviour::kAnswersForAnother:
        return ServeWell(socket, std::chrono::milliseconds(0), "-other");
      case Misbehaviour::kRegistersInALoop:
      case Misbehaviour::kComesUnderOtherNames:
        return ServeWell(socket);
      default:
        return nullptr;
    }
  }

  std::unique_ptr<rpc::Server> ServeWell(
      const std::filesystem::path& socket,
      std::chrono::milliseconds delay = std::chrono::milliseconds(0),
      const std::string& suffix = "") {
    rpc::ServerOptions options;
    options.socket = socket;
    options.methods[kPrepareMethod] = [this, delay, suffix](
                                          const std::string& bytes,
                                          const rpc::Respond& respond) {
      v1::NodePrepareResourcesRequest request;
      EXPECT_TRUE(request.ParseFromString(bytes));
      v1::NodePrepareResourcesResponse response;
      for (const auto& claim : request.claims()) {
        auto* device =
            (*response.mutable_claims())[claim.uid() + suffix].add_devices();
        device->set_pool_name("pool-1");
        device->set_device_name("dev-1");
      }
      executor_->PostAfter(delay, [respond, answer = rpc::Encode(response)] {
        respond(answer);
      });
    };
    return Start(std::move(options));
  }

  void TakeIn(const std::string& driver, const std::filesystem::path& socket,
              int age) {
    registration::Plugin plugin{
        DriverRegistry::kPluginType, driver, socket, {"v1.DRAPlugin"}, {}};
    plugin.socket_born_ns = age;
    plugin.registration = static_cast<std::uint64_t>(age);
    EXPECT_TRUE(registry_->Register(plugin).ok());
    if (driver != kGoodDriver) bad_ = plugin;
  }

  /// Whoever was woken calls at once, as often as he is.
  void CallBad() {
    executor_->Post([this] {
      if (registry_ == nullptr) return;  // It is over.
      ++costs_.calls;
      registry_->Prepare(bad_.name, {{ClaimUid{"u-C"}, devmgr::NameOf("C")}},
                         [](const dra::PrepareAnswer&) {});
    });
  }
  void KeepCalling() {
    CallBad();
    executor_->PostAfter(std::chrono::milliseconds(10),
                         [this] { KeepCalling(); });
  }

  rpc::Runtime& runtime_;
  const std::filesystem::path neighbour_;
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("drivers");
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<DriverRegistry> registry_;
  registration::Plugin bad_;  ///< That is registered now.
  int age_ = 3;
  std::atomic<bool> answers_{false};
};

}  // namespace

std::unique_ptr<Dialled> DialledDrivers(rpc::Runtime& runtime,
                                        const std::filesystem::path& folder) {
  return std::make_unique<Drivers>(runtime, folder);
}

}  // namespace devmgr::hostile
