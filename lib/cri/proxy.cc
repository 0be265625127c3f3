// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cri.h>

#include "common/status.h"

namespace devmgr {

absl::StatusOr<std::unique_ptr<CriProxy>> CriProxy::Start(
    const CriProxyOptions& options) {
  if (options.listen.empty() || options.backend.empty()) {
    return InvalidArgumentError("listen and backend are required");
  }
  return UnimplementedError("the proxy is being built");
}

}  // namespace devmgr
