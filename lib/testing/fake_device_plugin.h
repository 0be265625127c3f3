// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/testing.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/server.h"
#include "testing/call_script.h"
#include "testing/device_lists.h"
#include "testing/plugin_answers.h"
#include "testing/plugin_journal.h"
#include "testing/plugin_sockets.h"
#include "testing/registry_client.h"

namespace devmgr::testing {

/// A call that has come in, and what the scenario says about it.
struct AskedOfPlugin {
  int instance = 0;
  std::string method;
  std::shared_ptr<rpc::ServerStream> stream;
  ScenarioStep step;
};

/// All of the plugin lives on its executor; servers only post to it.
class FakeDevicePluginImpl final : public FakeDevicePlugin {
 public:
  explicit FakeDevicePluginImpl(FakeDevicePluginOptions options)
      : options_(std::move(options)),
        names_(options_.resource),
        plugins_dir_(options_.root / "device-plugins"),
        state_dir_(options_.root / "plugins" / names_.file),
        journal_(options_.on_event),
        script_(Fake::kPlugin, "fake-plugin", options_.scenario,
                options_.crash),
        lists_(&journal_, MakeDevices(names_, options_.devices, options_.numa)),
        sockets_(options_.root,
                 options_.instance.empty()
                     ? names_.file
                     : names_.file + "-" + options_.instance,
                 options_.way, Services()) {}
  ~FakeDevicePluginImpl() override;

  absl::Status Start();

  void AddStep(ScenarioStep step) override { script_.Add(std::move(step)); }
  void ClearSteps() override { script_.Clear(); }
  void ReleaseHanging() override { script_.ReleaseHanging(); }

  std::vector<Call> Calls() const override { return journal_.Calls(); }
  bool WaitForCalls(std::string_view method, std::size_t count,
                    std::chrono::milliseconds limit) const override {
    return journal_.WaitForCalls(count, limit, [method](const Call& call) {
      return call.method == method;
    });
  }
  bool WaitForRegistrations(std::size_t count,
                            std::chrono::milliseconds limit) const override {
    return journal_.WaitForRegistrations(count, limit);
  }
  std::string last_registration_error() const override {
    return journal_.LastRegistrationError();
  }
  std::size_t accepted_connections() const override;
  std::size_t open_streams() const override;

  std::vector<Device> Devices() const override;
  void SetDevices(std::vector<Device> devices) override;
  bool SetHealth(std::string_view id, std::string_view health) override;
  void DropStreams(const absl::Status& status) override;

  void Register() override;
  void Stop() override;
  absl::Status Restart() override;

 private:
  using Stream = std::shared_ptr<rpc::ServerStream>;
  using Handler = void (FakeDevicePluginImpl::*)(int instance,
                                                 const std::string& request,
                                                 const Stream& stream);

  // Sockets.
  PluginSockets::Services Services();
  rpc::StreamHandler Posted(int instance, Handler handler);
  absl::Status OpenAll();
  void CloseAll();
  void Reopen();
  void NoteServing();
  void DropSocket(int number, std::chrono::milliseconds back_after);
  void StartSuccessor(bool same_path, std::chrono::milliseconds overlap);
  void EndBefore(int number);

  // Registration.
  void RegisterNewest();
  void RegisterOnceMore();
  void OnRegistryAppeared();
  void OnFileVanished();

  // Calls.
  std::optional<AskedOfPlugin> Begin(int instance, Call call,
                                     const Stream& stream);
  void Serve(const AskedOfPlugin& asked, Task finish);
  void Answer(const AskedOfPlugin& asked, const std::string& message) const;
  void Fail(const AskedOfPlugin& asked, const absl::Status& status) const;
  void OnGetInfo(int instance, const std::string& request,
                 const Stream& stream);
  void OnNotify(int instance, const std::string& request, const Stream& stream);
  void OnOptions(int instance, const std::string& request,
                 const Stream& stream);
  void OnList(int instance, const std::string& request, const Stream& stream);
  void OnPreferred(int instance, const std::string& request,
                   const Stream& stream);
  void OnAllocate(int instance, const std::string& request,
                  const Stream& stream);
  void OnPreStart(int instance, const std::string& request,
                  const Stream& stream);
  absl::StatusOr<Edits> EditsOf(const AskedOfPlugin& asked,
                                const DeviceIds& ids) const;
  absl::Status CheckKnown(const DeviceIds& ids) const;

  // Devices.
  void ReplaceDevices(PluginDevices devices);
  void WriteSpecFile();
  void Flap(const ScenarioStep& step, int times);

  /// What a step does beside answering, when the call is served.
  void Act(const ScenarioStep& step);

  const FakeDevicePluginOptions options_;
  const PluginNames names_;
  const std::filesystem::path plugins_dir_;
  const std::filesystem::path state_dir_;
  PluginJournal journal_;
  std::unique_ptr<rpc::Runtime> runtime_;
  CallScript script_;

  // Only on the executor.
  DeviceLists lists_;
  PluginSockets sockets_;
  std::unique_ptr<RegistryClient> registry_;
  bool registered_ = false;  ///< Through the registry socket, as we are.
};

}  // namespace devmgr::testing
