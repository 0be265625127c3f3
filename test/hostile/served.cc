// SPDX-License-Identifier: Apache-2.0
#include "hostile/served.h"

#include <devmgr/cri.h>
#include <devmgr/inspection.h>
#include <gtest/gtest.h>

#include <utility>

#include "common/status.h"
#include "devmgr/inspection/v1/inspection.pb.h"
#include "devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h"
#include "hostile/node.h"
#include "rpc/message.h"
#include "rpc/server.h"

namespace devmgr::hostile {

void FreshCaller::Call(const RawCall& call, rpc::CallDone done) {
  connection_.reset();
  auto connection = rpc::Dial(runtime_, socket_, [] {});
  if (!connection.ok()) return done(connection.status());
  connection_ = *std::move(connection);
  connection_->Call(call.method, call.message, {std::chrono::seconds(20)},
                    std::move(done));
}

namespace {

/// The inspection service of a whole node. The neighbour asks for the node;
/// others report as CRI shims.
class Inspection final : public Served {
 public:
  Inspection(rpc::Runtime& runtime, const std::filesystem::path& folder)
      : socket_(folder / "devmgr.sock"),
        node_(folder, costs_),
        caller_(runtime, socket_) {
    auto server = InspectionServer::Start(node_.manager(), socket_);
    EXPECT_TRUE(server.ok()) << server.status();
    if (server.ok()) server_ = *std::move(server);
  }

  std::filesystem::path socket() const override { return socket_; }
  RawCall CallOf(int name) const override {
    if (name == 0) return {"/devmgr.inspection.v1.Inspector/Pods", ""};
    inspection::v1::RuntimeReport report;
    report.set_session(fmt::format("s-{}", name));
    report.set_listen(fmt::format("/run/cri-{}.sock", name));
    return {"/devmgr.inspection.v1.Inspector/ReportRuntime",
            rpc::Encode(report)};
  }
  void CallNeighbour(std::function<void(absl::Status)> done) override {
    caller_.Call({"/devmgr.inspection.v1.Inspector/Node", ""},
                 [done](const absl::StatusOr<std::string>& answer) {
                   done(answer.status());
                 });
  }

 private:
  const std::filesystem::path socket_;
  Node node_;
  std::unique_ptr<InspectionServer> server_;
  FreshCaller caller_;
};

/// The socket of a CRI proxy, before a runtime that answers.
class Proxy final : public Served {
 public:
  Proxy(rpc::Runtime& runtime, const std::filesystem::path& folder)
      : socket_(folder / "proxy.sock"), caller_(runtime, socket_) {
    rpc::ServerOptions server;
    server.socket = folder / "runtime.sock";
    server.methods[kListContainers] = [](std::string request,
                                         const rpc::Respond& respond) {
      respond(std::move(request));
    };
    auto started = rpc::Server::Start(std::move(server));
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) backend_ = *std::move(started);
    CriProxyOptions options;
    options.listen = socket_;
    options.backend = folder / "runtime.sock";
    auto proxy = CriProxy::Start(options);
    EXPECT_TRUE(proxy.ok()) << proxy.status();
    if (proxy.ok()) proxy_ = *std::move(proxy);
  }

  std::filesystem::path socket() const override { return socket_; }
  RawCall CallOf(int name) const override {
    return {kListContainers, fmt::format("{}", name)};
  }
  void CallNeighbour(std::function<void(absl::Status)> done) override {
    caller_.Call(CallOf(-1), [done](const absl::StatusOr<std::string>& answer) {
      done(answer.status());
    });
  }

 private:
  static constexpr char kListContainers[] =
      "/runtime.v1.RuntimeService/ListContainers";

  const std::filesystem::path socket_;
  std::unique_ptr<rpc::Server> backend_;
  std::unique_ptr<CriProxy> proxy_;
  FreshCaller caller_;
};

/// The registry socket of a whole node, `kubelet.sock`. Plugins call Register
/// and do not listen; the neighbour is refused for its version.
class Registry final : public Served {
 public:
  Registry(rpc::Runtime& runtime, const std::filesystem::path& folder)
      : node_(folder, costs_), caller_(runtime, socket()) {}

  std::filesystem::path socket() const override {
    return node_.device_plugins() / "kubelet.sock";
  }
  RawCall CallOf(int name) const override {
    return Register("v1beta1", name == 0
                                   ? "example.com/bad"
                                   : fmt::format("example.com/bad-{}", name));
  }
  void CallNeighbour(std::function<void(absl::Status)> done) override {
    caller_.Call(
        Register("v1alpha9", "example.com/good"),
        [done](const absl::StatusOr<std::string>& answer) {
          const bool refused =
              answer.status().message().find("v1alpha9") != std::string::npos;
          done(refused ? absl::OkStatus()
                       : InternalError("{}", MessageOf(answer.status())));
        });
  }

 private:
  static RawCall Register(const std::string& version,
                          const std::string& resource) {
    wire::deviceplugin::v1beta1::RegisterRequest request;
    request.set_version(version);
    request.set_endpoint("bad.sock");
    request.set_resource_name(resource);
    return {"/v1beta1.Registration/Register", rpc::Encode(request)};
  }

  Node node_;
  FreshCaller caller_;
};

}  // namespace

std::unique_ptr<Served> ServedInspection(rpc::Runtime& runtime,
                                         const std::filesystem::path& folder) {
  return std::make_unique<Inspection>(runtime, folder);
}
std::unique_ptr<Served> ServedProxy(rpc::Runtime& runtime,
                                    const std::filesystem::path& folder) {
  return std::make_unique<Proxy>(runtime, folder);
}
std::unique_ptr<Served> ServedRegistry(rpc::Runtime& runtime,
                                       const std::filesystem::path& folder) {
  return std::make_unique<Registry>(runtime, folder);
}

}  // namespace devmgr::hostile
