// SPDX-License-Identifier: Apache-2.0
//
// A driver may answer anything. Whatever it is, each claim that was asked for
// gets exactly one word, and what is accepted is within the bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "dra/answer.h"
#include "dra/api_version.h"

namespace dra = devmgr::dra;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::vector<dra::ClaimReference> asked = {
      {.uid = devmgr::ClaimUid{"uid-1"}, .name = {"default", "claim-1"}},
      {.uid = devmgr::ClaimUid{"uid-2"}, .name = {"default", "claim-2"}},
  };
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const dra::ApiVersion& version : dra::ApiVersions()) {
    const dra::PrepareAnswer prepared =
        dra::CheckPrepareAnswer(asked, version.decode_prepare(bytes));
    if (prepared.size() != asked.size()) std::abort();
    for (const auto& [uid, devices] : prepared) {
      if (devices.ok() && devices->size() > dra::kMaxDevicesPerClaim) {
        std::abort();
      }
    }
    const dra::UnprepareAnswer unprepared =
        dra::CheckUnprepareAnswer(asked, version.decode_unprepare(bytes));
    if (unprepared.size() != asked.size()) std::abort();
  }
  return 0;
}
