// SPDX-License-Identifier: Apache-2.0
#include "common/peer_status.h"

#include <absl/strings/cord.h>

namespace devmgr {
namespace {

constexpr char kMark[] = "devmgr/from-peer";

}  // namespace

absl::Status FromPeer(absl::Status status) {
  status.SetPayload(kMark, absl::Cord());
  return status;
}

bool IsFromPeer(const absl::Status& status) {
  return status.GetPayload(kMark).has_value();
}

absl::Status Unmarked(absl::Status status) {
  status.ErasePayload(kMark);
  return status;
}

bool ShowsAnswer(const absl::Status& status) {
  if (IsFromPeer(status)) return true;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kResourceExhausted:
      return false;
    default:
      return true;
  }
}

}  // namespace devmgr
