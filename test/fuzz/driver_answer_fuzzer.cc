// SPDX-License-Identifier: Apache-2.0
//
// A driver may answer anything. Whatever it is, each claim that was asked for
// gets exactly one word, and what is accepted can be kept in the ledger.
#include <google/protobuf/stubs/logging.h>

#include <string>
#include <vector>

#include "api/quote.h"
#include "cdi/qualified_name.h"
#include "checkpoint/codec.h"
#include "common/status.h"
#include "dra/answer.h"
#include "dra/api_version.h"
#include "fuzz/fuzz.h"

namespace devmgr::fuzz {
namespace {

const std::vector<dra::ClaimReference>& Asked() {
  static const auto* asked = new std::vector<dra::ClaimReference>{
      {.uid = ClaimUid{"uid-1"}, .name = {"default", "claim-1"}},
      {.uid = ClaimUid{"uid-2"}, .name = {"default", "claim-2"}},
  };
  return *asked;
}

void CheckDevice(const state::PreparedDevice& device) {
  Require(device.pool.empty() == device.device.empty(),
          "an accepted device has a name, or CDI names alone");
  for (const std::string& request : device.request_names) {
    Require(request.size() <= dra::kMaxNameBytes, "names are bounded");
  }
  for (const std::string& id : device.cdi_device_ids) {
    Require(cdi::CheckQualifiedName(id).ok(), "CDI names are qualified");
  }
}

/// What is accepted goes into the ledger, so it must come back from there.
void CheckKept(const std::vector<state::PreparedDevice>& devices) {
  Require(devices.size() <= dra::kMaxDevicesPerClaim, "devices are bounded");
  for (const state::PreparedDevice& device : devices) CheckDevice(device);
  state::ClaimRecord claim;
  claim.uid = Asked().front().uid;
  claim.name = Asked().front().name;
  claim.drivers["d.example.com"] = {state::DriverPhase::kPrepared, devices,
                                    "boot"};
  const auto kept =
      checkpoint::DecodeClaim(checkpoint::EncodeClaim(claim), "claim/uid-1");
  Require(kept.ok() && **kept == claim, "an accepted answer can be kept");
}

void CheckVersion(const dra::ApiVersion& version, const std::string& bytes) {
  const dra::PrepareAnswer prepared =
      dra::CheckPrepareAnswer(Asked(), version.decode_prepare(bytes, Asked()));
  Require(prepared.size() == Asked().size(), "each claim gets one word");
  for (const auto& [uid, devices] : prepared) {
    if (devices.ok()) {
      CheckKept(*devices);
    } else {
      RequireReadable(MessageOf(devices.status()));
    }
  }
  const dra::UnprepareAnswer unprepared = dra::CheckUnprepareAnswer(
      Asked(), version.decode_unprepare(bytes, Asked()));
  Require(unprepared.size() == Asked().size(), "each claim gets one word");
  for (const auto& [uid, status] : unprepared) {
    if (!status.ok()) RequireReadable(MessageOf(status));
  }
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // It tells stderr of each text that is not UTF-8.
  static auto* const previous = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(previous);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const devmgr::dra::ApiVersion& version : devmgr::dra::ApiVersions()) {
    devmgr::fuzz::CheckVersion(version, bytes);
  }
  return 0;
}
