// SPDX-License-Identifier: Apache-2.0
#include "testing/plugin_sockets.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "testing/files.h"

namespace devmgr::testing {

using Way = FakeDevicePluginOptions::Way;

PluginSockets::PluginSockets(const std::filesystem::path& root,
                             std::string name, Way way, Services services)
    : plugins_dir_(root / "device-plugins"),
      registration_dir_(root / "plugins_registry"),
      first_name_(std::move(name)),
      way_(way),
      services_(std::move(services)),
      name_(first_name_) {}

absl::Status PluginSockets::Open() {
  return OpenAt(name_, /*take_over=*/false);
}

absl::Status PluginSockets::OpenSuccessor(bool same_path) {
  if (same_path) return OpenAt(name_, /*take_over=*/true);
  return OpenAt(fmt::format("{}-{}", first_name_, last_number_ + 1),
                /*take_over=*/false);
}

absl::Status PluginSockets::OpenAt(const std::string& name, bool take_over) {
  for (const auto& directory : {plugins_dir_, registration_dir_}) {
    DEVMGR_RETURN_IF_ERROR(MakeDirectory(directory));
  }
  PluginInstance instance;
  instance.number = ++last_number_;
  if (way_ == Way::kDirectory) {
    instance.socket = registration_dir_ / (name + ".sock");
    instance.registration = instance.socket;
  } else {
    instance.socket = plugins_dir_ / (name + ".sock");
    if (way_ == Way::kBoth) {
      instance.registration = registration_dir_ / (name + "-reg.sock");
    }
  }
  if (take_over) {
    // As real ones do. The old one goes on with the connections it has.
    ::unlink(instance.socket.c_str());
    ::unlink(instance.registration.c_str());
  }
  DEVMGR_RETURN_IF_ERROR(OpenServer(&instance));
  DEVMGR_RETURN_IF_ERROR(OpenRegistrar(&instance));
  name_ = name;
  instances_.push_back(std::move(instance));
  return absl::OkStatus();
}

absl::Status PluginSockets::OpenServer(PluginInstance* instance) {
  rpc::ServerOptions server;
  server.socket = instance->socket;
  server.streams = services_.plugin(instance->number);
  if (instance->common()) {
    server.streams.merge(services_.handshake(instance->number));
  }
  DEVMGR_ASSIGN_OR_RETURN(instance->server,
                          rpc::Server::Start(std::move(server)));
  return absl::OkStatus();
}

absl::Status PluginSockets::OpenRegistrar(PluginInstance* instance) {
  if (instance->registration.empty() || instance->common()) {
    return absl::OkStatus();
  }
  rpc::ServerOptions server;
  server.socket = instance->registration;
  server.streams = services_.handshake(instance->number);
  DEVMGR_ASSIGN_OR_RETURN(instance->registrar,
                          rpc::Server::Start(std::move(server)));
  return absl::OkStatus();
}

absl::Status PluginSockets::ReopenRegistration(PluginInstance* instance) {
  if (instance->common()) {
    Drop(instance);
    return OpenServer(instance);
  }
  instance->registrar.reset();
  return OpenRegistrar(instance);
}

void PluginSockets::Drop(PluginInstance* instance) {
  if (instance->server == nullptr) return;
  closed_connections_ += instance->server->accepted_connections();
  instance->server.reset();
}

void PluginSockets::Remove(int number) {
  if (PluginInstance* const instance = Find(number)) Drop(instance);
  instances_.remove_if([number](const PluginInstance& instance) {
    return instance.number == number;
  });
}

void PluginSockets::RemoveAll() {
  while (!instances_.empty()) Remove(instances_.front().number);
}

PluginInstance* PluginSockets::Newest() {
  return instances_.empty() ? nullptr : &instances_.back();
}

PluginInstance* PluginSockets::Find(int number) {
  for (PluginInstance& instance : instances_) {
    if (instance.number == number) return &instance;
  }
  return nullptr;
}

bool PluginSockets::SomeFileIsGone() const {
  std::error_code error;
  return std::any_of(instances_.begin(), instances_.end(),
                     [&](const PluginInstance& instance) {
                       return instance.server != nullptr &&
                              !std::filesystem::exists(instance.socket, error);
                     });
}

std::size_t PluginSockets::accepted_connections() const {
  std::size_t count = closed_connections_;
  for (const PluginInstance& instance : instances_) {
    if (instance.server) count += instance.server->accepted_connections();
  }
  return count;
}

}  // namespace devmgr::testing
