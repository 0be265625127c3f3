// SPDX-License-Identifier: Apache-2.0
//
// What a fake device plugin is asked, and answers.
#include <optional>
#include <set>
#include <utility>

#include "common/status.h"
#include "testing/fake_device_plugin.h"
#include "testing/files.h"
#include "testing/plugin_wire.h"
#include "testing/registration_wire.h"

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;

constexpr std::string_view kMetadataPrefix = "devmgr-";

bool UsesDelayItself(Action action) {
  return action == Action::kFlapDevice || action == Action::kRestart ||
         action == Action::kRollingUpgrade || action == Action::kTakeOver;
}

bool IsFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string::npos;
}

}  // namespace

std::optional<AskedOfPlugin> FakeDevicePluginImpl::Begin(int instance,
                                                         Call call,
                                                         const Stream& stream) {
  AskedOfPlugin asked = {instance, call.method, stream, {}};
  const DeviceIds ids = call.devices;
  for (const auto& [name, value] : stream->metadata()) {
    if (name.starts_with(kMetadataPrefix)) call.metadata[name] = value;
  }
  journal_.Called(std::move(call));
  for (TakenStep& taken : script_.Take(asked.method, ids)) {
    asked.step = std::move(taken.step);
    journal_.Step(asked.method, asked.step);
  }
  if (asked.step.action == Action::kDropSocket) {
    DropSocket(instance, asked.step.delay);
    return std::nullopt;
  }
  if (script_.EndsBeforeWork(asked.step, [this, asked](const auto& failure) {
        Fail(asked, failure);
      })) {
    return std::nullopt;
  }
  return asked;
}

void FakeDevicePluginImpl::Serve(const AskedOfPlugin& asked, Task finish) {
  ScenarioStep step = asked.step;
  if (step.action == Action::kSetDevices && step.after.count() == 0) Act(step);
  if (UsesDelayItself(step.action)) step.delay = {};
  // A list has to be on its way before what follows it.
  if (step.action == Action::kCrashAfter && asked.method == "list-and-watch") {
    step.action = Action::kDelay;
  }
  script_.FinishAfterWork(step, [this, asked, finish = std::move(finish)] {
    finish();
    if (asked.step.action == Action::kSetDevices &&
        asked.step.after.count() == 0) {
      return;
    }
    script_.Later(asked.step.after, [this, step = asked.step] { Act(step); });
  });
}

void FakeDevicePluginImpl::Answer(const AskedOfPlugin& asked,
                                  const std::string& message) const {
  const bool garbage = asked.step.action == Action::kGarbageBytes;
  asked.stream->Write(garbage ? std::string(kNoMessage) : message);
  asked.stream->Finish(absl::OkStatus());
}

void FakeDevicePluginImpl::Fail(const AskedOfPlugin& asked,
                                const absl::Status& status) const {
  journal_.Failure(asked.method, status);
  asked.stream->Finish(status);
}

void FakeDevicePluginImpl::OnGetInfo(int instance, const std::string&,
                                     const Stream& stream) {
  const auto asked = Begin(instance, {.method = "get-info"}, stream);
  const PluginInstance* const self = sockets_.Find(instance);
  if (!asked || self == nullptr) return;
  PluginInfo info = {
      "DevicePlugin", options_.resource, options_.endpoint, {options_.version}};
  if (info.endpoint.empty() && !self->common()) {
    info.endpoint = self->socket.string();
  }
  if (asked->step.action == Action::kGarbageNames) {
    info.name =
        asked->step.message.empty() ? "Not_A_Resource" : asked->step.message;
  }
  Serve(*asked, [this, asked = *asked, info] {
    Answer(asked, EncodePluginInfo(info));
  });
}

void FakeDevicePluginImpl::OnNotify(int instance, const std::string& request,
                                    const Stream& stream) {
  const auto outcome = DecodeRegistrationOutcome(request);
  if (!outcome.ok()) return stream->Finish(outcome.status());
  journal_.Registration(outcome->registered, outcome->error);
  const auto asked = Begin(instance, {.method = "notify-registration"}, stream);
  if (!asked) return;
  Serve(*asked, [this, asked = *asked] {
    Answer(asked, EncodeRegistrationResponse());
  });
}

void FakeDevicePluginImpl::OnOptions(int instance, const std::string&,
                                     const Stream& stream) {
  const auto asked = Begin(instance, {.method = "get-options"}, stream);
  if (!asked) return;
  Serve(*asked, [this, asked = *asked] {
    Answer(asked, EncodeOptions({options_.pre_start, options_.preferred}));
  });
}

void FakeDevicePluginImpl::OnList(int instance, const std::string&,
                                  const Stream& stream) {
  const auto asked = Begin(instance, {.method = "list-and-watch"}, stream);
  if (!asked) return;
  const DeviceLists::ListId id = lists_.Add(instance, stream, asked->step);
  stream->WhenClientGone([this, id] {
    script_.executor().Post([this, id] { lists_.OnClientGone(id); });
  });
  Serve(*asked, [this, id] { lists_.Begin(id); });
}

void FakeDevicePluginImpl::OnPreferred(int instance, const std::string& request,
                                       const Stream& stream) {
  const auto requests = DecodePreferred(request);
  if (!requests.ok()) return stream->Finish(requests.status());
  Call call = {.method = "get-preferred-allocation"};
  for (const PreferenceRequest& each : *requests) {
    call.devices.insert(call.devices.end(), each.available.begin(),
                        each.available.end());
    call.must_include.insert(call.must_include.end(), each.must_include.begin(),
                             each.must_include.end());
    call.size += each.size;
  }
  const auto asked = Begin(instance, std::move(call), stream);
  if (!asked) return;
  std::vector<DeviceIds> answers;
  for (const PreferenceRequest& each : *requests) {
    if (asked->step.action == Action::kTooLittle) break;
    answers.push_back(Prefer(each));
    if (asked->step.action == Action::kUnknownDevice) {
      answers.back().push_back(
          asked->step.message.empty() ? "nobodys-device" : asked->step.message);
    }
  }
  Serve(*asked, [this, asked = *asked, answers] {
    journal_.Answer(asked.method, answers);
    Answer(asked, EncodePreferred(answers));
  });
}

void FakeDevicePluginImpl::OnAllocate(int instance, const std::string& request,
                                      const Stream& stream) {
  const auto containers = DecodeAllocate(request);
  if (!containers.ok()) return stream->Finish(containers.status());
  Call call = {.method = "allocate"};
  for (const DeviceIds& ids : *containers) {
    call.devices.insert(call.devices.end(), ids.begin(), ids.end());
  }
  const auto asked = Begin(instance, std::move(call), stream);
  if (!asked) return;
  std::vector<Edits> answers;
  for (const DeviceIds& ids : *containers) {
    const absl::StatusOr<Edits> edits = EditsOf(*asked, ids);
    if (!edits.ok()) return Fail(*asked, edits.status());
    answers.push_back(*edits);
  }
  if (asked->step.action == Action::kTooLittle) answers.clear();
  Serve(*asked, [this, asked = *asked, answers, given = *containers] {
    journal_.Answer(asked.method, given);
    Answer(asked, EncodeAllocate(answers));
  });
}

void FakeDevicePluginImpl::OnPreStart(int instance, const std::string& request,
                                      const Stream& stream) {
  const auto ids = DecodePreStart(request);
  if (!ids.ok()) return stream->Finish(ids.status());
  const auto asked = Begin(
      instance, {.method = "pre-start-container", .devices = *ids}, stream);
  if (!asked) return;
  if (const absl::Status known = CheckKnown(*ids); !known.ok()) {
    return Fail(*asked, known);
  }
  Serve(*asked, [this, asked = *asked, ids = *ids] {
    journal_.Answer(asked.method, {ids});
    Answer(asked, EncodePreStart());
  });
}

absl::StatusOr<Edits> FakeDevicePluginImpl::EditsOf(
    const AskedOfPlugin& asked, const DeviceIds& ids) const {
  DEVMGR_RETURN_IF_ERROR(CheckKnown(ids));
  if (asked.step.action == Action::kGarbageNames) {
    return GarbageEdits(asked.step);
  }
  for (const std::string& id : ids) {
    if (!IsFileName(id)) continue;
    DEVMGR_RETURN_IF_ERROR(MakeDirectory(state_dir_ / id));
  }
  return options_.cdi ? CdiEditsFor(names_, ids)
                      : EditsFor(names_, ids, state_dir_);
}

absl::Status FakeDevicePluginImpl::CheckKnown(const DeviceIds& ids) const {
  std::set<std::string_view> unknown(ids.begin(), ids.end());
  for (const Device& device : lists_.devices()) unknown.erase(device.id);
  if (unknown.empty()) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kUnknown,
                    fmt::format("unknown device '{}'", *unknown.begin()));
}

}  // namespace devmgr::testing
