// SPDX-License-Identifier: Apache-2.0
#include "bench/quick_driver.h"

#include <devmgr/wire/dra/v1/dra.pb.h>
#include <devmgr/wire/pluginregistration/v1/registration.pb.h>
#include <fmt/core.h>

#include <thread>
#include <utility>

#include "bench/support.h"
#include "rpc/message.h"

namespace devmgr::bench {
namespace {

namespace dra = wire::dra::v1;
namespace registration = wire::pluginregistration::v1;

constexpr char kService[] = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/";
constexpr char kRegistration[] = "/pluginregistration.Registration/";

std::string Prepared(const dra::NodePrepareResourcesRequest& request) {
  dra::NodePrepareResourcesResponse response;
  for (const auto& claim : request.claims()) {
    dra::Device* device =
        (*response.mutable_claims())[claim.uid()].add_devices();
    device->set_pool_name("pool-0");
    device->set_device_name("dev-" + claim.name());
    device->add_cdi_device_ids("example.com/x=" + claim.uid());
  }
  return rpc::Encode(response);
}

std::string Unprepared(const dra::NodePrepareResourcesRequest& request) {
  dra::NodeUnprepareResourcesResponse response;
  for (const auto& claim : request.claims()) {
    (*response.mutable_claims())[claim.uid()];
  }
  return rpc::Encode(response);
}

}  // namespace

QuickDriver::QuickDriver(const std::filesystem::path& root,
                         const std::string& name, Pace pace)
    : root_(root),
      folder_(root / "plugins" / name),
      pace_(pace),
      worker_(ThreadExecutor::Start("quick-driver")) {
  std::filesystem::create_directories(folder_);
  std::filesystem::create_directories(root_ / "plugins_registry");
  rpc::ServerOptions service;
  service.socket = socket();
  for (const bool prepare : {true, false}) {
    service
        .methods[std::string(kService) + (prepare ? "NodePrepareResources"
                                                  : "NodeUnprepareResources")] =
        [this, prepare](std::string request, rpc::Respond respond) {
          worker_->Post([this, prepare, request = std::move(request),
                         respond = std::move(respond)] {
            Serve(prepare, request, respond);
          });
        };
  }
  service_ = Must(rpc::Server::Start(std::move(service)));
  rpc::ServerOptions door;
  door.socket = root_ / "plugins_registry" / (name + "-reg.sock");
  door.methods = RegistrationMethods(name);
  registration_ = Must(rpc::Server::Start(std::move(door)));
}

QuickDriver::~QuickDriver() {
  registration_ = nullptr;
  worker_->Stop();
  {
    MutexLock lock(mutex_);
    hanging_.clear();
  }
  service_ = nullptr;
}

std::map<std::string, rpc::UnaryHandler> QuickDriver::RegistrationMethods(
    const std::string& name) {
  registration::PluginInfo info;
  info.set_type("DRAPlugin");
  info.set_name(name);
  info.set_endpoint(socket().string());
  info.add_supported_versions("v1.DRAPlugin");
  const std::string said = rpc::Encode(info);
  return {{std::string(kRegistration) + "GetInfo",
           [said](const std::string&, const rpc::Respond& respond) {
             respond(said);
           }},
          {std::string(kRegistration) + "NotifyRegistrationStatus",
           [this](const std::string& request, const rpc::Respond& respond) {
             const auto status =
                 Must(rpc::Decode<registration::RegistrationStatus>(request));
             if (!status.plugin_registered()) Fail(status.error());
             {
               MutexLock lock(mutex_);
               ++registrations_;
               changed_.NotifyAll();
             }
             respond(rpc::Encode(registration::RegistrationStatusResponse()));
           }}};
}

void QuickDriver::Serve(bool prepare, const std::string& request,
                        rpc::Respond respond) {
  // Both requests look the same.
  const auto asked =
      Must(rpc::Decode<dra::NodePrepareResourcesRequest>(request));
  if (asked.claims().empty()) return respond("");  // Whether it is there.
  {
    MutexLock lock(mutex_);
    ++(prepare ? prepare_calls_ : unprepare_calls_);
    if (pace_.hangs) {
      hanging_.push_back(std::move(respond));
      return;
    }
  }
  const auto work = pace_.per_call + asked.claims_size() * pace_.per_claim;
  if (work.count() > 0) std::this_thread::sleep_for(work);
  respond(prepare ? Prepared(asked) : Unprepared(asked));
}

void QuickDriver::WaitUntilRegistered(int times) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  while (registrations_ < times) {
    if (!changed_.WaitUntil(mutex_, end)) Fail("no registration");
  }
}

int QuickDriver::prepare_calls() const {
  MutexLock lock(mutex_);
  return prepare_calls_;
}

int QuickDriver::unprepare_calls() const {
  MutexLock lock(mutex_);
  return unprepare_calls_;
}

std::filesystem::path QuickDriver::socket() const {
  return folder_ / "dra.sock";
}

}  // namespace devmgr::bench
