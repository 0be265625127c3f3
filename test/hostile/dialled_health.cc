// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "common/status.h"
#include "devmgr/wire/dra/health/v1/health.pb.h"
#include "devmgr/wire/dra/v1/dra.pb.h"
#include "dra/driver_registry.h"
#include "hostile/dialled.h"
#include "rpc/message.h"

namespace devmgr::hostile {
namespace {

using dra::DriverRegistry;
using Stream = std::shared_ptr<rpc::ServerStream>;
namespace health = wire::dra::health::v1;

constexpr char kWatch[] = "/v1.DRAResourceHealth/NodeWatchResources";

std::string ReportOf(const std::string& device, int devices, bool healthy) {
  health::NodeWatchResourcesResponse report;
  for (int i = 0; i < devices; ++i) {
    health::DeviceHealth* item = report.add_devices();
    item->mutable_device()->set_pool_name("pool");
    item->mutable_device()->set_device_name(fmt::format("{}-{}", device, i));
    item->set_health(healthy ? health::HEALTHY : health::UNHEALTHY);
  }
  return rpc::Encode(report);
}

/// Two drivers that do their work and have a health stream: that of one of them
/// is hostile. The other one has something to tell when it is asked to.
class Health final : public Dialled, private dra::HealthListener {
 public:
  Health(rpc::Runtime& runtime, const std::filesystem::path& folder)
      : runtime_(runtime), neighbour_(folder / "good.sock") {
    server_ = ServeStream(
        neighbour_, [this](const Stream& stream) { good_stream_ = stream; });
    executor_->Post([this] {
      dra::DriverRegistryOptions options;
      options.instance.call_timeout = kCallTimeout;
      options.now = [] { return WallTime(); };
      options.on_change = [](const std::string&) {};
      registry_ = std::make_unique<DriverRegistry>(
          *executor_,
          [this](const auto& socket, auto on_hang_up) {
            if (socket != neighbour_) ++costs_.dials;
            return rpc::Dial(runtime_, socket, std::move(on_hang_up));
          },
          options);
      registry_->WatchHealth(*this);
      TakeIn(kGoodDriver, neighbour_);
    });
  }

  ~Health() override {
    executor_->Post([this] { registry_.reset(); });
    executor_->Stop();
    flood_.reset();
  }

  std::unique_ptr<rpc::Server> Serve(const std::filesystem::path& socket,
                                     Misbehaviour misbehaviour) override {
    // As other sockets are; all else is a matter of the stream.
    if (misbehaviour == Misbehaviour::kIsReplacedUnderUs) return nullptr;
    if (misbehaviour == Misbehaviour::kFloods) {
      flood_ = std::make_unique<Flood>(WriteMuch);
    }
    if (misbehaviour == Misbehaviour::kServesOtherMethods) {
      return ServeStream(socket, nullptr);
    }
    return ServeStream(socket, [this, misbehaviour](const Stream& stream) {
      ++costs_.calls;
      Misbehave(misbehaviour, stream);
    });
  }

  void Register(const std::filesystem::path& socket) override {
    executor_->Post([this, socket] { TakeIn(kBadDriver, socket); });
  }
  void RegisterAgain(const std::filesystem::path& socket, rpc::Server&,
                     int name) override {
    executor_->Post([this, socket, name] {
      if (registry_ == nullptr) return;
      registry_->Deregister(bad_);
      TakeIn(name == 0 ? kBadDriver : fmt::format("bad-{}.example.com", name),
             socket);
    });
  }

  void CallNeighbour(std::function<void(absl::Status)> done) override {
    executor_->Post([this, done] {
      if (good_stream_ == nullptr) {  // It is about to be.
        executor_->PostAfter(std::chrono::milliseconds(1),
                             [this, done] { CallNeighbour(done); });
        return;
      }
      const std::string device = fmt::format("d{}", ++told_);
      waiting_[device + "-0"] = done;
      good_stream_->Write(ReportOf(device, 1, true));
    });
  }

  Bounds bounds(Misbehaviour misbehaviour) const override {
    Bounds bounds;
    bounds.calls_at_least = 0;  // It is we who are told.
    // The budget of one driver: half a second of work at once, then a fifth.
    if (misbehaviour == Misbehaviour::kFloods) bounds.reports = 3'300;
    return bounds;
  }

 private:
  std::unique_ptr<rpc::Server> ServeStream(
      const std::filesystem::path& socket,
      const std::function<void(const Stream&)>& on_stream) {
    rpc::ServerOptions options;
    options.socket = socket;
    options.methods[kPrepareMethod] = [](const std::string&,
                                         const rpc::Respond& respond) {
      respond(rpc::Encode(wire::dra::v1::NodePrepareResourcesResponse()));
    };
    if (on_stream) {
      options.streams[kWatch] = [this, on_stream](const std::string&,
                                                  const Stream& stream) {
        executor_->Post([on_stream, stream] { on_stream(stream); });
      };
    }
    return Start(std::move(options));
  }

  void Misbehave(Misbehaviour misbehaviour, const Stream& stream) {
    switch (misbehaviour) {
      case Misbehaviour::kRefuses:
        return stream->Finish(UnavailableError("not now"));
      case Misbehaviour::kAcceptsAndCloses:
        return stream->Finish(absl::OkStatus());
      case Misbehaviour::kAnswersHalf:
        stream->Write(ReportOf("d", 3, true).substr(0, 10));
        break;
      case Misbehaviour::kSpeaksOtherwise:
        stream->Write("HTTP/1.1 400 Bad Request");
        break;
      case Misbehaviour::kAnswersLate:
        executor_->PostAfter(
            kLate, [stream] { stream->Write(ReportOf("d", 3, true)); });
        break;
      case Misbehaviour::kAnswersForAnother:
        stream->Write(ReportOf("No Name / that\na device has", 3, false));
        break;
      case Misbehaviour::kFloods:
        flood_->Put(stream);
        break;
      case Misbehaviour::kIsSilent:
        break;
      default:
        stream->Write(ReportOf("d", 3, true));
    }
    kept_.push_back(stream);
  }

  /// 4,000 reports a second, of which each says something else.
  static void WriteMuch(rpc::ServerStream& stream, int beat) {
    for (int i = 0; i < 40; ++i) {
      stream.Write(ReportOf("d", 20, (beat + i) % 2 == 0));
    }
  }

  void TakeIn(const std::string& driver, const std::filesystem::path& socket) {
    registration::Plugin plugin{DriverRegistry::kPluginType,
                                driver,
                                socket,
                                {"v1.DRAPlugin", "v1.DRAResourceHealth"},
                                {}};
    plugin.registration = ++registrations_;
    EXPECT_TRUE(registry_->Register(plugin).ok());
    if (driver != kGoodDriver) bad_ = plugin;
  }

  void OnHealthReport(
      const std::string& driver,
      const std::vector<device::DeviceReport>& report) override {
    if (driver != kGoodDriver) {
      ++costs_.reports;
      return;
    }
    for (const device::DeviceReport& one : report) {
      const auto waits = waiting_.extract(one.device.second);
      if (!waits.empty()) waits.mapped()(absl::OkStatus());
    }
  }
  void OnHealthLost(const std::string& driver,
                    const std::string& why) override {
    if (driver != kGoodDriver) {
      ++costs_.reports;
      return;
    }
    for (const auto& [device, done] : std::exchange(waiting_, {})) {
      done(UnavailableError("{}", why));
    }
  }

  rpc::Runtime& runtime_;
  const std::filesystem::path neighbour_;
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("health");
  std::unique_ptr<rpc::Server> server_;
  Stream good_stream_;
  std::vector<Stream> kept_;
  std::map<std::string, std::function<void(absl::Status)>> waiting_;
  std::uint64_t told_ = 0;
  std::uint64_t registrations_ = 0;
  registration::Plugin bad_;  ///< That is registered now.
  std::unique_ptr<DriverRegistry> registry_;
  std::unique_ptr<Flood> flood_;
};

}  // namespace

std::unique_ptr<Dialled> DialledHealth(rpc::Runtime& runtime,
                                       const std::filesystem::path& folder) {
  return std::make_unique<Health>(runtime, folder);
}

}  // namespace devmgr::hostile
