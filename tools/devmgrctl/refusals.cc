// SPDX-License-Identifier: Apache-2.0
#include "refusals.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "text.h"

namespace devmgr::ctl {
namespace {

/// Devices that are refused for one reason, in words.
struct Group {
  std::size_t count = 0;
  std::string first;  ///< `driver/pool/device`.
};

/// A device that no test refuses is shown as such: it is others that are
/// missing.
std::string_view ReasonText(std::string_view reason) {
  return reason == "none" ? "would do" : reason;
}

}  // namespace

void PrintRefusals(const Session& session, const RefusedRequest& request) {
  // What a plugin or a quota refuses is of no claim.
  const std::string claim =
      request.claim.empty() ? "" : fmt::format("claim {}, ", request.claim);
  session.err() << fmt::format("{}request {}: {} wanted, {} found\n",
                               Clean(claim), Clean(request.request),
                               request.wanted, request.found);
  std::map<std::pair<std::string, std::string>, Group> groups;
  std::map<std::string, std::size_t> listed;
  for (const RefusedDevice& device : request.devices) {
    Group& group = groups[{device.reason, device.detail}];
    if (group.count++ == 0) {
      group.first = device.pool.empty()
                        ? fmt::format("{}/{}", device.driver, device.device)
                        : fmt::format("{}/{}/{}", device.driver, device.pool,
                                      device.device);
    }
    ++listed[device.reason];
  }
  for (const auto& [why, group] : groups) {
    session.err() << fmt::format(
        "  {} device{}: {}{}{} ({}{})\n", group.count,
        group.count == 1 ? "" : "s", ReasonText(why.first),
        why.second.empty() ? "" : ": ", Clean(why.second), Clean(group.first),
        group.count == 1 ? "" : ", ...");
  }
  for (const auto& [reason, count] : request.counts) {
    const std::size_t more = count - std::min(count, listed[reason]);
    if (more == 0) continue;
    session.err() << fmt::format("  {} more device{}: {}\n", more,
                                 more == 1 ? "" : "s", ReasonText(reason));
  }
}

}  // namespace devmgr::ctl
