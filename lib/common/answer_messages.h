// SPDX-License-Identifier: Apache-2.0
//
// The answer for containers and the messages that have it. There are two of
// each: the ledger's, whose texts are bytes as they came, and those of the
// inspection schema, whose texts are UTF-8. Their fields have the same names,
// so that one conversion serves both.
#pragma once

#include <devmgr/container_devices.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace devmgr {

/// `Text` makes of a text what a field of the message takes.
template <typename Text>
class AnswerWriter {
 public:
  explicit AnswerWriter(Text text) : text_(std::move(text)) {}

  template <typename Message>
  void Write(const NamedValue& from, Message* to) const {
    to->set_name(text_(from.name));
    to->set_value(text_(from.value));
    to->set_resource(text_(from.resource));
  }

  template <typename Message>
  void Write(const CdiDevice& from, Message* to) const {
    to->set_name(text_(from.name));
    auto* origin = to->mutable_origin();
    origin->set_claim(text_(from.origin.claim));
    origin->set_request(text_(from.origin.request));
    origin->set_driver(text_(from.origin.driver));
    origin->set_pool(text_(from.origin.pool));
    origin->set_device(text_(from.origin.device));
    origin->set_resource(text_(from.origin.resource));
  }

  template <typename Message>
  void Write(const DeviceMount& from, Message* to) const {
    to->set_container_path(text_(from.container_path));
    to->set_host_path(text_(from.host_path));
    to->set_read_only(from.read_only);
    to->set_resource(text_(from.resource));
  }

  template <typename Message>
  void Write(const DeviceNode& from, Message* to) const {
    to->set_container_path(text_(from.container_path));
    to->set_host_path(text_(from.host_path));
    to->set_permissions(text_(from.permissions));
    to->set_resource(text_(from.resource));
  }

  template <typename Message>
  void Write(const HeldResource& from, Message* to) const {
    to->set_name(text_(from.name));
    for (const std::string& id : from.devices) to->add_devices(text_(id));
  }

  template <typename Message>
  void Write(const ContainerDevices& from, Message* to) const {
    to->set_name(text_(from.name));
    to->set_init(from.init);
    WriteAll(from.cdi_devices, to->mutable_cdi_devices());
    WriteAll(from.env, to->mutable_env());
    WriteAll(from.mounts, to->mutable_mounts());
    WriteAll(from.devices, to->mutable_devices());
    WriteAll(from.annotations, to->mutable_annotations());
    WriteAll(from.resources, to->mutable_resources());
    to->set_devices_released(from.devices_released);
  }

  template <typename Message>
  void Write(const PodDevices& from, Message* to) const {
    to->mutable_name()->set_ns(text_(from.name.ns));
    to->mutable_name()->set_name(text_(from.name.name));
    to->set_uid(text_(from.uid.value));
    WriteAll(from.containers, to->mutable_containers());
  }

  template <typename T, typename Repeated>
  void WriteAll(const std::vector<T>& from, Repeated* to) const {
    for (const T& item : from) Write(item, to->Add());
  }

 private:
  Text text_;
};

/// The elements of a repeated field, each as `read` makes it.
template <typename Repeated, typename Read>
auto ReadEach(const Repeated& from, Read read)
    -> std::vector<decltype(read(*from.begin()))> {
  std::vector<decltype(read(*from.begin()))> all;
  all.reserve(static_cast<std::size_t>(from.size()));
  for (const auto& item : from) all.push_back(read(item));
  return all;
}

template <typename Message>
NamedValue ReadNamedValue(const Message& from) {
  return {from.name(), from.value(), from.resource()};
}

template <typename Message>
CdiDevice ReadCdiDevice(const Message& from) {
  const auto& origin = from.origin();
  return {from.name(),
          {origin.claim(), origin.request(), origin.driver(), origin.pool(),
           origin.device(), origin.resource()}};
}

template <typename Message>
DeviceMount ReadDeviceMount(const Message& from) {
  return {from.container_path(), from.host_path(), from.read_only(),
          from.resource()};
}

template <typename Message>
DeviceNode ReadDeviceNode(const Message& from) {
  return {from.container_path(), from.host_path(), from.permissions(),
          from.resource()};
}

template <typename Message>
HeldResource ReadHeldResource(const Message& from) {
  return {from.name(), {from.devices().begin(), from.devices().end()}};
}

template <typename Message>
ContainerDevices ReadContainerDevices(const Message& from) {
  const auto named = [](const auto& item) { return ReadNamedValue(item); };
  return {from.name(),
          from.init(),
          ReadEach(from.cdi_devices(),
                   [](const auto& item) { return ReadCdiDevice(item); }),
          ReadEach(from.env(), named),
          ReadEach(from.mounts(),
                   [](const auto& item) { return ReadDeviceMount(item); }),
          ReadEach(from.devices(),
                   [](const auto& item) { return ReadDeviceNode(item); }),
          ReadEach(from.annotations(), named),
          ReadEach(from.resources(),
                   [](const auto& item) { return ReadHeldResource(item); }),
          from.devices_released()};
}

template <typename Message>
PodDevices ReadPodDevices(const Message& from) {
  return {{from.name().ns(), from.name().name()},
          {from.uid()},
          ReadEach(from.containers(), [](const auto& item) {
            return ReadContainerDevices(item);
          })};
}

}  // namespace devmgr
