// SPDX-License-Identifier: Apache-2.0
#include "hostile/node.h"

#include <gtest/gtest.h>

#include <utility>

#include "common/executor.h"
#include "common/status.h"
#include "devmgr/wire/dra/v1/dra.pb.h"
#include "devmgr/wire/pluginregistration/v1/registration.pb.h"
#include "hostile/dialled.h"
#include "rpc/message.h"
#include "support/test_node.h"

namespace devmgr::hostile {
namespace {

namespace v1 = wire::dra::v1;
namespace registration_v1 = wire::pluginregistration::v1;

constexpr char kDraService[] = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/";

/// A handler that answers `delay` late with what `answer` makes of a request.
rpc::UnaryHandler Late(Executor& executor, std::chrono::milliseconds delay,
                       std::function<std::string(const std::string&)> answer) {
  return [&executor, delay, answer = std::move(answer)](
             const std::string& request, const rpc::Respond& respond) {
    executor.PostAfter(delay,
                       [respond, bytes = answer(request)] { respond(bytes); });
  };
}

std::string Prepare(const std::string& bytes) {
  v1::NodePrepareResourcesRequest request;
  EXPECT_TRUE(request.ParseFromString(bytes));
  v1::NodePrepareResourcesResponse response;
  for (const auto& claim : request.claims()) {
    auto* device = (*response.mutable_claims())[claim.uid()].add_devices();
    device->set_pool_name("pool-1");
    device->set_device_name("dev-1");
  }
  return rpc::Encode(response);
}

std::string Unprepare(const std::string& bytes) {
  v1::NodeUnprepareResourcesRequest request;
  EXPECT_TRUE(request.ParseFromString(bytes));
  v1::NodeUnprepareResourcesResponse response;
  for (const auto& claim : request.claims()) {
    (*response.mutable_claims())[claim.uid()];
  }
  return rpc::Encode(response);
}

/// A pod `name` of UID `u-<name>`, with a claim that is allocated.
std::string PodWithClaim(const std::string& name, const std::string& driver) {
  return fmt::format(R"(apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {0}, uid: u-c-{0}}}
spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: c}}}}]}}}}
status:
  allocation:
    devices:
      results: [{{request: r, driver: {1}, pool: pool-1, device: dev-1}}]
  reservedFor: [{{resource: pods, name: {0}, uid: u-{0}}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: {0}, uid: u-{0}}}
spec:
  containers: [{{name: c, resources: {{claims: [{{name: {0}}}]}}}}]
  resourceClaims: [{{name: {0}, resourceClaimName: {0}}}]
---
)",
                     name, driver);
}

}  // namespace

std::map<std::string, rpc::UnaryHandler> DriverMethods(
    Executor& executor, const std::function<std::string()>& name,
    std::chrono::milliseconds delay) {
  const std::string service = kDraService;
  const std::string handshake = "/pluginregistration.Registration/";
  return {
      {handshake + "GetInfo", Late(executor, delay,
                                   [name](const std::string&) {
                                     registration_v1::PluginInfo info;
                                     info.set_type("DRAPlugin");
                                     info.set_name(name());
                                     info.add_supported_versions(
                                         "v1.DRAPlugin");
                                     return rpc::Encode(info);
                                   })},
      {handshake + "NotifyRegistrationStatus",
       Late(executor, delay, [](const std::string&) { return ""; })},
      {service + "NodePrepareResources", Late(executor, delay, Prepare)},
      {service + "NodeUnprepareResources", Late(executor, delay, Unprepare)},
  };
}

Node::Node(const std::filesystem::path& folder, Costs& costs)
    : folder_(folder),
      costs_(costs),
      executor_(ThreadExecutor::Start("node")),
      source_(MemoryObjectSource::Create()) {
  DeviceManagerOptions options;
  options.ledger.in_memory = true;
  options.plugin_registry_dir = registrations();
  options.device_plugin_dir = device_plugins();
  options.dra.call_timeout = std::chrono::milliseconds(400);
  Host host;
  host.objects = source_.get();
  host.observers = {this};
  // What is said of those that behave is none of the peer's doing.
  host.log = [&costs](LogLevel level, std::string_view line) {
    const bool of_good = line.find("good") != std::string_view::npos;
    if (level >= LogLevel::kInfo && !of_good) ++costs.log_lines;
  };
  source_->Publish(SnapshotOf(PodWithClaim("good", kGoodDriver) +
                              PodWithClaim("bad", kBadDriver)));
  auto manager = DeviceManager::Open(options, host);
  EXPECT_TRUE(manager.ok()) << manager.status();
  if (!manager.ok()) return;
  manager_ = *std::move(manager);
  rpc::ServerOptions server;
  server.socket = registrations() / "good.sock";
  server.methods =
      DriverMethods(*executor_, [] { return std::string(kGoodDriver); });
  auto driver = rpc::Server::Start(std::move(server));
  EXPECT_TRUE(driver.ok()) << driver.status();
  if (driver.ok()) driver_ = *std::move(driver);
}

Node::~Node() {
  manager_.reset();
  driver_.reset();
  executor_->Stop();
}

void Node::LivePod(std::function<void(absl::Status)> done) {
  const PodUid uid{"u-good"};
  const auto pod = source_->Snapshot()->pods.at({"default", "good"});
  // It may come to that while the manager is destroyed.
  DeviceManager& manager = *manager_;
  const auto end = [&manager, uid, done](const absl::Status& prepared) {
    manager.StartEndPod(uid, [prepared, done](const absl::Status& ended) {
      done(prepared.ok() ? ended : prepared);
    });
  };
  manager.StartAdmitPod(
      *pod, [&manager, uid, end](const absl::StatusOr<Verdict>& verdict) {
        if (!verdict.ok()) return end(verdict.status());
        if (verdict->kind != Verdict::Kind::kAdmit) {
          return end(UnavailableError("{}", verdict->message));
        }
        manager.StartPreparePod(uid, end);
      });
}

void Node::WantBadPod() {
  const auto pod = source_->Snapshot()->pods.at({"default", "bad"});
  DeviceManager& manager = *manager_;
  manager.StartAdmitPod(*pod, [&manager](const absl::StatusOr<Verdict>&) {
    manager.StartPreparePod(PodUid{"u-bad"}, [](const absl::Status&) {});
  });
}

}  // namespace devmgr::hostile
