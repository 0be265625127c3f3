// SPDX-License-Identifier: Apache-2.0
#include "fuzz/ctl_world.h"

namespace devmgr::fuzz {

void CtlWorld::AddPod(const std::string& ns, const std::string& name,
                      PodState state) {
  PodInfo pod;
  pod.name = {ns, name};
  pod.uid = {"uid-" + name};
  pod.state = state;
  if (state != PodState::kReady) {
    pod.reason = "DriverNotRegistered";
    pod.message = text_;
    pod.waiting_for = {{WaitingFor::Kind::kDriver, text_}};
  }
  pod.first_seen = now_ - std::chrono::minutes(7);
  pod.containers = {"main"};
  pod.claims = {"default/c"};
  node_.pods.push_back(std::move(pod));
}

void CtlWorld::Furnish() {
  AddPod("default", "p", PodState::kReady);
  AddPod("default", "w", PodState::kWaiting);
  AddPod("team", "r", PodState::kRejected);

  node_.node.version = "1.0";
  node_.node.node_name = text_;
  node_.node.started = now_ - std::chrono::hours(3);
  node_.node.ledger_error = text_;
  node_.node.source_problems = {text_};

  ClaimInfo claim;
  claim.name = {"default", "c"};
  claim.uid = {"uid-c"};
  claim.state = ClaimState::kPrepared;
  claim.pods = {"default/p"};
  claim.drivers = {{"d.example.com",
                    ClaimState::kPrepared,
                    {"pool/gpu-0"},
                    {"v.com/c=x"},
                    text_}};
  node_.claims = {claim};

  PluginInfo plugin;
  plugin.name = "d.example.com";
  plugin.kind = PluginKind::kDra;
  plugin.endpoint = text_;
  plugin.version = "v1.DRAPlugin";
  plugin.state = PluginState::kDisconnected;
  plugin.last_error = text_;
  node_.plugins = {plugin};

  node_.devices = {{"d.example.com", "pool", "gpu-0", {"default/p"}, {text_}}};
  node_.classes = {{"gpu", "example.com/gpu", "", text_}};
  node_.history = {{1,
                    now_,
                    DecisionKind::kPrepareIntent,
                    {"default/p"},
                    {"default/c"},
                    text_}};
  node_.events = {
      {1, now_, true, "Failed", "Pod", {"default", "p"}, text_},
      {2, now_, false, "Prepared", "Pod", {"team", "r"}, "all is well"}};

  // At decision 1 the first pod was all there was.
  node_.state_at = [this](const LedgerPoint& at) -> absl::StatusOr<LedgerView> {
    const auto* sequence = std::get_if<std::uint64_t>(&at);
    if (sequence != nullptr && *sequence > 2) {
      return absl::OutOfRangeError("not decided yet");
    }
    LedgerView view;
    view.sequence = sequence != nullptr ? *sequence : 2;
    view.time = now_;
    view.pods = node_.pods;
    if (view.sequence < 2) view.pods.resize(1);
    view.claims = node_.claims;
    view.devices = node_.devices;
    return view;
  };
  FsckReport report;
  report.findings = {
      {"missing-spec", true, "claim/default/c", text_, "prepare again", ""},
      {"orphaned-spec", false, text_, "the daemon does not know it", "",
       text_}};
  report.repairs = {{"claim/default/c", "prepare again", text_}};
  node_.fsck = report;

  ContainerDevices main;
  main.name = "main";
  main.cdi_devices = {
      {"v.com/c=x", {"c", "gpu", "d.example.com", "pool", "gpu-0", text_}}};
  main.env = {{"TEXT", text_}};
  main.mounts = {{"/in", text_, true}};
  main.devices = {{"/dev/x", "/dev/x", "rw"}};
  main.annotations = {{"note", text_}};
  node_.answer = PodDevices{{"default", "p"}, {"uid-p"}, {main}};

  using State = RuntimeContainer::State;
  runtime_.containers = {
      {"0f3a", "main", 0, State::kRunning, {"uid-p"}, {"default", "p"}, text_},
      {text_, text_, 1, State::kCreated, {text_}, {text_, text_}, text_}};
  runtime_.config.oci = text_;

  node_.on_wait = [this](std::chrono::milliseconds time) { Pass(time); };
  node_.on_prepare = [](const ObjectName&) { return absl::OkStatus(); };
  node_.on_release = [this](const ObjectName& name) {
    std::erase_if(node_.pods,
                  [&](const PodInfo& pod) { return pod.name == name; });
    return absl::OkStatus();
  };
}

}  // namespace devmgr::fuzz
