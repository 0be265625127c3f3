// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a CDI spec. What is accepted names devices that a runtime could
// be asked for.
#include <string>
#include <string_view>

#include "cdi/qualified_name.h"
#include "cdi/spec.h"
#include "common/status.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using devmgr::fuzz::Require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = devmgr::cdi::ParseSpec(text);
  if (!spec.ok()) {
    Require(spec.status().code() == absl::StatusCode::kInvalidArgument,
            "what is no spec is invalid");
    devmgr::fuzz::RequireReadable(devmgr::MessageOf(spec.status()));
    return 0;
  }
  for (const std::string& device : spec->devices) {
    Require(devmgr::cdi::CheckQualifiedName(spec->kind + "=" + device).ok(),
            "each device has a qualified name");
  }
  return 0;
}
