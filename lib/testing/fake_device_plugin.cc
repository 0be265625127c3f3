// SPDX-License-Identifier: Apache-2.0
#include "testing/fake_device_plugin.h"

#include <devmgr/cdi_cache.h>
#include <fmt/format.h>

#include <utility>

#include "common/status.h"
#include "testing/files.h"
#include "testing/plugin_wire.h"
#include "testing/registration_wire.h"
#include "testing/scenario.h"

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;

constexpr std::size_t kMaxResourceBytes = 1024;
/// Until sockets that could not be opened are tried again.
constexpr std::chrono::milliseconds kReopenAfter{1'000};
/// Only what would break paths is refused: a plugin with a name that no
/// manager accepts is a thing to test.
absl::Status CheckOptions(const FakeDevicePluginOptions& options) {
  std::vector<std::string> problems;
  if (options.resource.size() > kMaxResourceBytes) {
    problems.push_back(fmt::format("resource has {} bytes, more than {}",
                                   options.resource.size(), kMaxResourceBytes));
  }
  if (options.root.empty()) problems.push_back("root is empty");
  if (options.devices < 0 || options.devices > kMaxDevices) {
    problems.push_back(fmt::format("devices is {}, not 0 to {}",
                                   options.devices, kMaxDevices));
  }
  if (options.instance.find('/') != std::string::npos ||
      options.instance.size() > kMaxResourceBytes / 8) {
    problems.push_back(fmt::format(
        "instance '{}' is not a short name without '/'", options.instance));
  }
  if (problems.empty()) return absl::OkStatus();
  return InvalidArgumentError("fake plugin: {}", fmt::join(problems, "; "));
}

}  // namespace

absl::Status FakeDevicePluginImpl::Start() {
  DEVMGR_ASSIGN_OR_RETURN(runtime_, rpc::Runtime::Start());
  absl::Status status;
  script_.RunSync([&] {
    status = MakeDirectory(plugins_dir_);
    if (status.ok() &&
        options_.way != FakeDevicePluginOptions::Way::kDirectory) {
      RegistryClient::Hooks hooks;
      hooks.appeared = [this] { OnRegistryAppeared(); };
      hooks.vanished = [this] { OnFileVanished(); };
      hooks.answered = [this](const absl::Status& answer) {
        registered_ = answer.ok();
        journal_.Registration(answer.ok(), MessageOf(answer));
      };
      hooks.away = [this](const absl::Status& why) {
        journal_.Note("registry-away", MessageOf(why));
      };
      auto registry = RegistryClient::Start(*runtime_, script_.executor(),
                                            plugins_dir_, std::move(hooks));
      status = registry.status();
      if (registry.ok()) registry_ = *std::move(registry);
    }
    if (status.ok()) status = OpenAll();
  });
  return status;
}

FakeDevicePluginImpl::~FakeDevicePluginImpl() {
  script_.executor().Post([this] {
    CloseAll();
    registry_.reset();
  });
  script_.Stop();
}

std::size_t FakeDevicePluginImpl::accepted_connections() const {
  std::size_t count = 0;
  script_.RunSync([&] { count = sockets_.accepted_connections(); });
  return count;
}

std::size_t FakeDevicePluginImpl::open_streams() const {
  std::size_t count = 0;
  script_.RunSync([&] { count = lists_.open(); });
  return count;
}

std::vector<FakeDevicePlugin::Device> FakeDevicePluginImpl::Devices() const {
  PluginDevices devices;
  script_.RunSync([&] { devices = lists_.devices(); });
  return devices;
}

void FakeDevicePluginImpl::SetDevices(std::vector<Device> devices) {
  script_.RunSync([&] { ReplaceDevices(std::move(devices)); });
}

bool FakeDevicePluginImpl::SetHealth(std::string_view id,
                                     std::string_view health) {
  bool known = false;
  script_.RunSync([&] { known = lists_.SetHealth(id, health); });
  return known;
}

void FakeDevicePluginImpl::DropStreams(const absl::Status& status) {
  script_.RunSync([&] { lists_.EndAll(status); });
}

void FakeDevicePluginImpl::Register() {
  script_.RunSync([&] { RegisterOnceMore(); });
}

void FakeDevicePluginImpl::Stop() {
  script_.RunSync([&] { CloseAll(); });
}

absl::Status FakeDevicePluginImpl::Restart() {
  absl::Status opened;
  script_.RunSync([&] {
    CloseAll();
    opened = OpenAll();
  });
  return opened;
}

PluginSockets::Services FakeDevicePluginImpl::Services() {
  const auto posted =
      [this](std::vector<std::pair<std::string_view, Handler>> handlers) {
        return [this, handlers = std::move(handlers)](int instance) {
          PluginSockets::Handlers handled;
          for (const auto& [path, handler] : handlers) {
            handled[std::string(path)] = Posted(instance, handler);
          }
          return handled;
        };
      };
  return {posted({{kOptionsPath, &FakeDevicePluginImpl::OnOptions},
                  {kListPath, &FakeDevicePluginImpl::OnList},
                  {kPreferredPath, &FakeDevicePluginImpl::OnPreferred},
                  {kAllocatePath, &FakeDevicePluginImpl::OnAllocate},
                  {kPreStartPath, &FakeDevicePluginImpl::OnPreStart}}),
          posted({{kGetInfoPath, &FakeDevicePluginImpl::OnGetInfo},
                  {kNotifyPath, &FakeDevicePluginImpl::OnNotify}})};
}

rpc::StreamHandler FakeDevicePluginImpl::Posted(int instance, Handler handler) {
  return [this, instance, handler](std::string request, Stream stream) {
    script_.executor().Post([this, instance, handler,
                             request = std::move(request),
                             stream = std::move(stream)] {
      (this->*handler)(instance, request, stream);
    });
  };
}

absl::Status FakeDevicePluginImpl::OpenAll() {
  WriteSpecFile();
  DEVMGR_RETURN_IF_ERROR(sockets_.Open());
  NoteServing();
  RegisterNewest();
  return absl::OkStatus();
}

void FakeDevicePluginImpl::CloseAll() {
  registered_ = false;
  if (registry_) registry_->Cancel();
  for (const PluginInstance& instance : sockets_.instances()) {
    lists_.Forget(instance.number);
  }
  sockets_.RemoveAll();
  script_.Forget();
}

void FakeDevicePluginImpl::Reopen() {
  const absl::Status opened = OpenAll();
  if (opened.ok()) return;
  journal_.Note("socket-failed", MessageOf(opened));
  script_.Later(kReopenAfter, [this] { Reopen(); });
}

void FakeDevicePluginImpl::NoteServing() {
  const PluginInstance* const newest = sockets_.Newest();
  journal_.Serving(options_.resource, lists_.devices().size(),
                   newest->socket.string(), newest->registration.string());
}

void FakeDevicePluginImpl::DropSocket(int number,
                                      std::chrono::milliseconds back_after) {
  PluginInstance* const instance = sockets_.Find(number);
  if (instance == nullptr) return;
  lists_.Forget(number);
  sockets_.Drop(instance);
  journal_.Socket("socket-dropped", instance->socket.string());
  if (back_after.count() == 0) return;
  script_.Later(back_after, [this, number] {
    PluginInstance* const dropped = sockets_.Find(number);
    if (dropped == nullptr || dropped->server) return;
    const absl::Status opened = sockets_.OpenServer(dropped);
    journal_.Socket(opened.ok() ? "socket-back" : "socket-failed",
                    dropped->socket.string(), opened);
  });
}

void FakeDevicePluginImpl::StartSuccessor(bool same_path,
                                          std::chrono::milliseconds overlap) {
  if (sockets_.Newest() == nullptr) return;
  if (const absl::Status opened = sockets_.OpenSuccessor(same_path);
      !opened.ok()) {
    return journal_.Note("socket-failed", MessageOf(opened));
  }
  NoteServing();
  RegisterNewest();
  const int number = sockets_.Newest()->number;
  script_.Later(overlap, [this, number] { EndBefore(number); });
}

void FakeDevicePluginImpl::EndBefore(int number) {
  while (!sockets_.instances().empty()) {
    const PluginInstance& oldest = sockets_.instances().front();
    if (oldest.number >= number) return;
    journal_.Socket("ended", oldest.socket.string());
    lists_.Forget(oldest.number);
    sockets_.Remove(oldest.number);
  }
}

void FakeDevicePluginImpl::RegisterNewest() {
  const PluginInstance* const newest = sockets_.Newest();
  if (registry_ == nullptr || newest == nullptr) return;
  RegisterRequest request;
  request.version = options_.version;
  request.endpoint = options_.endpoint.empty()
                         ? newest->socket.filename().string()
                         : options_.endpoint;
  request.resource = options_.resource;
  request.capabilities = {options_.pre_start, options_.preferred};
  registry_->Register(EncodeRegister(request));
}

void FakeDevicePluginImpl::RegisterOnceMore() {
  PluginInstance* const newest = sockets_.Newest();
  if (newest == nullptr) return;
  RegisterNewest();
  if (newest->common()) lists_.Forget(newest->number);
  if (const absl::Status opened = sockets_.ReopenRegistration(newest);
      !opened.ok()) {
    journal_.Socket("socket-failed", newest->registration.string(), opened);
  }
}

void FakeDevicePluginImpl::OnRegistryAppeared() {
  if (sockets_.Newest() == nullptr) return;
  if (!registered_) return RegisterNewest();
  // As NVIDIA's: what the last manager knew of us is gone.
  CloseAll();
  Reopen();
}

void FakeDevicePluginImpl::OnFileVanished() {
  if (!sockets_.SomeFileIsGone()) return;
  CloseAll();
  Reopen();
}

void FakeDevicePluginImpl::Act(const ScenarioStep& step) {
  switch (step.action) {
    case Action::kCrashAfter:
      return script_.Crash();
    case Action::kReRegister:
      return RegisterOnceMore();
    case Action::kSetDevices:
      return ReplaceDevices(MakeDevices(names_, step.count, options_.numa));
    case Action::kFlapDevice:
      return Flap(step, step.count);
    case Action::kDropStream:
      return lists_.EndAll(
          step.message.empty()
              ? absl::OkStatus()
              : MakeStatus(absl::StatusCode::kUnknown, step.message));
    case Action::kRestart:
      CloseAll();
      return script_.Later(step.delay, [this] { Reopen(); });
    case Action::kRollingUpgrade:
    case Action::kTakeOver:
      return StartSuccessor(step.action == Action::kTakeOver, step.delay);
    default:
      return;
  }
}

void FakeDevicePluginImpl::ReplaceDevices(PluginDevices devices) {
  lists_.Set(std::move(devices));
  WriteSpecFile();
}

void FakeDevicePluginImpl::WriteSpecFile() {
  if (!options_.cdi) return;
  const auto directory = options_.root / "cdi";
  const std::string name = names_.file + ".json";
  const PluginDevices& devices = lists_.devices();
  // A spec without devices is none.
  const absl::Status written =
      devices.empty() ? RemoveCdiSpec(directory, name)
                      : WriteCdiSpec(CdiSpecOf(names_, devices, state_dir_),
                                     directory, name)
                            .status();
  if (!written.ok()) journal_.Note("spec-failed", MessageOf(written));
}

void FakeDevicePluginImpl::Flap(const ScenarioStep& step, int times) {
  if (times == 0) return;
  lists_.SetHealth(step.device, "Unhealthy");
  script_.Later(step.delay, [this, step, times] {
    lists_.SetHealth(step.device, "Healthy");
    script_.Later(step.delay, [this, step, times] { Flap(step, times - 1); });
  });
}

absl::StatusOr<std::unique_ptr<FakeDevicePlugin>> FakeDevicePlugin::Start(
    FakeDevicePluginOptions options) {
  DEVMGR_RETURN_IF_ERROR(CheckOptions(options));
  // The endpoint that is announced has to be absolute.
  std::error_code error;
  options.root = std::filesystem::absolute(options.root, error);
  if (error) {
    return ErrnoStatus(error.value(), "cannot make the root absolute");
  }
  auto plugin = std::make_unique<FakeDevicePluginImpl>(std::move(options));
  DEVMGR_RETURN_IF_ERROR(plugin->Start());
  return std::unique_ptr<FakeDevicePlugin>(std::move(plugin));
}

}  // namespace devmgr::testing
