// SPDX-License-Identifier: Apache-2.0
//
// Anything may be asked at the pod-resources socket, and any server may answer
// anything to one that asks. What is refused is refused in words that can be
// sent; what is read as an answer can be told again.
#include <devmgr/pod_resources.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/executor.h"
#include "common/status.h"
#include "fuzz/fuzz.h"
#include "server/podresources/decoding.h"
#include "server/podresources/encoding.h"
#include "server/podresources/service.h"
#include "support/fake_device_manager.h"

namespace devmgr::fuzz {
namespace {

using podresources::DecodedList;
using podresources::EncodedPod;

/// A call of a client that reads what it gets.
class Call final : public rpc::ServerStream {
 public:
  const std::map<std::string, std::string>& metadata() const override {
    return metadata_;
  }
  const rpc::Caller& caller() const override { return caller_; }
  void Write(std::shared_ptr<const std::string> message) override {
    answer_ = *message;
  }
  void Finish(const absl::Status& status) override {
    Require(!ended_, "a call ends once");
    ended_ = true;
    status_ = status;
  }
  void WhenClientGone(std::function<void()> /*gone*/) override {}
  void WhenTaken(std::function<void()> /*taken*/) override {}

  void Check() const {
    Require(ended_, "each call ends");
    if (status_.ok()) {
      Require(DecodedList(answer_).ok(), "an answer can be read");
      return;
    }
    RequireReadable(MessageOf(status_));
    constexpr std::size_t kMost = 1024;
    Require(status_.message().size() < kMost, "a message fits into a header");
  }

 private:
  const std::map<std::string, std::string> metadata_ = {};
  const rpc::Caller caller_ = {};
  std::string answer_;
  absl::Status status_;
  bool ended_ = false;
};

void CheckRequests(const std::string& bytes) {
  FakeDeviceManager manager;
  auto pod = std::make_shared<PodResources>();
  pod->name = {"default", "p"};
  auto list = std::make_shared<PodResourcesList>();
  list->pods = {pod};
  manager.Set(
      [&](FakeDeviceManager::World& world) { world.pod_resources = list; });
  ManualExecutor executor;
  podresources::Service service(manager, executor, /*strict_kubelet=*/false);
  for (const auto& [path, handler] : service.Methods()) {
    const auto call = std::make_shared<Call>();
    handler(bytes, call);
    executor.RunPending();
    call->Check();
  }
  executor.Stop();
}

PodResources AsPod(const ListedPod& listed) {
  PodResources pod;
  pod.name = listed.name;
  for (const ListedContainer& container : listed.containers) {
    pod.containers.push_back(container.resources);
  }
  return pod;
}

void CheckAnswers(const std::string& bytes) {
  static_cast<void>(podresources::DecodedAllocatable(bytes));
  static_cast<void>(podresources::DecodedGet(bytes));
  static_cast<void>(podresources::DecodedOldList(bytes));
  const auto pods = DecodedList(bytes);
  if (!pods.ok()) return;
  for (const ListedPod& pod : *pods) {
    const auto again = DecodedList(EncodedPod(AsPod(pod)));
    Require(again.ok() && again->size() == 1, "what was read can be sent");
    Require(AsPod(again->front()).containers == AsPod(pod).containers,
            "and means the same");
  }
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  devmgr::fuzz::CheckRequests(bytes);
  devmgr::fuzz::CheckAnswers(bytes);
  return 0;
}
