// SPDX-License-Identifier: Apache-2.0
#include "testing/fake_plugin_fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "rpc/message.h"

namespace devmgr::testing {

FakePluginFixture::FakePluginFixture()
    : runtime_(rpc::Runtime::Start().value()) {}

FakePluginFixture::~FakePluginFixture() {
  connections_.clear();
  plugin_.reset();
  registry_.reset();
}

FakeDevicePluginOptions FakePluginFixture::Options() {
  FakeDevicePluginOptions options;
  options.resource = kResource;
  options.root = root_;
  options.devices = 2;
  options.on_event = [this](std::string_view line) {
    MutexLock lock(mutex_);
    events_.push_back(nlohmann::json::parse(line));
    changed_.NotifyAll();
  };
  return options;
}

void FakePluginFixture::StartPlugin(FakeDevicePluginOptions options) {
  plugin_.reset();
  auto plugin = FakeDevicePlugin::Start(std::move(options));
  ASSERT_TRUE(plugin.ok()) << plugin.status().ToString();
  plugin_ = *std::move(plugin);
}

ScenarioStep FakePluginFixture::Step(ScenarioStep::Action action,
                                     const std::string& method) {
  ScenarioStep step;
  step.action = action;
  step.method = method;
  return step;
}

void FakePluginFixture::StartRegistry() {
  std::filesystem::create_directories(RegistrySocket().parent_path());
  rpc::ServerOptions options;
  options.socket = RegistrySocket();
  options.methods["/v1beta1.Registration/Register"] =
      [this](const std::string& request, const rpc::Respond& respond) {
        // First: who has his answer has been counted.
        registrations_.Put(request);
        if (verdict_.ok()) {
          respond(rpc::Encode(deviceplugin::Empty()));
        } else {
          respond(verdict_);
        }
      };
  auto server = rpc::Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  registry_ = *std::move(server);
}

std::optional<deviceplugin::RegisterRequest>
FakePluginFixture::NextRegistration() {
  const auto bytes = registrations_.Take();
  if (!bytes) return std::nullopt;
  auto request = rpc::Decode<deviceplugin::RegisterRequest>(*bytes);
  if (!request.ok()) return std::nullopt;
  return *std::move(request);
}

std::filesystem::path FakePluginFixture::RegistrySocket() const {
  return root_ / "device-plugins" / "kubelet.sock";
}

std::filesystem::path FakePluginFixture::Socket() const {
  return root_ / "device-plugins" / "example.com_gpu.sock";
}

std::filesystem::path FakePluginFixture::RegistrationSocket() const {
  return root_ / "plugins_registry" / "example.com_gpu-reg.sock";
}

std::shared_ptr<Answers> FakePluginFixture::StartCall(
    const std::string& method, const std::string& request,
    std::filesystem::path socket) {
  auto answers = std::make_shared<Answers>();
  auto connection =
      rpc::Dial(*runtime_, socket.empty() ? Socket() : socket, [] {});
  if (!connection.ok()) {
    answers->Put(connection.status());
    return answers;
  }
  (*connection)
      ->Call(method, request, {kPatience},
             [answers](absl::StatusOr<std::string> answer) {
               answers->Put(std::move(answer));
             });
  connections_.push_back(*std::move(connection));
  return answers;
}

absl::StatusOr<std::string> FakePluginFixture::Call(
    const std::string& method, const std::string& request,
    std::filesystem::path socket) {
  auto answer = StartCall(method, request, std::move(socket))->Take();
  if (!answer) return DeadlineExceededError("no answer");
  return *std::move(answer);
}

template <typename Response>
absl::StatusOr<Response> FakePluginFixture::CallFor(
    const std::string& method, const google::protobuf::MessageLite& request,
    std::filesystem::path socket) {
  DEVMGR_ASSIGN_OR_RETURN(
      const std::string bytes,
      Call(method, rpc::Encode(request), std::move(socket)));
  return rpc::Decode<Response>(bytes);
}

namespace {

deviceplugin::AllocateRequest AllocateRequestFor(
    const std::vector<std::string>& ids) {
  deviceplugin::AllocateRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : ids) container->add_devices_ids(id);
  return request;
}

constexpr char kAllocate[] = "/v1beta1.DevicePlugin/Allocate";

}  // namespace

std::shared_ptr<Answers> FakePluginFixture::StartAllocate(
    const std::vector<std::string>& ids) {
  return StartCall(kAllocate, rpc::Encode(AllocateRequestFor(ids)));
}

absl::StatusOr<deviceplugin::ContainerAllocateResponse>
FakePluginFixture::Allocate(const std::vector<std::string>& ids,
                            std::filesystem::path socket) {
  DEVMGR_ASSIGN_OR_RETURN(
      const deviceplugin::AllocateResponse response,
      CallFor<deviceplugin::AllocateResponse>(
          kAllocate, AllocateRequestFor(ids), std::move(socket)));
  if (response.container_responses_size() != 1) {
    return OutOfRangeError("{} containers",
                           response.container_responses_size());
  }
  return response.container_responses(0);
}

absl::StatusOr<std::vector<std::string>> FakePluginFixture::Prefer(
    const std::vector<std::string>& available,
    const std::vector<std::string>& must_include, int size) {
  deviceplugin::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : available) {
    container->add_available_device_ids(id);
  }
  for (const std::string& id : must_include) {
    container->add_must_include_device_ids(id);
  }
  container->set_allocation_size(size);
  DEVMGR_ASSIGN_OR_RETURN(
      const deviceplugin::PreferredAllocationResponse response,
      CallFor<deviceplugin::PreferredAllocationResponse>(
          "/v1beta1.DevicePlugin/GetPreferredAllocation", request));
  if (response.container_responses_size() != 1) {
    return OutOfRangeError("{} containers",
                           response.container_responses_size());
  }
  const auto& ids = response.container_responses(0).device_ids();
  return std::vector<std::string>(ids.begin(), ids.end());
}

absl::Status FakePluginFixture::PreStart(const std::vector<std::string>& ids) {
  deviceplugin::PreStartContainerRequest request;
  for (const std::string& id : ids) request.add_devices_ids(id);
  return CallFor<deviceplugin::PreStartContainerResponse>(
             "/v1beta1.DevicePlugin/PreStartContainer", request)
      .status();
}

absl::StatusOr<deviceplugin::DevicePluginOptions>
FakePluginFixture::GetOptions() {
  return CallFor<deviceplugin::DevicePluginOptions>(
      "/v1beta1.DevicePlugin/GetDevicePluginOptions", deviceplugin::Empty());
}

absl::StatusOr<registration::PluginInfo> FakePluginFixture::GetInfo(
    const std::filesystem::path& socket) {
  return CallFor<registration::PluginInfo>(
      "/pluginregistration.Registration/GetInfo", registration::InfoRequest(),
      socket);
}

absl::Status FakePluginFixture::Notify(const std::filesystem::path& socket,
                                       bool registered,
                                       const std::string& error) {
  registration::RegistrationStatus status;
  status.set_plugin_registered(registered);
  status.set_error(error);
  return CallFor<registration::RegistrationStatusResponse>(
             "/pluginregistration.Registration/NotifyRegistrationStatus",
             status, socket)
      .status();
}

std::unique_ptr<StreamClient> FakePluginFixture::Watch(
    std::filesystem::path socket) {
  return std::make_unique<StreamClient>(socket.empty() ? Socket() : socket,
                                        "/v1beta1.DevicePlugin/ListAndWatch",
                                        "");
}

std::vector<std::string> FakePluginFixture::NextList(StreamClient* stream) {
  const auto bytes = stream->Next();
  if (!bytes) return {"no list: " + stream->End().error_message()};
  const auto list = rpc::Decode<deviceplugin::ListAndWatchResponse>(*bytes);
  if (!list.ok()) return {MessageOf(list.status())};
  std::vector<std::string> devices;
  for (const auto& device : list->devices()) {
    std::string text = device.id() + " " + device.health();
    std::vector<std::int64_t> nodes;
    for (const auto& node : device.topology().nodes()) {
      nodes.push_back(node.id());
    }
    if (!nodes.empty()) text += fmt::format("@{}", fmt::join(nodes, ","));
    devices.push_back(std::move(text));
  }
  return devices;
}

std::vector<nlohmann::json> FakePluginFixture::Events(
    const std::string& kind) const {
  MutexLock lock(mutex_);
  std::vector<nlohmann::json> found;
  for (const auto& event : events_) {
    if (event.value("event", "") == kind) found.push_back(event);
  }
  return found;
}

bool FakePluginFixture::WaitForEvent(const std::string& kind,
                                     std::size_t count) const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  for (;;) {
    const auto found = std::count_if(
        events_.begin(), events_.end(),
        [&](const auto& event) { return event.value("event", "") == kind; });
    if (found >= static_cast<std::ptrdiff_t>(count)) return true;
    if (!changed_.WaitUntil(mutex_, deadline)) return false;
  }
}

}  // namespace devmgr::testing
