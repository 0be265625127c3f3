// SPDX-License-Identifier: Apache-2.0
#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>
#include <gtest/gtest.h>

#include <utility>

#include "common/status.h"
#include "hostile/dialled.h"
#include "plugin/plugin_registry.h"
#include "rpc/message.h"

namespace devmgr::hostile {
namespace {

using plugin::PluginRegistry;
namespace v1beta1 = wire::deviceplugin::v1beta1;

constexpr char kBadResource[] = "example.com/bad";
constexpr char kGoodResource[] = "example.com/good";

/// Two resources, one of a good plugin and one of a hostile one.
class Plugins final : public Dialled, private plugin::PluginListener {
 public:
  Plugins(rpc::Runtime& runtime, const std::filesystem::path& folder)
      : runtime_(runtime),
        neighbour_(folder / "good.sock"),
        server_(ServeWell(neighbour_)) {
    executor_->Post([this] {
      plugin::PluginRegistryOptions options;
      options.instance.timeouts = {kCallTimeout, kCallTimeout, kCallTimeout,
                                   kCallTimeout};
      options.long_lists_apart = true;  // As on a node.
      options.now = [] { return WallTime(); };
      registry_ = std::make_unique<PluginRegistry>(
          *executor_,
          [this](const auto& socket, auto on_hang_up) {
            if (socket != neighbour_) ++costs_.dials;
            return rpc::Dial(runtime_, socket, std::move(on_hang_up));
          },
          options, static_cast<plugin::PluginListener&>(*this));
      TakeIn(kGoodResource, neighbour_);
    });
  }

  ~Plugins() override {
    executor_->Post([this] { registry_.reset(); });
    executor_->Stop();
    flood_.reset();
  }

  void Register(const std::filesystem::path& socket) override {
    executor_->Post([this, socket] {
      TakeIn(kBadResource, socket);
      KeepCalling();
    });
  }

  void CallNeighbour(std::function<void(absl::Status)> done) override {
    executor_->Post([this, done] {
      if (registry_ == nullptr) return;
      if (good_ == 0) {  // It is about to be.
        executor_->PostAfter(std::chrono::milliseconds(1),
                             [this, done] { CallNeighbour(done); });
        return;
      }
      registry_->Allocate(kGoodResource, good_, {"a"}, {},
                          [done](const auto& edits) { done(edits.status()); });
    });
  }

  std::unique_ptr<rpc::Server> Serve(const std::filesystem::path& socket,
                                     Misbehaviour misbehaviour) override {
    switch (misbehaviour) {
      case Misbehaviour::kServesOtherMethods:
        return Start({.socket = socket});
      case Misbehaviour::kAnswersLate:
        return ServeWell(socket, kLate);
      case Misbehaviour::kAnswersForAnother:
        return ServeWell(socket, std::chrono::milliseconds(0), 7);
      case Misbehaviour::kFloods:
        flood_ = std::make_unique<Flood>(WriteMuch);
        return ServeWell(socket);
      case Misbehaviour::kRegistersInALoop:
      case Misbehaviour::kComesUnderOtherNames:
        return ServeWell(socket);
      default:
        return nullptr;
    }
  }

  void RegisterAgain(const std::filesystem::path& socket, rpc::Server&,
                     int name) override {
    executor_->Post([this, socket, name] {
      if (registry_ == nullptr) return;
      TakeIn(name == 0 ? kBadResource : fmt::format("example.com/bad-{}", name),
             socket);
    });
  }

 private:
  std::unique_ptr<rpc::Server> ServeWell(
      const std::filesystem::path& socket,
      std::chrono::milliseconds delay = std::chrono::milliseconds(0),
      int containers = 1) {
    const std::string service = "/v1beta1.DevicePlugin/";
    rpc::ServerOptions options;
    options.socket = socket;
    const auto answer = [this, delay](std::string bytes) {
      return [this, delay, bytes = std::move(bytes)](
                 const std::string&, const rpc::Respond& respond) {
        executor_->PostAfter(delay, [respond, bytes] { respond(bytes); });
      };
    };
    v1beta1::AllocateResponse allocated;
    for (int i = 0; i < containers; ++i) allocated.add_container_responses();
    options.methods[service + "GetDevicePluginOptions"] = answer("");
    options.methods[service + "Allocate"] = answer(rpc::Encode(allocated));
    options.streams[service + "ListAndWatch"] =
        [this](const std::string&,
               const std::shared_ptr<rpc::ServerStream>& stream) {
          v1beta1::ListAndWatchResponse list;
          list.add_devices()->set_id("a");
          list.mutable_devices(0)->set_health("Healthy");
          stream->Write(rpc::Encode(list));
          executor_->Post([this, stream] {
            streams_.push_back(stream);
            // The neighbour's is the first.
            if (flood_ && streams_.size() > 1) flood_->Put(stream);
          });
        };
    return Start(std::move(options));
  }

  /// 4,000 lists a second, of which each says something else, and now and then
  /// a long one.
  static void WriteMuch(rpc::ServerStream& stream, int beat) {
    static const std::string kLists[] = {ListOf(20, 0), ListOf(20, 10)};
    static const std::string kLong = ListOf(5'000, 10);
    for (std::size_t i = 0; i < 40; ++i) stream.Write(kLists[i % 2]);
    if (beat % 5 == 0) stream.Write(kLong);
  }

  static std::string ListOf(int devices, int failed) {
    v1beta1::ListAndWatchResponse list;
    for (int i = 0; i < devices; ++i) {
      auto* device = list.add_devices();
      device->set_id(fmt::format("d{}", i));
      device->set_health(i < failed ? "Unhealthy" : "Healthy");
    }
    return rpc::Encode(list);
  }

  void TakeIn(const std::string& resource,
              const std::filesystem::path& socket) {
    if (resource != kGoodResource) bad_resource_ = resource;
    registry_->Register(
        {PluginRegistry::kPluginType, resource, socket, {"v1beta1"}, {}},
        [](const absl::Status&) {});
  }

  void OnConnected(const ResourceName& resource, plugin::Generation generation,
                   const plugin::PluginOptions&) override {
    (resource == kGoodResource ? good_ : bad_) = generation;
    OnNews(resource);
  }
  void OnGone(const ResourceName& resource, plugin::Generation,
              const std::string&) override {
    OnNews(resource);
  }
  void OnState(const plugin::InstanceInfo& info) override {
    OnNews(info.resource);
  }

  void OnNews(const std::string& resource) {
    if (resource == kGoodResource) return;
    ++costs_.reports;
    CallBad();
  }
  /// Whoever was woken calls at once, as often as he is.
  void CallBad() {
    executor_->Post([this] {
      if (registry_ == nullptr) return;  // It is over.
      ++costs_.calls;
      registry_->Allocate(bad_resource_, bad_, {"a"}, {}, [](const auto&) {});
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
      ThreadExecutor::Start("plugins");
  std::vector<std::shared_ptr<rpc::ServerStream>> streams_;
  std::unique_ptr<rpc::Server> server_;
  plugin::Generation good_ = 0;
  plugin::Generation bad_ = 0;
  std::string bad_resource_ = kBadResource;
  std::unique_ptr<PluginRegistry> registry_;
  std::unique_ptr<Flood> flood_;
};

}  // namespace

std::unique_ptr<Dialled> DialledPlugins(rpc::Runtime& runtime,
                                        const std::filesystem::path& folder) {
  return std::make_unique<Plugins>(runtime, folder);
}

}  // namespace devmgr::hostile
