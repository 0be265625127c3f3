// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a manifest, read as YAML and as JSON. What is accepted has its
// defaults and keeps the rules; what is not is told in readable words.
#include <devmgr/manifests.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/names.h"
#include "api/parser.h"
#include "api/pod.h"
#include "api/problems.h"
#include "fuzz/fuzz.h"

namespace devmgr::fuzz {
namespace {

void CheckProblems(const std::vector<ManifestProblem>& problems) {
  Require(problems.size() <= api::kMaxProblems + 1, "problems are bounded");
  for (const ManifestProblem& problem : problems) {
    Require(!problem.message.empty(), "a problem has a message");
    Require(problem.line >= 0, "lines count from 1");
    RequireReadable(problem.ToString());
  }
}

std::size_t CountRequests(const Pod& pod) {
  std::size_t count = 0;
  for (const Container& container : pod.spec.containers) {
    count += container.resources.requests.size();
  }
  for (const Container& container : pod.spec.init_containers) {
    count += container.resources.requests.size();
  }
  return count;
}

void CheckPod(const Pod& pod) {
  Require(api::ValidatePod(pod).empty(), "an accepted pod keeps the rules");
  Pod again = pod;
  api::DefaultPod(again);
  Require(CountRequests(again) == CountRequests(pod),
          "an accepted pod has its defaults");
}

void CheckClaim(const ResourceClaim& claim) {
  const std::string text = EncodeResourceClaim(claim);
  // Escapes and aliases may have made it longer than what is read.
  if (text.size() > api::kMaxTextBytes / 8) return;
  const DecodedManifest again = DecodeManifest(text, "claim.json", "node");
  Require(again.errors.empty() && again.objects.size() == 1,
          "an accepted claim is accepted again");
  const auto& other = std::get<ResourceClaim>(again.objects[0].object);
  Require(EncodeResourceClaim(other) == text, "and is the same");
}

void CheckObject(const DecodedObject& decoded) {
  Require(decoded.line > 0, "an object has a line");
  if (const Pod* pod = std::get_if<Pod>(&decoded.object)) CheckPod(*pod);
  if (const auto* claim = std::get_if<ResourceClaim>(&decoded.object)) {
    CheckClaim(*claim);
  }
  std::visit(
      [](const auto& object) {
        const ObjectMeta& metadata = object.metadata;
        Require(api::CheckSubdomain(metadata.name).empty(),
                "an accepted object has a name");
        Require(metadata.ns.empty() || api::CheckLabel(metadata.ns).empty(),
                "an accepted object has a valid namespace, or none");
      },
      decoded.object);
}

DecodedManifest Check(std::string_view text, std::string_view file) {
  DecodedManifest manifest = DecodeManifest(text, file, "node");
  CheckProblems(manifest.errors);
  CheckProblems(manifest.warnings);
  Require(manifest.errors.empty() ||
              (manifest.objects.empty() && manifest.malformed_pods.empty()),
          "a file with an error yields nothing");
  for (const DecodedObject& object : manifest.objects) CheckObject(object);
  for (const MalformedPod& malformed : manifest.malformed_pods) {
    Require(!malformed.problem.message.empty(), "a rejection has a message");
    RequireReadable(malformed.problem.ToString());
  }
  return manifest;
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using devmgr::fuzz::Check;
  using devmgr::fuzz::Require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const devmgr::DecodedManifest yaml = Check(text, "fuzz.yaml");
  const devmgr::DecodedManifest json = Check(text, "fuzz.json");
  if (json.errors.empty() && text.starts_with('{')) {
    Require(yaml.objects.size() == json.objects.size() &&
                yaml.malformed_pods.size() == json.malformed_pods.size(),
            "JSON means the same whatever its file is called");
  }
  return 0;
}
