// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a CDI spec. What is accepted names devices that a runtime could
// be asked for, and reads as the same when it is written again.
#include <devmgr/cdi.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "fuzz/fuzz.h"

namespace {

using devmgr::fuzz::Require;

void RequireSameAfterWriting(const devmgr::CdiSpec& spec) {
  for (const auto format :
       {devmgr::CdiFormat::kJson, devmgr::CdiFormat::kYaml}) {
    const auto text = devmgr::EncodeCdiSpec(spec, format);
    if (!text.ok()) {
      // The writer is stricter in keys of annotations, and has a limit.
      devmgr::fuzz::RequireReadable(devmgr::MessageOf(text.status()));
      continue;
    }
    const auto again = devmgr::ParseCdiSpec(*text, "");
    Require(again.ok() && *again == spec, "what is written reads as the same");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = devmgr::ParseCdiSpec(text, "x.yaml");
  if (!spec.ok()) {
    Require(spec.status().code() == absl::StatusCode::kInvalidArgument,
            "what is no spec is invalid");
    devmgr::fuzz::RequireReadable(devmgr::MessageOf(spec.status()), 16'384);
    return 0;
  }
  Require(devmgr::ValidateCdiSpec(*spec).ok(), "what is read is valid");
  const devmgr::CdiRegistry registry(
      {devmgr::MakeCdiSpecFile("/x.yaml", 0, text)});
  std::vector<std::string> names;
  for (const devmgr::CdiSpecDevice& device : spec->devices) {
    names.push_back(spec->kind + "=" + device.name);
    Require(devmgr::ParseCdiName(names.back()).ok(),
            "each device has a qualified name");
  }
  const auto edits = devmgr::CdiEditsOf(registry, names);
  Require(edits.ok() || absl::IsResourceExhausted(edits.status()),
          "each device has edits");
  RequireSameAfterWriting(*spec);
  return 0;
}
