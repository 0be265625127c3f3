// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <container.pb.h>
#include <devmgr/cri_shim.h>
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cri/messages.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "rpc/rpc_fixture.h"
#include "support/fake_device_manager.h"
#include "support/status_matchers.h"

namespace devmgr {

/// Waits for what nobody tells.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// A manager that also knows how starts of containers end.
class PodManager : public FakeDeviceManager {
 public:
  OperationId StartBeforeContainerStart(const PodUid& pod,
                                        const ContainerName& container,
                                        Done done) override {
    started.Put(pod.value + "/" + container.value);
    done(start_status);
    return 0;
  }
  Mailbox<std::string> started;
  absl::Status start_status;
};

/// Answers as a runtime does, and keeps what it was asked.
class FakeRuntime {
 public:
  explicit FakeRuntime(std::filesystem::path socket)
      : socket_(std::move(socket)) {}

  void Start(const std::string& name, const std::string& version) {
    std::string answer;
    cri::AppendBytesField(&answer, 1, "0.1.0");
    cri::AppendBytesField(&answer, 2, name);
    cri::AppendBytesField(&answer, 3, version);
    cri::AppendBytesField(&answer, 4, "v1");
    rpc::ServerOptions options;
    options.socket = socket_;
    Fixed(&options, cri::method::kVersion, answer, &version_fails);
    Fixed(&options, cri::method::kStatus, "", &version_fails);
    Fixed(&options, cri::method::kListPodSandbox, sandboxes, &lists_fail);
    Fixed(&options, cri::method::kListContainers, containers, &lists_fail);
    if (!has_streams) {
      options.methods[std::string(cri::method::kListContainers)] =
          [this, answer = containers](const std::string&,
                                      const rpc::Respond& respond) {
            if (lists_fail) {
              return respond(absl::ResourceExhaustedError("too much"));
            }
            respond(containers_ended ? std::string() : answer);
          };
    }
    if (lists_hang) {
      options.methods[std::string(cri::method::kListPodSandbox)] =
          [this](const std::string&, const rpc::Respond& respond) {
            hanging_.Put(respond);
          };
    }
    options.methods[std::string(cri::method::kContainerStatus)] =
        [this](const std::string& request, const rpc::Respond& respond) {
          const auto id = cri::ReadText(request, 1, "ContainerStatusRequest");
          if (!status_of || !id.ok()) {
            return respond(absl::UnimplementedError("no such method"));
          }
          respond(status_of(*id));
        };
    if (has_streams) {
      Streamed(&options, cri::method::kStreamPodSandboxes, sandboxes);
      Streamed(&options, cri::method::kStreamContainers, containers);
    }
    Kept(&options, cri::method::kRunPodSandbox, "sandbox-1");
    Kept(&options, cri::method::kRemovePodSandbox, "");
    Kept(&options, cri::method::kRemoveContainer, "");
    Kept(&options, cri::method::kCreateContainer, "container-1");
    Kept(&options, cri::method::kStartContainer, "");
    Kept(&options, cri::method::kRestorePod, "sandbox-1");
    auto server = rpc::Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Stop() { server_.reset(); }

  /// Requests of the intercepted methods.
  Mailbox<std::string> requests;
  /// When set, answers those methods in place of us.
  std::function<void(const std::string& request, rpc::Respond)> answer_instead;
  /// Answers a verbose ContainerStatus; to be set before Start.
  std::function<absl::StatusOr<std::string>(const std::string& id)> status_of;
  std::string sandboxes, containers;  ///< Answers; to be set before Start.
  bool has_streams = false;           ///< Of both; to be set before Start.
  bool lists_hang = false;            ///< To be set before Start.
  /// Unary calls for what it is, and for its lists.
  std::atomic<bool> version_fails = false, lists_fail = false;
  /// All of `containers` have gone by themselves.
  std::atomic<bool> containers_ended = false;

 private:
  static void Fixed(rpc::ServerOptions* options, std::string_view method,
                    const std::string& answer, const std::atomic<bool>* fails) {
    options->methods[std::string(method)] =
        [answer, fails](const std::string&, const rpc::Respond& respond) {
          if (*fails) return respond(absl::ResourceExhaustedError("too much"));
          respond(answer);
        };
  }
  /// In a message each item: all have field 1 and fewer than 128 bytes.
  static void Streamed(rpc::ServerOptions* options, std::string_view method,
                       const std::string& list) {
    options->streams[std::string(method)] =
        [list](const std::string&,
               const std::shared_ptr<rpc::ServerStream>& stream) {
          for (std::size_t at = 0; at < list.size();) {
            const std::size_t size =
                2U + static_cast<unsigned char>(list.at(at + 1));
            stream->Write(list.substr(at, size));
            at += size;
          }
          stream->Finish(absl::OkStatus());
        };
  }
  void Kept(rpc::ServerOptions* options, std::string_view method,
            const std::string& id) {
    std::string answer;
    if (!id.empty()) cri::AppendBytesField(&answer, 1, id);
    options->methods[std::string(method)] = [this, answer](
                                                const std::string& request,
                                                const rpc::Respond& respond) {
      requests.Put(request);
      if (answer_instead) return answer_instead(request, respond);
      respond(answer);
    };
  }

  const std::filesystem::path socket_;
  Mailbox<rpc::Respond> hanging_;  ///< That nobody answers.
  std::unique_ptr<rpc::Server> server_;
};

/// The shim between a client and a runtime of the test's own, over real
/// sockets. Pod `ns/p` has container `c`, with devices, and `none`.
class ShimTest : public rpc::RpcTest {
 protected:
  using Request = test::cri::CreateContainerRequest;
  static constexpr char kUid[] = "u-1";

  void SetUp() override {
    RpcTest::SetUp();
    fake_ = std::make_unique<FakeRuntime>(Path("runtime.sock"));
    options_.proxy.listen = Path();
    options_.proxy.backend = Path("runtime.sock");
    options_.manager = &manager_;
    options_.cdi_spec_dirs = {Path("cdi")};
    options_.on_event = [this](const EventInfo& event) { events_.Put(event); };
  }
  void TearDown() override {
    client_.reset();
    shim_.reset();
    fake_->Stop();
  }

  /// Starts all; the runtime is of that version of containerd.
  void Start(const std::string& version = "2.0.1") {
    fake_->Start("containerd", version);
    auto shim = CriShim::Start(options_);
    ASSERT_TRUE(shim.ok()) << shim.status();
    shim_ = *std::move(shim);
    client_ = Connect();
    ASSERT_NE(client_, nullptr);
  }

  rpc::Result Call(std::string_view method, const std::string& request) {
    return CallAndWait(*client_, std::string(method), request);
  }
  /// A call that may take its time.
  std::shared_ptr<Mailbox<rpc::Result>> Begin(
      std::string_view method, const std::string& request,
      std::chrono::milliseconds timeout = kPatience) {
    auto answers = std::make_shared<Mailbox<rpc::Result>>();
    client_->Call(std::string(method), request, {timeout},
                  [answers](rpc::Result result) { answers->Put(result); });
    return answers;
  }
  static absl::Status StatusOfNext(Mailbox<rpc::Result>& answers) {
    const auto answer = answers.Take();
    return answer ? answer->status() : absl::InternalError("no answer");
  }

  /// The config that reaches the runtime, of a request that has to end well.
  test::cri::ContainerConfig Created(const Request& request) {
    EXPECT_THAT(
        Call(cri::method::kCreateContainer, request.SerializeAsString()),
        IsOk());
    return TakeRequest<Request>().config();
  }
  template <typename Message>
  Message TakeRequest() {
    Message seen;
    EXPECT_TRUE(seen.ParseFromString(fake_->requests.Take().value_or("?")));
    return seen;
  }
  absl::Status Refused(const Request& request) {
    const auto answer =
        Call(cri::method::kCreateContainer, request.SerializeAsString());
    EXPECT_EQ(fake_->requests.size(), 0U) << "the runtime was called";
    return answer.status();
  }

  static Request ForContainer(const std::string& container = "c",
                              const std::string& uid = kUid) {
    Request request;
    request.set_pod_sandbox_id("sandbox-1");
    auto& metadata = *request.mutable_sandbox_config()->mutable_metadata();
    metadata.set_name("p");
    metadata.set_namespace_("ns");
    metadata.set_uid(uid);
    request.mutable_config()->mutable_metadata()->set_name(container);
    return request;
  }
  static std::string WithId(const std::string& id) {
    std::string request;
    cri::AppendBytesField(&request, 1, id);
    return request;
  }

  void ChangePod(PodState state, const std::string& reason,
                 const std::string& message) {
    PodInfo pod;
    pod.name = {"ns", "p"};
    pod.uid = {kUid};
    pod.state = state;
    pod.reason = reason;
    pod.message = message;
    manager_.ChangePod(pod);
  }
  void SetActuate(Actuate actuate) {
    manager_.Set(
        [&](FakeDeviceManager::World& world) { world.node.actuate = actuate; });
  }
  /// The pod is Ready, and `c` has these.
  void Give(ContainerDevices devices) {
    devices.name = "c";
    PodDevices pod{{"ns", "p"}, {kUid}, {std::move(devices)}};
    pod.containers.emplace_back().name = "none";
    manager_.Set([&](FakeDeviceManager::World& world) {
      world.answers[{kUid}] = std::make_shared<const PodDevices>(pod);
    });
    ChangePod(PodState::kReady, "", "");
  }
  static ContainerDevices OneOfEach() {
    ContainerDevices devices;
    devices.cdi_devices = {{"v.com/c=1", {}}};
    devices.env = {{"K", "plugin", "r"}};
    devices.mounts = {{"/run/x", "/host/x", true, "r"}};
    devices.devices = {{"/dev/x", "/dev/null", "rw", "r"}};
    devices.annotations = {{"plugin", "1", "r"}, {"mine", "plugin", "r"}};
    return devices;
  }

  /// The runtime has two sandboxes, and `container-9` in the first.
  void ListItems() {
    const Request request = ForContainer();
    std::string container;
    cri::AppendBytesField(&container, 1, "container-9");
    cri::AppendBytesField(&container, 2, "sandbox-1");
    cri::AppendBytesField(&container, 3,
                          request.config().metadata().SerializeAsString());
    cri::AppendBytesField(&fake_->containers, 1, container);
    for (const char* id : {"sandbox-1", "sandbox-0"}) {
      std::string sandbox;
      cri::AppendBytesField(&sandbox, 1, id);
      cri::AppendBytesField(
          &sandbox, 2, request.sandbox_config().metadata().SerializeAsString());
      cri::AppendBytesField(&fake_->sandboxes, 1, sandbox);
    }
  }

  /// Device `v.com/c=1`.
  void WriteSpec(const std::string& edits) {
    std::filesystem::create_directories(Path("cdi"));
    std::ofstream(Path("cdi") / "v.json")
        << R"({"cdiVersion": "0.6.0", "kind": "v.com/c", "devices": [{"name": )"
        << R"("1", "containerEdits": )" << edits << "}]}";
  }

  /// Reason of the next warning.
  std::string NextWarning() {
    for (;;) {
      const auto event = events_.Take();
      if (!event) return "no event";
      if (event->warning) return event->reason;
    }
  }

  PodManager manager_;
  CriShimOptions options_;
  std::unique_ptr<FakeRuntime> fake_;
  std::unique_ptr<CriShim> shim_;
  std::unique_ptr<rpc::Connection> client_;
  Mailbox<EventInfo> events_;
};

template <typename KeyValues>
std::vector<std::string> PairsOf(const KeyValues& values) {
  std::vector<std::string> pairs;
  for (const auto& value : values) {
    if (value.key() == kAllocationAnnotation ||
        value.key() == kDevicesAnnotation) {
      continue;
    }
    pairs.push_back(value.key() + "=" + value.value());
  }
  return pairs;
}

inline std::vector<std::string> NamesOf(
    const test::cri::ContainerConfig& config) {
  std::vector<std::string> names;
  for (const auto& device : config.cdi_devices()) {
    names.push_back(device.name());
  }
  return names;
}

}  // namespace devmgr
