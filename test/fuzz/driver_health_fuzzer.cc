// SPDX-License-Identifier: Apache-2.0
//
// What instances of a driver may do to its health stream, in any order: come,
// go, hang up, report any bytes, end the stream in any way. The input is a list
// of steps: a byte that says which, and what the step takes.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/quote.h"
#include "common/status.h"
#include "device/driver_health.h"
#include "dra/driver_registry.h"
#include "fuzz/fuzz.h"
#include "support/fake_connection.h"

namespace devmgr::fuzz {
namespace {

using std::chrono::milliseconds;

constexpr char kDriver[] = "d.example.com";

/// Takes the input apart; behind its end there is nothing but zeros.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  unsigned Byte() { return empty() ? 0 : *at_++; }
  /// A length of two bytes, and as much of that as there is.
  std::string Text() {
    std::size_t size = Byte();
    size = size << 8 | Byte();
    size = std::min(size, static_cast<std::size_t>(end_ - at_));
    const std::string text(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return text;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* const end_;
};

/// Keeps the books as the manager does.
class Listener final : public dra::HealthListener {
 public:
  explicit Listener(Executor& executor) : executor_(executor) {}

  void OnHealthReport(
      const std::string& driver,
      const std::vector<device::DeviceReport>& report) override {
    Require(driver == kDriver, "a report is of the driver that made it");
    Require(report.size() <= dra::kMaxReportedDevices, "a report is bounded");
    const auto changed = health_.Report(report, {NowMs(), NowMs()});
    for (const auto& device : changed) CheckDevice(device);
    Require(health_.size() <= device::DriverHealth::kMaxDevices,
            "what is known is bounded");
    Require(health_.Report(report, {NowMs(), NowMs()}).empty(),
            "the same report changes nothing");
    told_ = true;
  }
  void OnHealthLost(const std::string& driver,
                    const std::string& why) override {
    Require(driver == kDriver, "what is lost is of the driver that told it");
    // As it stands in an event.
    RequireReadable(api::Readable(why, 1'024));
    health_.Clear();
    told_ = false;
  }

  bool told() const { return told_; }
  void Expire() {
    health_.Expire(NowMs());
    const auto next = health_.NextExpiry();
    Require(!next.has_value() || *next >= NowMs(), "what has ended is gone");
  }

 private:
  std::int64_t NowMs() const {
    return 1 + std::chrono::duration_cast<milliseconds>(
                   executor_.Now().time_since_epoch())
                   .count();
  }
  void CheckDevice(const device::PoolDevice& device) const {
    const device::EffectiveHealth health = health_.Find(device, NowMs());
    Require(health.message.size() <= device::DriverHealth::kMaxMessageBytes,
            "texts are bounded");
    if (!health.message.empty()) RequireReadable(health.message);
    Require(health.lease_ms <= device::DriverHealth::kMaxLeaseMs,
            "nothing counts for ever");
  }

  Executor& executor_;
  device::DriverHealth health_;
  bool told_ = false;  ///< And not lost since.
};

class World {
 public:
  World()
      : listener_(executor_),
        registry_(
            executor_,
            [this](const auto& socket, auto on_hang_up) {
              auto connection = peer_.Dial(socket, std::move(on_hang_up));
              if (connection.ok()) ++lines_;
              return connection;
            },
            Options()) {
    registry_.WatchHealth(listener_);
  }

  void Step(Input& input) {
    const unsigned step = input.Byte();
    switch (step % 8) {
      case 0:
      case 1:
        Report(input.Text());
        break;
      case 2:
        End(input);
        break;
      case 3:
        // Up to a day and a half.
        executor_.Advance(milliseconds(1LL << input.Byte() % 28));
        break;
      case 4:
        Come(input.Byte());
        break;
      case 5:
        registry_.Deregister(PluginOf(input.Byte()));
        break;
      case 6:
        if (lines_ > 0) peer_.HangUp(input.Byte() % lines_);
        break;
      case 7:
        peer_.set_dial_status(step < 128 ? absl::OkStatus()
                                         : UnavailableError("nobody listens"));
        break;
    }
    executor_.RunPending();
    listener_.Expire();
    CheckStreams();
  }

  /// All leave: nothing is left of what they told.
  void End() {
    for (unsigned i = 0; i < kInstances; ++i) registry_.Deregister(PluginOf(i));
    executor_.RunPending();
    Require(!listener_.told(), "what a driver told goes with it");
    Require(!OpenStream().has_value(), "nobody is listened to who is gone");
    Require(executor_.timers() == 0, "nothing is done about who is gone");
  }

 private:
  static constexpr unsigned kInstances = 3;

  static dra::DriverRegistryOptions Options() {
    dra::DriverRegistryOptions options;
    options.now = [] { return WallTime(); };
    options.on_change = [](const std::string&) {};
    return options;
  }

  /// Instance 2 has no health service.
  static registration::Plugin PluginOf(unsigned number) {
    const unsigned instance = number % kInstances;
    registration::Plugin plugin;
    plugin.type = dra::DriverRegistry::kPluginType;
    plugin.name = kDriver;
    plugin.endpoint = "/" + std::to_string(instance);
    plugin.supported_versions = {"v1.DRAPlugin"};
    if (instance < 2) {
      plugin.supported_versions.emplace_back("v1.DRAResourceHealth");
    }
    plugin.socket_born_ns = number;
    return plugin;
  }

  void Come(unsigned number) {
    const absl::Status taken = registry_.Register(PluginOf(number));
    if (!taken.ok()) RequireReadable(MessageOf(taken));
  }

  void Report(std::string bytes) {
    auto stream = OpenStream();
    if (!stream.has_value()) return;
    // The next one is read after a while only.
    for (int i = 0; i < 1'000 && !peer_.calls()[*stream].reading; ++i) {
      executor_.Advance(milliseconds(1));
      stream = OpenStream();
      if (!stream.has_value()) return;
    }
    Require(peer_.calls()[*stream].reading, "a report is read in the end");
    peer_.SendMessage(*stream, std::move(bytes));
  }

  void End(Input& input) {
    const auto stream = OpenStream();
    const auto code = static_cast<absl::StatusCode>(input.Byte() % 17);
    const std::string text = input.Text();
    if (stream.has_value()) peer_.EndStream(*stream, MakeStatus(code, text));
  }

  std::optional<std::size_t> OpenStream() const {
    for (std::size_t i = 0; i < peer_.calls().size(); ++i) {
      if (peer_.calls()[i].stream.on_end) return i;
    }
    return std::nullopt;
  }

  void CheckStreams() const {
    const auto open = std::count_if(
        peer_.calls().begin(), peer_.calls().end(),
        [](const FakePeer::Call& call) { return bool{call.stream.on_end}; });
    Require(open <= 1, "a driver has one stream");
    const auto plugins = registry_.Plugins();
    for (const auto& plugin : plugins) {
      if (!plugin->last_error.empty()) RequireReadable(plugin->last_error);
    }
    Require(!plugins.empty() || !listener_.told(),
            "what a driver told goes with it");
  }

  ManualExecutor executor_;
  FakePeer peer_;
  std::size_t lines_ = 0;
  Listener listener_;
  dra::DriverRegistry registry_;
};

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // It tells stderr of each text that is not UTF-8.
  static auto* const previous = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(previous);
  devmgr::fuzz::Input input(data, size);
  devmgr::fuzz::World world;
  while (!input.empty()) world.Step(input);
  world.End();
  return 0;
}
