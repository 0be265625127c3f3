// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/testing.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "testing/fake_driver_wire.h"
#include "testing/journal.h"

namespace devmgr::testing {

/// What happened to a fake driver.
class DriverJournal : public Journal<FakeDraDriver::Call> {
 public:
  using Journal::Journal;

  void Serving(const std::string& driver, const std::string& pool, int devices,
               const std::string& service, const std::string& registration);
  void Published(const std::string& pool, std::int64_t generation,
                 std::size_t slices);
  void ClaimCall(const DraApi& api, ClaimMethod method,
                 const std::vector<ClaimReference>& claims);
  void Answer(const DraApi& api, ClaimMethod method,
              const std::vector<ClaimAnswer>& answers);
};

/// `prepare` or `unprepare`.
std::string_view NameOf(ClaimMethod method);

}  // namespace devmgr::testing
