// SPDX-License-Identifier: Apache-2.0
//
// A device plugin may send anything: registrations, lists, answers. What is
// accepted can be planned with and kept in the ledger; what is not is named.
#include <google/protobuf/stubs/logging.h>

#include <set>
#include <string>
#include <vector>

#include "checkpoint/codec.h"
#include "common/status.h"
#include "device/device_list.h"
#include "device/inventory.h"
#include "fuzz/fuzz.h"
#include "plugin/allocate_answer.h"
#include "plugin/api_version.h"

namespace devmgr::fuzz {
namespace {

void CheckRefusal(const absl::Status& status) {
  if (!status.ok()) RequireReadable(MessageOf(status));
}

void CheckDevices(const device::InventoryDevices& devices) {
  std::set<std::string> ids;
  for (const device::InventoryDevice& known : devices) {
    Require(device::CheckDeviceId(known.device.id).empty(),
            "an accepted device has a name that can be");
    Require(ids.insert(known.device.id).second, "each ID is there once");
    for (const std::int64_t node : known.device.numa_nodes) {
      Require(node == 0 || node == 1, "NUMA nodes exist");
    }
  }
}

void CheckLists(const plugin::ApiVersion& version, const std::string& bytes) {
  const auto list = version.decode_list(bytes);
  CheckRefusal(list.status());
  if (!list.ok()) return;
  for (const std::string& text : list->problems.texts) RequireReadable(text);
  const device::IsHeld none = [](const std::string&) { return false; };
  device::Inventory inventory({0, 1});
  inventory.Connect(1, 0);
  const device::InventoryDelta first =
      inventory.Report(1, list->devices, none, 1);
  for (const std::string& text : first.problems.texts) RequireReadable(text);
  CheckDevices(inventory.devices());
  Require(inventory.figures().allocatable <= inventory.figures().capacity,
          "no more devices work than there are");
  Require(inventory.Report(1, list->devices, none, 2).Empty(),
          "the same list changes nothing");
}

/// What is accepted goes into the ledger, so it must come back from there.
void CheckKept(const device::ContainerEdits& edits) {
  state::DeviceHold hold;
  hold.container = "c";
  hold.resource = "example.com/gpu";
  hold.phase = device::ReservationPhase::kCommitted;
  hold.devices = {{"0", {}}};
  hold.edits = edits;
  state::PodRecord pod;
  pod.uid.value = "uid";
  pod.name = {"default", "pod"};
  pod.phase = state::PodPhase::kAdmitted;
  pod.holds = {hold};
  const auto kept =
      checkpoint::DecodePod(checkpoint::EncodePod(pod), "pod/uid");
  Require(kept.ok() && **kept == pod, "an accepted answer can be kept");
}

void CheckAnswers(const plugin::ApiVersion& version, const std::string& bytes) {
  CheckRefusal(version.decode_options(bytes).status());
  CheckRefusal(version.decode_preferred(bytes).status());
  const auto edits = version.decode_allocate(bytes);
  CheckRefusal(edits.status());
  if (!edits.ok()) return;
  const absl::Status usable = plugin::CheckEdits(*edits);
  CheckRefusal(usable);
  if (usable.ok()) CheckKept(*edits);
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // It tells stderr of each text that is not UTF-8.
  static auto* const previous = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(previous);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  devmgr::fuzz::CheckRefusal(devmgr::plugin::DecodeRegister(bytes).status());
  for (const devmgr::plugin::ApiVersion& version :
       devmgr::plugin::ApiVersions()) {
    devmgr::fuzz::CheckLists(version, bytes);
    devmgr::fuzz::CheckAnswers(version, bytes);
  }
  return 0;
}
