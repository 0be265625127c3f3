// SPDX-License-Identifier: Apache-2.0
#include "server/simulations.h"

#include <devmgr/cel.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "common/status.h"

namespace devmgr::server {
namespace {

constexpr std::chrono::milliseconds kLongestDeadline{60'000};

/// Puts objects where a request has them. False: it has no use for the kind.
struct Collector {
  SimulationRequest& to;

  bool operator()(Pod& object) const {
    to.pods.push_back(std::move(object));
    return true;
  }
  bool operator()(ResourceClaim& object) const {
    to.claims.push_back(std::move(object));
    return true;
  }
  bool operator()(ResourceClaimTemplate& object) const {
    to.claim_templates.push_back(std::move(object));
    return true;
  }
  bool operator()(DeviceClass& object) const {
    to.device_classes.push_back(std::move(object));
    return true;
  }
  bool operator()(ResourceSlice& object) const {
    to.view.slices.push_back(std::move(object));
    return true;
  }
  template <typename Other>
  bool operator()(Other&) const {
    return false;
  }
};

absl::Status Collect(const pb::SimulateDocument& document,
                     SimulationRequest* to) {
  DecodedManifest decoded =
      DecodeCheckedManifest(document.text(), document.name());
  if (!decoded.errors.empty()) {
    return InvalidArgumentError("{}", decoded.errors.front().ToString());
  }
  for (DecodedObject& each : decoded.objects) {
    if (std::visit(Collector{*to}, each.object)) continue;
    return InvalidArgumentError(
        "{}:{}: a simulation takes Pods, ResourceClaims, "
        "ResourceClaimTemplates, DeviceClasses and ResourceSlices",
        document.name(), each.line);
  }
  // They are judged, too, and rejected.
  for (MalformedPod& each : decoded.malformed_pods) {
    to->pods.push_back(std::move(each.pod));
  }
  return absl::OkStatus();
}

absl::StatusOr<SimulationBase> BaseOf(const std::string& name) {
  for (const SimulationBase base :
       {SimulationBase::kPresent, SimulationBase::kLikeNode,
        SimulationBase::kEmpty}) {
    if (name.empty() || SimulationBaseName(base) == name) return base;
  }
  return InvalidArgumentError("the view '{}' is not known", name);
}

}  // namespace

absl::StatusOr<SimulationRequest> SimulationRequestOf(
    const pb::SimulateRequest& request) {
  SimulationRequest result;
  for (const pb::SimulateDocument& document : request.documents()) {
    DEVMGR_RETURN_IF_ERROR(Collect(document, &result));
  }
  DEVMGR_ASSIGN_OR_RETURN(result.view.base, BaseOf(request.base()));
  result.view.node_name = request.node_name();
  for (const auto& [key, value] : request.node_labels()) {
    result.view.node_labels[key] = value;
  }
  for (const pb::ObjectName& pod : request.minus()) {
    result.view.minus.push_back(FromProto(pod));
  }
  for (const pb::SimulatePlugin& plugin : request.plugins()) {
    SimulatedPlugin& to = result.view.plugins.emplace_back();
    to.resource = ResourceName(plugin.resource());
    to.count = plugin.count();
    for (const auto& [node, count] : plugin.by_numa_node()) {
      to.by_numa_node[node] = count;
    }
  }
  result.independent = request.independent();
  result.count_fits = request.count_fits();
  if (request.steps() != 0) result.steps = request.steps();
  if (request.deadline_ms() != 0) {
    result.deadline = std::chrono::milliseconds(std::min<std::int64_t>(
        request.deadline_ms(), kLongestDeadline.count()));
  }
  return result;
}

pb::SimulateRequest ToProto(const SimulationDocuments& request) {
  pb::SimulateRequest message;
  for (const auto& document : request.documents) {
    pb::SimulateDocument& to = *message.add_documents();
    to.set_name(ValidUtf8(document.name));
    to.set_text(document.text);
  }
  const SimulationView& view = request.view;
  message.set_base(std::string(SimulationBaseName(view.base)));
  message.set_node_name(view.node_name);
  for (const auto& [key, value] : view.node_labels) {
    (*message.mutable_node_labels())[key] = value;
  }
  for (const ObjectName& pod : view.minus) {
    *message.add_minus() = ToProto(pod);
  }
  for (const SimulatedPlugin& plugin : view.plugins) {
    pb::SimulatePlugin& to = *message.add_plugins();
    to.set_resource(plugin.resource.value);
    to.set_count(plugin.count);
    for (const auto& [node, count] : plugin.by_numa_node) {
      (*to.mutable_by_numa_node())[node] = count;
    }
  }
  message.set_independent(request.independent);
  message.set_count_fits(request.count_fits);
  message.set_steps(request.steps);
  message.set_deadline_ms(request.deadline.count());
  return message;
}

Simulations::~Simulations() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    if (running_ != nullptr) *running_ = true;
  }
  if (executor_ != nullptr) executor_->Stop();
}

std::shared_ptr<std::atomic<bool>> Simulations::Begin() {
  const MutexLock lock(mutex_);
  // Each has its own: the deadline of one does not end the next.
  running_ = std::make_shared<std::atomic<bool>>(stopped_);
  return running_;
}

void Simulations::Run(const pb::SimulateRequest& request, Done done) {
  auto counted = calls_.Take();
  if (!counted.ok()) {
    return done(ResourceExhaustedError(
        "busy: {} simulations run or wait already", kMostSimulations));
  }
  if (executor_ == nullptr) {
    executor_ = ThreadExecutor::Start("devmgr-simulate");
  }
  executor_->Post([this, request, done = std::move(done),
                   counted = *std::move(counted)]() mutable {
    absl::StatusOr<std::string> answer = Answer(request);
    counted = nullptr;
    done(std::move(answer));
  });
}

absl::StatusOr<std::string> Simulations::Answer(
    const pb::SimulateRequest& request) {
  DEVMGR_ASSIGN_OR_RETURN(SimulationRequest wanted,
                          SimulationRequestOf(request));
  wanted.stop = Begin();
  DEVMGR_ASSIGN_OR_RETURN(const Simulation result, manager_.Simulate(wanted));
  return EncodeSimulation(result);
}

}  // namespace devmgr::server
