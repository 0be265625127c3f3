// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "source/api/api_status.h"
#include "source/api/collection.h"
#include "source/api/credentials.h"

namespace devmgr::apiserver {

/// What comes of a request, in this order, on the executor of the transport's
/// user: the head at most once, data, then the end exactly once.
struct TransferEvents {
  std::function<void(const ResponseHead& head)> on_head;
  std::function<void(std::string_view bytes)> on_data;
  /// OK: the answer is all there. The request may be repeated after
  /// DeadlineExceeded, Unavailable and DataLoss.
  std::function<void(const absl::Status& status)> on_end;
};

/// Sends requests to one API server. While the user does not take in what
/// comes, the server is not read from. To be used on one executor.
class Transport {
 public:
  using TransferId = std::uint64_t;  ///< 0 is never a transfer.

  virtual ~Transport() = default;
  virtual TransferId Start(
      const ApiRequest& request,
      std::shared_ptr<const RequestCredentials> credentials,
      TransferEvents events) = 0;
  /// No event of it comes from now on, not even its end. A transfer that has
  /// ended, or is unknown, is fine; may be called from within an event.
  virtual void Cancel(TransferId transfer) = 0;
};

}  // namespace devmgr::apiserver
