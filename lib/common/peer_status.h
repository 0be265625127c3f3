// SPDX-License-Identifier: Apache-2.0
//
// Whose word the error of a call is. gRPC has the same codes for what the peer
// answers and for what becomes of a call that got lost.
#pragma once

#include <absl/status/status.h>

namespace devmgr {

/// Marks an error as the answer of the peer itself. The mark goes along with
/// copies and through WithContext.
absl::Status FromPeer(absl::Status status);

/// False for OK, and for errors that were never marked.
bool IsFromPeer(const absl::Status& status);

/// The same error without the mark, for those outside.
absl::Status Unmarked(absl::Status status);

/// How a call ended shows that there is a peer which answers calls. False for
/// what is not marked and may be the word of the transport or of our side on a
/// call that got no answer: Unavailable, Cancelled, Aborted, DeadlineExceeded,
/// ResourceExhausted, and Internal, which gRPC makes of a peer that does not
/// speak HTTP/2.
bool ShowsAnswer(const absl::Status& status);

}  // namespace devmgr
