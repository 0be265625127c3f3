// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a manifest, read as YAML and as JSON.
#include <devmgr/manifests.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckOutcome(std::string_view text, std::string_view file) {
  const devmgr::DecodedManifest manifest =
      devmgr::DecodeManifest(text, file, "node");
  if (!manifest.errors.empty()) {
    Require(manifest.objects.empty() && manifest.malformed_pods.empty());
  }
  for (const devmgr::ManifestProblem& problem : manifest.errors) {
    Require(!problem.message.empty());
    Require(problem.ToString().size() < 4096);
  }
  for (const devmgr::DecodedObject& object : manifest.objects) {
    Require(object.line > 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckOutcome(text, "fuzz.yaml");
  CheckOutcome(text, "fuzz.json");
  return 0;
}
