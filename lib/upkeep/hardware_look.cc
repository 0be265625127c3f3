// SPDX-License-Identifier: Apache-2.0
#include "upkeep/hardware_look.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "cdi/device_node.h"
#include "cdi/host_devices.h"

namespace devmgr::upkeep {
namespace {

constexpr std::string_view kSys = "/sys";

/// The link in sysfs from a node's numbers to its device.
std::string SysfsDevice(std::string_view type, std::int64_t major,
                        std::int64_t minor) {
  std::error_code error;
  const std::filesystem::path device = std::filesystem::canonical(
      fmt::format("{}/dev/{}/{}:{}/device", kSys,
                  type == "b" ? "block" : "char", major, minor),
      error);
  const std::string text = error ? std::string() : device.string();
  return text.starts_with(kSys) ? text.substr(kSys.size()) : std::string();
}

std::vector<CdiDeviceNode> NodesOf(const NodeQuestion& question,
                                   const CdiRegistry* registry,
                                   const HardwareHost& host) {
  std::vector<CdiDeviceNode> nodes;
  for (const DeviceNode& device : question.devices) {
    cdi::AddHostNodes(device, host.nodes, &nodes).IgnoreError();
  }
  if (registry == nullptr) return nodes;
  // One by one: others count though one is not defined.
  for (const std::string& name : question.cdi_devices) {
    const auto edits = CdiEditsOf(*registry, {name});
    if (!edits.ok()) continue;
    for (const CdiEditsPart& part : *edits) {
      // What every device of the spec brings is none of them.
      if (part.of_spec) continue;
      for (const CdiDeviceNode& node : part.edits->device_nodes) {
        auto filled = cdi::FilledFromHost(node, host.nodes);
        if (filled.ok()) nodes.push_back(*std::move(filled));
      }
    }
  }
  return nodes;
}

/// What the claim has for itself of the driver's answer. What is shared keeps
/// nothing from others.
bool IsOwn(const state::ClaimRecord* claim, const std::string& driver,
           const state::PreparedDevice& device) {
  if (claim == nullptr || !device.share_id.empty()) return false;
  const auto part = claim->drivers.find(driver);
  if (part == claim->drivers.end()) return false;
  const auto& allocated = part->second.allocated;
  return std::none_of(allocated.begin(), allocated.end(),
                      [&](const state::AllocatedDevice& each) {
                        return each.shared && each.pool == device.pool &&
                               each.device == device.device;
                      });
}

/// What is published says whether it is a part.
bool IsPart(const state::ClaimRecord* claim, const std::string& driver,
            const state::PreparedDevice& device) {
  if (claim == nullptr || !claim->drivers.contains(driver)) return false;
  const auto& allocated = claim->drivers.at(driver).allocated;
  return std::any_of(allocated.begin(), allocated.end(),
                     [&](const state::AllocatedDevice& each) {
                       return each.pool == device.pool &&
                              each.device == device.device &&
                              each.hardware.part;
                     });
}

}  // namespace

HardwareHost SystemHardwareHost() { return {SystemCdiHost(), SysfsDevice}; }

std::vector<device::NodeFacts> LookAtNodes(const NodeQuestion& question,
                                           const CdiRegistry* registry,
                                           const HardwareHost& host) {
  std::vector<device::NodeFacts> facts;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const CdiDeviceNode& node : NodesOf(question, registry, host)) {
    const std::string type = node.type == "u" ? "c" : node.type;
    if (type != "c" && type != "b") continue;
    if (!seen.emplace(node.major, type == "b" ? -1 - node.minor : node.minor)
             .second) {
      continue;
    }
    facts.push_back({cdi::HostPathOf(node), type, node.major, node.minor,
                     host.sysfs_device(type, node.major, node.minor)});
  }
  return facts;
}

HardwareLook::HardwareLook(Parts parts) : parts_(std::move(parts)) {}

void HardwareLook::Stop() {
  if (disk_ != nullptr) disk_->Stop();
}

void HardwareLook::Look(std::vector<NodeQuestion> questions,
                        std::function<void(const Facts&)> done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (std::all_of(questions.begin(), questions.end(),
                  [](const NodeQuestion& each) { return each.empty(); })) {
    return done(Facts(questions.size()));
  }
  if (closed_) return;
  const bool needs_specs = std::any_of(
      questions.begin(), questions.end(),
      [](const NodeQuestion& each) { return !each.cdi_devices.empty(); });
  const auto look = [this, questions = std::move(questions),
                     done = std::move(done)](const CdiRegistry* registry) {
    Facts facts;
    for (const NodeQuestion& each : questions) {
      facts.push_back(LookAtNodes(each, registry, parts_.host));
    }
    parts_.executor.Post([done, facts = std::move(facts)] { done(facts); });
  };
  if (needs_specs && parts_.read_specs &&
      parts_.read_specs([look](const CdiRegistry& specs) { look(&specs); })) {
    return;
  }
  if (disk_ == nullptr) disk_ = ThreadExecutor::Start("devmgr-nodes");
  disk_->Post([look] { look(nullptr); });
}

void HardwareLook::Identify(
    const std::string& driver, SpecKeeper::PreparedClaims prepared,
    const std::function<void(SpecKeeper::PreparedClaims)>& done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (device::IsSharedByIntent(driver, parts_.options)) {
    return done(std::move(prepared));
  }
  std::vector<NodeQuestion> questions;
  for (const auto& [uid, devices] : prepared) {
    const state::ClaimRecord* claim = parts_.state.FindClaim(uid);
    for (const state::PreparedDevice& device : devices) {
      questions.emplace_back();
      if (!IsOwn(claim, driver, device)) continue;
      questions.back().cdi_devices = device.cdi_device_ids;
    }
  }
  Look(std::move(questions), [this, driver, done,
                              prepared](const Facts& facts) {
    SpecKeeper::PreparedClaims identified = prepared;
    std::size_t next = 0;
    for (auto& [uid, devices] : identified) {
      const state::ClaimRecord* claim = parts_.state.FindClaim(uid);
      for (state::PreparedDevice& device : devices) {
        device.hardware = device::HardwareOf(facts.at(next++), parts_.options);
        device.hardware.part = IsPart(claim, driver, device);
      }
    }
    done(std::move(identified));
  });
}

}  // namespace devmgr::upkeep
