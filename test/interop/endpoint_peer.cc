// SPDX-License-Identifier: Apache-2.0
//
// An endpoint for drivers, in a folder that outlives the program: node n1, a
// class, and the claim default/c with devices gpu-0 and gpu-1. Serves until its
// input ends.
//
//   endpoint_peer FOLDER DRIVER...
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "checkpoint/ledger_store.h"
#include "endpoint/endpoint.h"
#include "endpoint/object_journal.h"

namespace {

constexpr const char* kNode = R"({"apiVersion": "v1", "kind": "Node",
  "metadata": {"name": "n1", "uid": "u-n1"}})";
constexpr const char* kClass = R"({"apiVersion": "resource.k8s.io/v1",
  "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})";

std::string Claim(const std::string& driver) {
  return R"({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
    "metadata": {"namespace": "default", "name": "c", "uid": "u-c"},
    "spec": {"devices": {"requests": [
      {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    "status": {"allocation": {"devices": {"results": [
      {"request": "r", "driver": ")" +
         driver + R"(", "pool": "n1", "device": "gpu-0"},
      {"request": "r", "driver": ")" +
         driver + R"(", "pool": "n1", "device": "gpu-1"}]}}}})";
}

}  // namespace

int main(int argc, char** argv) {
  using devmgr::endpoint::Endpoint;
  if (argc < 3) return 2;
  const std::string folder = argv[1];
  const auto store = devmgr::checkpoint::OpenRocksDbStore({folder + "/state"});
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
    return 1;
  }
  (*store)->OpenObjects([](const absl::Status&) {});
  devmgr::endpoint::ObjectJournal journal((*store)->Objects(),
                                          {folder + "/journal"});
  devmgr::endpoint::EndpointOptions options;
  options.node_name = "n1";
  options.node_uid = "u-n1";
  options.kubeconfig_dir = folder + "/kubeconfig";
  options.drivers.assign(argv + 2, argv + argc);
  auto endpoint = Endpoint::Start(std::move(options), journal);
  absl::Status status = endpoint.status();
  if (status.ok()) status = (*endpoint)->SetObjects("Node", {kNode});
  if (status.ok()) status = (*endpoint)->SetObjects("DeviceClass", {kClass});
  if (status.ok()) {
    status = (*endpoint)->SetObjects("ResourceClaim", {Claim(argv[2])});
  }
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}
