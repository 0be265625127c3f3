// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cri_shim.h>
#include <devmgr/inspection.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "hostile/dialled.h"
#include "rpc/message.h"
#include "server/convert.h"
#include "support/fake_device_manager.h"

namespace devmgr::hostile {
namespace {

constexpr char kUid[] = "u-1";

std::string Field(std::uint32_t number, std::string_view bytes) {
  std::string message;
  cri::AppendBytesField(&message, number, bytes);
  return message;
}

/// A CreateContainer for container `c` of the pod `ns/p`.
std::string CreateContainer() {
  return Field(1, "sandbox-1") + Field(2, Field(1, Field(1, "c"))) +
         Field(3, Field(1, Field(1, "p") + Field(2, kUid) + Field(3, "ns")));
}

PodDevices DevicesOf(const std::string& uid) {
  ContainerDevices devices;
  devices.name = "c";
  devices.env = {{"K", "v", "example.com/r"}};
  return {{"ns", "p"}, {uid}, {std::move(devices)}};
}

/// Two CRI shims before one runtime, each of which asks a daemon what pods
/// have: the daemon of one is hostile. Callers of both create containers all
/// the time.
class Inspections final : public Dialled {
 public:
  Inspections(rpc::Runtime& runtime, const std::filesystem::path& folder)
      : runtime_(runtime), folder_(folder) {
    StartRuntime();
    manager_.Set([](FakeDeviceManager::World& world) {
      world.answers[{kUid}] =
          std::make_shared<const PodDevices>(DevicesOf(kUid));
    });
    PodInfo pod;
    pod.name = {"ns", "p"};
    pod.uid = {kUid};
    pod.state = PodState::kReady;
    manager_.ChangePod(pod);
    auto daemon = InspectionServer::Start(manager_, folder / "good.sock");
    EXPECT_TRUE(daemon.ok()) << daemon.status();
    if (daemon.ok()) daemon_ = *std::move(daemon);
    good_shim_ = Shim(OptionsOf("good-shim.sock", folder / "good.sock"));
    good_caller_ = Caller("good-shim.sock");
  }

  ~Inspections() override {
    executor_->Stop();
    good_caller_.reset();
    bad_caller_.reset();
    good_shim_.reset();
    bad_shim_.reset();
    daemon_.reset();
  }

  std::unique_ptr<rpc::Server> Serve(const std::filesystem::path& socket,
                                     Misbehaviour misbehaviour) override {
    rpc::ServerOptions options;
    options.socket = socket;
    switch (misbehaviour) {
      case Misbehaviour::kServesOtherMethods:
        break;
      case Misbehaviour::kAnswersLate:
        ServeDevices(&options, kUid, kLate);
        break;
      case Misbehaviour::kAnswersForAnother:
        ServeDevices(&options, "u-another", {});
        break;
      case Misbehaviour::kRegistersInALoop:
      case Misbehaviour::kComesUnderOtherNames:
        ServeDevices(&options, kUid, {});
        break;
      default:
        return nullptr;
    }
    return Start(std::move(options));
  }

  void Register(const std::filesystem::path& socket) override {
    CriShimOptions options = OptionsOf("bad-shim.sock", socket);
    options.log = [this](LogLevel, std::string_view) { ++costs_.log_lines; };
    options.on_event = [this](const EventInfo&) { ++costs_.events; };
    bad_shim_ = Shim(options);
    bad_caller_ = Caller("bad-shim.sock");
    executor_->Post([this] { KeepCalling(); });
  }
  /// A daemon has no other names.
  void RegisterAgain(const std::filesystem::path&, rpc::Server& server,
                     int) override {
    EXPECT_TRUE(server.Relisten().ok());
  }

  void CallNeighbour(std::function<void(absl::Status)> done) override {
    good_caller_->Call(std::string(cri::method::kCreateContainer),
                       CreateContainer(), {std::chrono::seconds(20)},
                       [done](const absl::StatusOr<std::string>& answer) {
                         done(answer.status());
                       });
  }

  Bounds bounds(Misbehaviour) const override {
    Bounds bounds;
    // A caller of a CRI that calls again has the daemon dialled again.
    bounds.dials = 140;
    return bounds;
  }

 private:
  void StartRuntime() {
    rpc::ServerOptions options;
    options.socket = folder_ / "runtime.sock";
    const auto answer = [&options](std::string_view method,
                                   const std::string& bytes) {
      options.methods[std::string(method)] =
          [bytes](const std::string&, const rpc::Respond& respond) {
            respond(bytes);
          };
    };
    answer(cri::method::kVersion, Field(1, "0.1.0") + Field(2, "containerd") +
                                      Field(3, "2.0.1") + Field(4, "v1"));
    answer(cri::method::kStatus, "");
    answer(cri::method::kListPodSandbox, "");
    answer(cri::method::kListContainers, "");
    answer(cri::method::kCreateContainer, Field(1, "container-1"));
    containers_ = Start(std::move(options));
  }

  /// Says that the pod has devices, and that it is `uid`.
  void ServeDevices(rpc::ServerOptions* options, const std::string& uid,
                    std::chrono::milliseconds delay) {
    const auto answer = [&](const std::string& method, std::string bytes) {
      options->methods[std::string(server::kServicePath) + method] =
          [this, delay, bytes = std::move(bytes)](const std::string&,
                                                  const rpc::Respond& respond) {
            if (delay.count() == 0) return respond(bytes);
            executor_->PostAfter(delay, [respond, bytes] { respond(bytes); });
          };
    };
    answer("PodDevicesOf", rpc::Encode(server::ToProto(DevicesOf(uid))));
    answer("ReportRuntime", "");
  }

  CriShimOptions OptionsOf(const char* listen,
                           const std::filesystem::path& devmgrd) const {
    CriShimOptions options;
    options.proxy.listen = folder_ / listen;
    options.proxy.backend = folder_ / "runtime.sock";
    options.devmgrd = devmgrd;
    options.call_timeout = kCallTimeout;
    options.cdi_spec_dirs = {folder_ / "cdi"};
    return options;
  }
  static std::unique_ptr<CriShim> Shim(const CriShimOptions& options) {
    auto shim = CriShim::Start(options);
    EXPECT_TRUE(shim.ok()) << shim.status();
    return shim.ok() ? *std::move(shim) : nullptr;
  }
  std::unique_ptr<rpc::Connection> Caller(const char* listen) {
    auto caller = rpc::Dial(runtime_, folder_ / listen, [] {});
    EXPECT_TRUE(caller.ok()) << caller.status();
    return caller.ok() ? *std::move(caller) : nullptr;
  }

  void KeepCalling() {
    ++costs_.calls;
    bad_caller_->Call(std::string(cri::method::kCreateContainer),
                      CreateContainer(), {kCallTimeout},
                      [](const absl::StatusOr<std::string>&) {});
    executor_->PostAfter(kBeat, [this] { KeepCalling(); });
  }

  rpc::Runtime& runtime_;
  const std::filesystem::path folder_;
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("inspections");
  std::unique_ptr<rpc::Server> containers_;  ///< The runtime's.
  FakeDeviceManager manager_;
  std::unique_ptr<InspectionServer> daemon_;  ///< The good one.
  std::unique_ptr<CriShim> good_shim_;
  std::unique_ptr<CriShim> bad_shim_;
  std::unique_ptr<rpc::Connection> good_caller_;
  std::unique_ptr<rpc::Connection> bad_caller_;
};

}  // namespace

std::unique_ptr<Dialled> DialledInspections(
    rpc::Runtime& runtime, const std::filesystem::path& folder) {
  return std::make_unique<Inspections>(runtime, folder);
}

}  // namespace devmgr::hostile
