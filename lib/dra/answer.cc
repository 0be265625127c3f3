// SPDX-License-Identifier: Apache-2.0
#include "dra/answer.h"

#include <set>
#include <string_view>

#include "api/names.h"
#include "api/quote.h"
#include "cdi/qualified_name.h"
#include "common/peer_status.h"
#include "common/status.h"

namespace devmgr::dra {
namespace {

constexpr std::string_view kPrepare = "NodePrepareResources";
constexpr std::string_view kUnprepare = "NodeUnprepareResources";

absl::Status CheckName(std::string_view what, const std::string& name) {
  if (name.empty()) return InvalidArgumentError("empty {}", what);
  if (name.size() > kMaxNameBytes) {
    return InvalidArgumentError("{} of {} bytes, at most {} are allowed", what,
                                name.size(), kMaxNameBytes);
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const state::PreparedDevice& device) {
  DEVMGR_RETURN_IF_ERROR(CheckName("pool name", device.pool));
  DEVMGR_RETURN_IF_ERROR(CheckName("device name", device.device));
  if (const std::string text = api::CheckPoolName(device.pool); !text.empty()) {
    return InvalidArgumentError("pool name: {}", text);
  }
  if (const std::string text = api::CheckLabel(device.device); !text.empty()) {
    return InvalidArgumentError("device name: {}", text);
  }
  return absl::OkStatus();
}

absl::Status CheckDevice(const state::PreparedDevice& device) {
  if (device.request_names.size() > kMaxRequestsPerDevice) {
    return InvalidArgumentError(
        "device '{}': {} request names, at most {} are allowed", device.device,
        device.request_names.size(), kMaxRequestsPerDevice);
  }
  for (const std::string& request : device.request_names) {
    DEVMGR_RETURN_IF_ERROR(CheckName("request name", request));
  }
  if (device.share_id.size() > kMaxNameBytes) {
    return InvalidArgumentError("share ID of {} bytes", device.share_id.size());
  }
  if (device.cdi_device_ids.size() > kMaxCdiDevicesPerDevice) {
    return InvalidArgumentError(
        "device '{}': {} CDI device IDs, at most {} are allowed", device.device,
        device.cdi_device_ids.size(), kMaxCdiDevicesPerDevice);
  }
  for (const std::string& id : device.cdi_device_ids) {
    DEVMGR_RETURN_IF_ERROR(CheckName("CDI device ID", id));
    DEVMGR_RETURN_IF_ERROR(
        WithContext(cdi::CheckQualifiedName(id), "device '{}'", device.device));
  }
  return absl::OkStatus();
}

absl::Status CheckDevices(const RawClaimAnswer& answer) {
  const std::vector<state::PreparedDevice>& devices = answer.devices;
  if (devices.size() > kMaxDevicesPerClaim) {
    return InvalidArgumentError("{} devices, at most {} are allowed",
                                devices.size(), kMaxDevicesPerClaim);
  }
  for (const state::PreparedDevice& device : devices) {
    if (!answer.only_cdi_ids) DEVMGR_RETURN_IF_ERROR(CheckNames(device));
    DEVMGR_RETURN_IF_ERROR(CheckDevice(device));
  }
  return absl::OkStatus();
}

/// An answer for a claim that was not asked for: the driver confuses claims.
absl::Status CheckOnlyAsked(std::string_view method,
                            const std::vector<ClaimReference>& asked,
                            const RawAnswer& raw) {
  std::set<std::string> uids;
  for (const ClaimReference& claim : asked) uids.insert(claim.uid.value);
  for (const auto& [uid, answer] : raw) {
    if (uids.contains(uid)) continue;
    return InternalError("{} returned result for unknown claim UID {}", method,
                         api::Readable(uid, kMaxNameBytes));
  }
  return absl::OkStatus();
}

/// The driver's own, with a code that the transport has, too: which of them it
/// was is said, and the mark stays.
absl::Status OfCall(std::string_view method, const absl::Status& status) {
  const std::string text = api::Readable(MessageOf(status), kMaxErrorBytes);
  if (!IsFromPeer(status)) {
    return MakeStatus(status.code(), fmt::format("{}: {}", method, text));
  }
  if (ShowsAnswer(Unmarked(status))) {
    return FromPeer(
        MakeStatus(status.code(), fmt::format("{}: {}", method, text)));
  }
  return FromPeer(
      MakeStatus(status.code(),
                 fmt::format("{}: the driver answered with {}: {}", method,
                             absl::StatusCodeToString(status.code()), text)));
}

/// Errors that are the same for every claim; OK when the answer can be read.
absl::Status CheckCall(std::string_view method,
                       const std::vector<ClaimReference>& asked,
                       const absl::StatusOr<RawAnswer>& raw) {
  if (!raw.ok()) return OfCall(method, raw.status());
  return CheckOnlyAsked(method, asked, *raw);
}

/// The error of one claim, OK when the driver says it succeeded.
absl::Status CheckClaim(std::string_view method, const ClaimReference& claim,
                        const RawAnswer& raw, std::size_t skipped) {
  const auto answer = raw.find(claim.uid.value);
  if (answer == raw.end()) {
    return InternalError("{} skipped {} ResourceClaims, among them {}", method,
                         skipped, claim.name.name);
  }
  if (!answer->second.error.empty()) {
    return FromPeer(UnavailableError(
        "{} failed for ResourceClaim {}: {}", method, claim.name.name,
        api::Readable(answer->second.error, kMaxErrorBytes)));
  }
  return absl::OkStatus();
}

}  // namespace

PrepareAnswer CheckPrepareAnswer(const std::vector<ClaimReference>& asked,
                                 const absl::StatusOr<RawAnswer>& raw) {
  PrepareAnswer result;
  const absl::Status call = CheckCall(kPrepare, asked, raw);
  for (const ClaimReference& claim : asked) {
    if (!call.ok()) {
      result.emplace(claim.uid, call);
      continue;
    }
    absl::Status status =
        CheckClaim(kPrepare, claim, *raw, asked.size() - raw->size());
    if (!status.ok()) {
      result.emplace(claim.uid, std::move(status));
      continue;
    }
    const RawClaimAnswer& answer = raw->at(claim.uid.value);
    status = WithContext(CheckDevices(answer),
                         "{} returned an invalid answer for ResourceClaim {}",
                         kPrepare, claim.name.name);
    if (status.ok()) {
      result.emplace(claim.uid, answer.devices);
    } else {
      result.emplace(claim.uid, std::move(status));
    }
  }
  return result;
}

UnprepareAnswer CheckUnprepareAnswer(const std::vector<ClaimReference>& asked,
                                     const absl::StatusOr<RawAnswer>& raw) {
  UnprepareAnswer result;
  const absl::Status call = CheckCall(kUnprepare, asked, raw);
  for (const ClaimReference& claim : asked) {
    result.emplace(claim.uid, !call.ok()
                                  ? call
                                  : CheckClaim(kUnprepare, claim, *raw,
                                               asked.size() - raw->size()));
  }
  return result;
}

}  // namespace devmgr::dra
