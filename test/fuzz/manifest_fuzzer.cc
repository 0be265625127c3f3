// SPDX-License-Identifier: Apache-2.0
//
// Manifests are written by people and half-written by editors.
#include <devmgr/manifests.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const devmgr::DecodedManifest manifest =
      devmgr::DecodeManifest(text, "fuzz.yaml", "node-1");
  // A half-written file must not look complete.
  if (!manifest.errors.empty() && !manifest.objects.empty()) std::abort();
  for (const devmgr::ManifestProblem& problem : manifest.errors) {
    if (problem.ToString().empty() || problem.message.empty()) std::abort();
  }
  return 0;
}
